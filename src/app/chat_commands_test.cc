// What `chat` is made of besides a model: its commands, its saved conversations, and the line editor on a terminal and on a pipe.
#include "app/chat_commands.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>
#include <utmp.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "app/interrupt.h"
#include "app/line_editor.h"

// This program's poll can do something at the last moment before it waits.
static void (*before_poll)() = nullptr;
extern "C" int poll(pollfd* files, nfds_t n, int ms) {
  if (auto* act = std::exchange(before_poll, nullptr)) act();
  const timespec limit{ms / 1000, ms % 1000 * 1'000'000L};
  return ppoll(files, n, ms < 0 ? nullptr : &limit, nullptr);
}

namespace ridge {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string folder() {
  static const std::string path = [] {
    std::string name = testing::TempDir() + "ridge_chat_XXXXXX";
    return std::string(mkdtemp(name.data()));
  }();
  return path;
}

void write_file(const std::string& path, const std::string& text) {
  FILE* f = fopen(path.c_str(), "w");
  ASSERT_NE(f, nullptr) << path;
  fwrite(text.data(), 1, text.size(), f);
  fclose(f);
}

void make_folder(const std::string& path) {
  ASSERT_TRUE(mkdir(path.c_str(), 0700) == 0 || errno == EEXIST) << path;  // --gtest_repeat meets it again
}

std::string read_file(const std::string& path) {
  std::string text;
  if (FILE* f = fopen(path.c_str(), "r")) {
    for (int c; (c = fgetc(f)) != EOF;) text.push_back(char(c));
    fclose(f);
  }
  return text;
}

// What a command answers: its output, or its sentence.
std::string answer_to(Conversation& c, const std::string& line) {
  std::string output;
  const Result<ChatStep> step = chat_command(c, line, output);
  EXPECT_TRUE(step || output.empty()) << "an error shows nothing else: " << line;
  return step ? output : step.status().sentence();
}

ChatStep step_of(const std::string& line) {
  Conversation c;
  std::string output;
  const Result<ChatStep> step = chat_command(c, line, output);
  EXPECT_TRUE(step) << step.status().sentence();
  return step ? *step : ChatStep::leave;
}

TEST(ChatCommands, OnlyLinesThatStartWithASlashAreCommands) {
  EXPECT_EQ(step_of("hello"), ChatStep::say);
  EXPECT_EQ(step_of(" /bye"), ChatStep::say);
  EXPECT_EQ(step_of("a /bye"), ChatStep::say);
  EXPECT_EQ(step_of("/bye"), ChatStep::leave);
  EXPECT_EQ(step_of("/help"), ChatStep::handled);
  EXPECT_EQ(step_of("/show  "), ChatStep::handled);
  Conversation c;
  EXPECT_EQ(answer_to(c, "/nosuch x"), "There is no command /nosuch; /help lists them.");
  EXPECT_EQ(answer_to(c, "/"), "There is no command /; /help lists them.");
}

TEST(ChatCommands, HelpNamesEveryCommand) {
  Conversation c;
  const std::string help = answer_to(c, "/help");
  for (const char* name : {"/help", "/clear", "/system", "/set", "/show", "/save", "/load", "/bye", "Ctrl-C", "Ctrl-D"})
    EXPECT_THAT(help, HasSubstr(name));
}

TEST(ChatCommands, SystemAndClearForgetTheMessages) {
  Conversation c;
  c.messages = {{"user", "a"}, {"assistant", "b"}};
  answer_to(c, "/system  Be brief.  ");
  EXPECT_EQ(c.system, "Be brief.");
  EXPECT_TRUE(c.messages.empty());
  c.messages = {{"user", "a"}};
  EXPECT_EQ(c.all(), (std::vector<Message>{{"system", "Be brief."}, {"user", "a"}}));
  answer_to(c, "/clear");
  EXPECT_TRUE(c.messages.empty());
  EXPECT_EQ(c.system, "Be brief.");
  answer_to(c, "/system");
  EXPECT_EQ(c.system, "");
  EXPECT_TRUE(c.all().empty());
}

TEST(ChatCommands, SetChangesWhatShowShows) {
  Conversation c;
  for (const char* line :
       {"/set temperature 0.25", "/set top_k 7", "/set top_p 0.5", "/set min_p 0", "/set repetition_penalty 1.5",
        "/set presence_penalty -1", "/set frequency_penalty 2", "/set seed 42", "/set tokens 99"})
    EXPECT_EQ(answer_to(c, line), "") << line;
  EXPECT_EQ(c.sampling.temperature, 0.25);
  EXPECT_EQ(c.sampling.top_k, 7);
  EXPECT_EQ(c.sampling.presence_penalty, -1);
  EXPECT_EQ(c.sampling.seed, 42);
  EXPECT_EQ(c.tokens, 99);
  const std::string shown = answer_to(c, "/show");
  for (const char* text : {"temperature         0.25\n", "top_k               7\n", "seed                42\n",
                           "tokens              99\n", "system message      none\n"})
    EXPECT_THAT(shown, HasSubstr(text));
}

TEST(ChatCommands, BadValuesAreRefusedAndChangeNothing) {
  Conversation c;
  const std::string before = answer_to(c, "/show");
  EXPECT_EQ(answer_to(c, "/set"), "/set knows no \"\"; /help lists the names.");
  EXPECT_EQ(answer_to(c, "/set heat 1"), "/set knows no \"heat\"; /help lists the names.");
  EXPECT_EQ(answer_to(c, "/set temperature"), "/set temperature takes a number from 0 to 100.");
  for (const char* value : {"-1", "101", "nan", "inf", "x", "1x", "1 2", "0,5", "--1"})
    EXPECT_EQ(answer_to(c, std::string("/set temperature ") + value), "/set temperature takes a number from 0 to 100.") << value;
  EXPECT_EQ(answer_to(c, "/set top_k 1.5"), "/set top_k takes a whole number from 0 to 1073741824.");
  EXPECT_EQ(answer_to(c, "/set tokens 0"), "/set tokens takes a whole number from 1 to 16777216.");
  EXPECT_EQ(answer_to(c, "/show"), before);
}

TEST(ChatCommands, ASavedConversationComesBackAsItWas) {
  const std::string path = folder() + "/a conversation.json";
  Conversation c;
  c.system = "S \"quoted\"\n";
  c.messages = {
      {"user", "Grüße 👋🏽\n\ttwo lines \\ and a slash"}, {"assistant", ""}, {"user", std::string("nul\0inside", 10)}};
  c.sampling = {.temperature = 0.1,
                .top_p = 0.2,
                .min_p = 0.3,
                .top_k = 4,
                .repetition_penalty = 1.1,
                .presence_penalty = -0.5,
                .frequency_penalty = 0.5,
                .seed = 7};
  c.tokens = 12;
  EXPECT_EQ(answer_to(c, "/save " + path), "Saved to " + path + ".\n");
  Conversation d;
  EXPECT_EQ(answer_to(d, "/load  " + path + " "), "3 messages.\n");
  EXPECT_EQ(d.all(), c.all());
  EXPECT_EQ(answer_to(d, "/show"), answer_to(c, "/show"));
  EXPECT_EQ(d.sampling.repetition_penalty, 1.1);
}

TEST(ChatCommands, SavingFailsWithoutTouchingWhatIsThere) {
  Conversation c;
  EXPECT_EQ(answer_to(c, "/save"), "/save takes a file.");
  EXPECT_EQ(answer_to(c, "/load "), "/load takes a file.");
  EXPECT_THAT(answer_to(c, "/save " + folder() + "/no/such/folder/x.json"), HasSubstr("/no/such/folder/x.json"));
  const std::string path = folder() + "/taken";
  make_folder(path);
  EXPECT_THAT(answer_to(c, "/save " + path), Not(HasSubstr("Saved")));
  struct stat info {};
  EXPECT_TRUE(stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode));
}

TEST(ChatCommands, FilesThatAreNoConversationAreRefusedWithAReason) {
  const std::string path = folder() + "/bad.json";
  const std::pair<const char*, const char*> cases[] = {
      {"", "bad.json"},
      {"{", "bad.json"},
      {"\xff\xfe", "bad.json"},
      {"[]", "no list of messages"},
      {"{}", "no list of messages"},
      {R"({"messages": 1})", "no list of messages"},
      {R"({"messages": [1]})", "the role user or assistant and a content"},
      {R"({"messages": [{"role": "user"}]})", "the role user or assistant and a content"},
      {R"({"messages": [{"role": "system", "content": "x"}]})", "the role user or assistant and a content"},
      {R"({"messages": [{"role": "user", "content": 5}]})", "the role user or assistant and a content"},
      {R"({"messages": [], "system": 5})", "its system message is not a text"},
      {R"({"messages": [], "settings": []})", "its settings are not an object"},
      {R"({"messages": [], "settings": {"top_k": 1.5}})", "its setting top_k is not a whole number from 0"},
      {R"({"messages": [], "settings": {"temperature": -1}})", "its setting temperature is not a number from 0 to 100"},
      {R"({"messages": [], "settings": {"temperature": "hot"}})", "its setting temperature is not a number from 0 to 100"},
      {R"({"messages": [], "settings": {"heat": 1}})", "it has an unknown setting \"heat\""}};
  for (const auto& [text, reason] : cases) {
    write_file(path, text);
    Conversation c;
    c.system = "kept";
    c.messages = {{"user", "kept"}};
    EXPECT_THAT(answer_to(c, "/load " + path), HasSubstr(reason)) << text;
    EXPECT_EQ(c.all(), (std::vector<Message>{{"system", "kept"}, {"user", "kept"}})) << text;
  }
  Conversation c;
  EXPECT_THAT(answer_to(c, "/load " + folder() + "/nowhere.json"), HasSubstr("nowhere.json"));
}

// ---- the line editor, in a child of its own: on a terminal, or with a pipe for standard input

// Prints every event as one line, newlines shown as '/', until the second interrupt in a row or the end.
[[noreturn]] void talk(const std::string& history) {
  signal(SIGALRM, SIG_DFL);
  alarm(120);
  catch_interrupts();
  {
    LineEditor editor(history);
    bool leaving = false;
    for (std::string message; !leaving;) {
      const LineEditor::Event event = editor.read(message);
      if (event == LineEditor::Event::end) break;
      static bool before;
      leaving = event == LineEditor::Event::interrupted && before;
      before = event == LineEditor::Event::interrupted;
      for (char& c : message)
        if (c == '\n') c = '/';
      printf(before ? "<interrupted>\n" : "<%s>\n", message.c_str());
      fflush(stdout);
    }
  }
  printf("<left>\n");
  fflush(stdout);
  _exit(0);
}

// A session on a terminal: each step is typed when the text before it has appeared. `early`, a line at least, is typed before there
// is an editor, while the terminal itself edits lines.
struct Typed {
  std::string keys, then;
};
std::string on_terminal(const std::string& history, const std::vector<Typed>& steps, const std::string& early = "") {
  int terminal = -1, inside = -1;
  EXPECT_EQ(openpty(&terminal, &inside, nullptr, nullptr, nullptr), 0);
  termios t{};
  tcgetattr(inside, &t);
  t.c_iflag |= IUTF8;  // as real terminals are
  tcsetattr(inside, TCSANOW, &t);
  EXPECT_EQ(write(terminal, early.data(), early.size()), ssize_t(early.size()));
  for (auto lines = std::count(early.begin(), early.end(), '\n'); lines > 0;) {  // once its last line is echoed, all was taken
    char c = 0;
    if (read(terminal, &c, 1) != 1) return "no echo";
    lines -= c == '\n';
  }
  fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    close(terminal);
    login_tty(inside);
    setenv("TERM", "xterm", 1);
    setenv("HOME", folder().c_str(), 1);  // nobody's .editrc
    talk(history);
  }
  close(inside);
  std::string all;
  size_t seen = 0;
  const auto until = [&](const std::string& text) {
    const auto start = std::chrono::steady_clock::now();
    while (all.find(text, seen) == std::string::npos && std::chrono::steady_clock::now() - start < std::chrono::seconds(60)) {
      pollfd p{terminal, POLLIN, 0};
      char buffer[4096];
      if (poll(&p, 1, 1000) <= 0) continue;
      const ssize_t n = read(terminal, buffer, sizeof buffer);
      if (n <= 0) break;  // the child has closed its side
      all.append(buffer, size_t(n));
    }
    const size_t at = all.find(text, seen);
    EXPECT_NE(at, std::string::npos) << "waited for " << text << " in: " << all.substr(seen);
    if (at != std::string::npos) seen = at + text.size();
  };
  until("> ");
  for (const Typed& step : steps) {
    EXPECT_EQ(write(terminal, step.keys.data(), step.keys.size()), ssize_t(step.keys.size()));
    until(step.then);
    if (step.then.starts_with('<') && step.then != "<left>") until("\n> ");
  }
  kill(child, SIGKILL);  // no effect on one that has left
  int status = 0;
  waitpid(child, &status, 0);
  close(terminal);
  return all;
}

std::string on_pipe(const std::string& input) {
  int in[2], out[2];
  EXPECT_EQ(pipe(in) | pipe(out), 0);
  fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    dup2(in[0], STDIN_FILENO), dup2(out[1], STDOUT_FILENO);
    for (const int fd : {in[0], in[1], out[0], out[1]}) close(fd);
    talk(folder() + "/unused/history");
  }
  close(in[0]), close(out[1]);
  EXPECT_EQ(write(in[1], input.data(), input.size()), ssize_t(input.size()));
  close(in[1]);
  std::string all;
  char buffer[4096];
  for (ssize_t n; (n = read(out[0], buffer, sizeof buffer)) > 0;) all.append(buffer, size_t(n));
  close(out[0]);
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  return all;
}

TEST(LineEditor, APipeGivesItsLinesAndNoPrompt) {
  EXPECT_EQ(on_pipe(""), "<left>\n");
  EXPECT_EQ(on_pipe("a\n\nb"), "<a>\n<>\n<b>\n<left>\n");
  EXPECT_EQ(on_pipe("dos\r\n\r\nGrüße 👋🏽\n"), "<dos>\n<>\n<Grüße 👋🏽>\n<left>\n");
  EXPECT_EQ(on_pipe("one \\\ntwo\\\n\\\nfour\n"), "<one /two//four>\n<left>\n");
  EXPECT_EQ(on_pipe("\"\"\"\n\na\\\n\nb\n\"\"\"\nc\n\"\"\"\n\"\"\"\n"), "</a\\//b>\n<c>\n<>\n<left>\n");
  EXPECT_EQ(on_pipe("\"\"\"\nnever closed\n"), "<left>\n");
  EXPECT_EQ(access((folder() + "/unused").c_str(), F_OK), -1);  // without a terminal there is no history
  EXPECT_EQ(on_pipe(std::string(40000, 'x') + "\n"), "<" + std::string(40000, 'x') + ">\n<left>\n");
}

TEST(LineEditor, ATerminalEditsUtf8AndRemembersAcrossSessions) {
  const std::string history = folder() + "/state/ridgeline/history";
  on_terminal(history, {{"Grü\x7f\x7füße\n", "<Güße>"},  // backspace takes whole characters
                        {"second\n", "<second>"},
                        {"\x1b[A\x1b[A\n", "<Güße>"},  // up, up
                        {"lo\\\n", ". "},
                        {"ng\n", "<lo/ng>"},
                        {"\"\"\"\n", ". "},
                        {"x\n", ". "},
                        {"\n", ". "},
                        {"y\n\"\"\"\n", "<x//y>"},
                        {"\x04", "<left>"}});
  struct stat info {};
  ASSERT_EQ(stat(history.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);  // what one says to a model is private
  on_terminal(history, {{"\x1b[A\n", "<y>"}, {"\x04", "<left>"}});
}

// Ctrl-D typed during an answer is a zero by the time the editor reads it.
TEST(LineEditor, KeysTypedBeforeThePromptCount) {
  const std::string history = folder() + "/early/history";
  on_terminal(history, {{"", "<early>"}, {"", "<Güße>"}, {"", "<left>"}},
              "early\nGrü\x7f\x7füße\n\x04"
              "unread\n");
}

TEST(LineEditor, CtrlCClearsTheLineAndASecondOneLeaves) {
  const std::string history = folder() + "/interrupted/history";
  on_terminal(history,
              {{"half a line\x03", "<interrupted>"}, {"whole\n", "<whole>"}, {"\x03", "<interrupted>"}, {"\x03", "<left>"}});
  on_terminal(history, {{"\"\"\"\n", ". "},
                        {"lost\n", ". "},
                        {"\x03", "<interrupted>"},
                        {"after\n", "<after>"},
                        {"\x03", "<interrupted>"},
                        {"\x04", "<left>"}});
  EXPECT_THAT(read_file(history), HasSubstr("whole"));
  EXPECT_THAT(read_file(history), Not(HasSubstr("half")));
}

TEST(LineEditor, AHistoryThatCannotBeKeptIsAWarning) {
  write_file(folder() + "/file", "not a folder");
  EXPECT_THAT(on_terminal(folder() + "/file/history", {{"a\n", "<a>"}, {"\x1b[A\n", "<a>"}, {"\x04", "<left>"}}),
              HasSubstr("no history is kept"));
  make_folder(folder() + "/occupied");
  make_folder(folder() + "/occupied/history");
  EXPECT_THAT(on_terminal(folder() + "/occupied/history", {{"a\n", "<a>"}, {"\x04", "<left>"}}), HasSubstr("could not be kept"));
}

// A Ctrl-C that comes after the look at the flag and before the wait ends that wait; so does one that came long before.
TEST(LineEditor, NoCtrlCIsLostBeforeAWait) {
  int in[2];
  ASSERT_EQ(pipe(in), 0);
  fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    dup2(in[0], STDIN_FILENO);  // both ends stay open: no input, and no end of it
    signal(SIGALRM, SIG_DFL);
    alarm(30);
    catch_interrupts();
    LineEditor editor("");
    std::string message;
    for (int i = 0; i < 100; ++i) {
      if (i % 2)
        raise(SIGINT);
      else
        before_poll = [] { raise(SIGINT); };
      if (editor.read(message) != LineEditor::Event::interrupted || interrupted()) _exit(1);
    }
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  close(in[0]), close(in[1]);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

TEST(LineEditor, TheHistoryLivesWhereTheDesktopSaysStateLives) {
  const auto with = [](const char* state, const char* home) {
    const auto set = [](const char* name, const char* value) { value ? setenv(name, value, 1) : unsetenv(name); };
    const char *old_state = getenv("XDG_STATE_HOME"), *old_home = getenv("HOME");
    const std::string keep_state = old_state ? old_state : "", keep_home = old_home ? old_home : "";
    set("XDG_STATE_HOME", state), set("HOME", home);
    const std::string file = chat_history_file();
    set("XDG_STATE_HOME", old_state ? keep_state.c_str() : nullptr), set("HOME", old_home ? keep_home.c_str() : nullptr);
    return file;
  };
  EXPECT_EQ(with("/state", "/home/x"), "/state/ridgeline/history");
  EXPECT_EQ(with(nullptr, "/home/x"), "/home/x/.local/state/ridgeline/history");
  EXPECT_EQ(with("relative", "/home/x"), "/home/x/.local/state/ridgeline/history");  // the specification ignores relative paths
  EXPECT_EQ(with("", nullptr), "");
}

}  // namespace
}  // namespace ridge
