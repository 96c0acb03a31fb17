// See line_editor.h. libedit draws, edits and remembers; this file decides what a message is and where its history lives.
#include "app/line_editor.h"

#include <histedit.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cwchar>

#include "app/interrupt.h"
#include "base/log.h"

namespace ridge {

struct LineEditor::State {
  EditLine* editor = nullptr;  // null: no terminal
  History* history = nullptr;
  HistEvent event{};
  std::string file;
  const char* prompt = "> ";
};

namespace {

constexpr int kHistoryLength = 1000;

// The folders above a file, made where they are missing; false, with errno, where nothing can be written in the last one.
bool make_folders(const std::string& path) {
  for (size_t at = path.find('/', 1); at != std::string::npos; at = path.find('/', at + 1))
    if (mkdir(path.substr(0, at).c_str(), 0700) != 0 && errno != EEXIST) return false;
  return access((path.substr(0, path.rfind('/') + 1) + ".").c_str(), W_OK | X_OK) == 0;
}

// Beside its place first, so that a full disk costs the new lines and not the old ones. libedit writes files of mode 0600.
bool save_history(History* lines, const std::string& file) {
  const std::string part = file + "." + std::to_string(getpid()) + ".part";
  HistEvent event{};
  errno = 0;
  if (history(lines, &event, H_SAVE, part.c_str()) >= 0 && rename(part.c_str(), file.c_str()) == 0) return true;
  const int why = errno;
  unlink(part.c_str());
  errno = why;
  return false;
}

// One key for libedit. Its own reader may block just after a Ctrl-C was handled and would then wait for the next key.
int read_key(EditLine*, wchar_t* key) {
  std::mbstate_t state{};
  for (;;) {
    pollfd input{STDIN_FILENO, POLLIN, 0};
    const int ready = poll(&input, 1, 50);  // ms: a Ctrl-C that comes before the poll is seen this late at worst
    if (interrupted()) return errno = EINTR, -1;
    if (ready <= 0) continue;
    char byte;
    const ssize_t n = ::read(STDIN_FILENO, &byte, 1);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return int(n);
    const size_t length = std::mbrtowc(key, &byte, 1, &state);
    if (length == size_t(-2)) continue;     // the character goes on
    if (length == size_t(-1)) *key = L'?';  // not UTF-8
    return 1;
  }
}

void use_utf8() {
  if (const char* set = setlocale(LC_CTYPE, ""); !set || std::string(set) == "C") setlocale(LC_CTYPE, "C.UTF-8");
}

}  // namespace

LineEditor::LineEditor(const std::string& history_file) : state_(new State) {
  if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO)) return;
  use_utf8();
  State& s = *state_;
  s.editor = el_init("ridgeline", stdin, stdout, stderr);
  s.history = history_init();
  history(s.history, &s.event, H_SETSIZE, kHistoryLength);
  history(s.history, &s.event, H_SETUNIQUE, 1);
  el_set(s.editor, EL_CLIENTDATA, state_);
  el_set(
      s.editor, EL_PROMPT, +[](EditLine* e) -> char* {
        void* data = nullptr;
        el_get(e, EL_CLIENTDATA, &data);
        return const_cast<char*>(static_cast<State*>(data)->prompt);
      });
  el_set(s.editor, EL_EDITOR, "emacs");
  el_set(s.editor, EL_SIGNAL, 1);  // the terminal is put right before our own handler sees a Ctrl-C
  el_set(s.editor, EL_GETCFN, read_key);
  el_set(s.editor, EL_HIST, history, s.history);
  el_source(s.editor, nullptr);
  if (history_file.empty()) return;
  if (!make_folders(history_file)) {
    log_warn("no history is kept: the folder of {} cannot be written: {}", history_file, strerror(errno));
    return;
  }
  s.file = history_file;
  history(s.history, &s.event, H_LOAD, s.file.c_str());  // fails on the first day
}

LineEditor::~LineEditor() {
  if (state_->editor) {
    if (!state_->file.empty() && !save_history(state_->history, state_->file))
      log_warn("the history of this conversation could not be kept in {}: {}", state_->file, strerror(errno));
    history_end(state_->history);
    el_end(state_->editor);
  }
  delete state_;
}

bool LineEditor::read_line(const char* prompt, std::string& line, Event& why_not) {
  line.clear();
  clear_interrupt();
  if (!state_->editor) {
    clearerr(stdin);  // an interrupted read leaves its mark
    for (int c; (c = getchar()) != EOF && c != '\n';) line.push_back(char(c));
    why_not = interrupted() ? Event::interrupted : Event::end;
    const bool more = !interrupted() && (!feof(stdin) || !line.empty());
    if (line.ends_with('\r')) line.pop_back();
    return more;
  }
  state_->prompt = prompt;
  int n = 0;
  errno = 0;  // or an earlier Ctrl-C would be seen in the Ctrl-D after it
  const char* got = el_gets(state_->editor, &n);
  if (!got || n <= 0) {
    why_not = interrupted() || errno == EINTR ? Event::interrupted : Event::end;
    el_reset(state_->editor);
    fputc('\n', stdout);
    return false;
  }
  line.assign(got, size_t(n));
  while (!line.empty() && (line.back() == '\n' || line.back() == '\r')) line.pop_back();
  return true;
}

void LineEditor::remember(const std::string& line) {
  if (state_->editor && !line.empty()) history(state_->history, &state_->event, H_ENTER, (line + "\n").c_str());
}

LineEditor::Event LineEditor::read(std::string& message) {
  message.clear();
  std::string line;
  Event why_not = Event::end;
  bool fenced = false;
  for (int lines = 0;;) {  // of the message so far; an empty one counts
    if (!read_line(lines || fenced ? ". " : "> ", line, why_not)) return why_not;
    if (line == "\"\"\"") {
      fenced = !fenced;
      if (!fenced) return Event::message;
      continue;
    }
    remember(line);
    const bool continued = !fenced && line.ends_with('\\');
    if (continued) line.pop_back();
    if (lines++) message += '\n';
    message += line;
    if (!fenced && !continued) return Event::message;
  }
}

std::string chat_history_file() {
  if (const char* state = getenv("XDG_STATE_HOME"); state && *state == '/') return std::string(state) + "/ridgeline/history";
  const char* home = getenv("HOME");
  return home && *home ? std::string(home) + "/.local/state/ridgeline/history" : "";
}

}  // namespace ridge
