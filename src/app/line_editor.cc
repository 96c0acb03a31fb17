// See line_editor.h. libedit draws, edits and remembers; this file decides what a message is and where its history lives.
#include "app/line_editor.h"

#include <histedit.h>
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
  FILE* screen = nullptr;      // the editor's own stdout: a Ctrl-C may cut off its drawing, and that is no failed write of ours
  History* history = nullptr;
  HistEvent event{};
  std::string file;
  const char* prompt = "> ";
  std::string unread;  // without a terminal: what was read beyond the last line
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
    char byte;
    const ssize_t n = read_or_interrupt(STDIN_FILENO, &byte, 1);
    if (n <= 0) return int(n);
    // NOTE: a Ctrl-D that is typed while the terminal still reads whole lines (during an answer) arrives as a zero.
    if (byte == 0) byte = 4;
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

LineEditor::LineEditor(const std::string& history_file, bool plain) : state_(new State) {
  if (plain || !isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO)) return;
  use_utf8();
  State& s = *state_;
  s.screen = fdopen(dup(STDOUT_FILENO), "w");
  if (!s.screen) return;  // plain lines then
  s.editor = el_init("ridgeline", stdin, s.screen, stderr);
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
    fclose(state_->screen);
  }
  delete state_;
}

// Ctrl-C here is over once it is told; one that came between the answer and the prompt counts.
LineEditor::Event LineEditor::read_line(const char* prompt, std::string& line) {
  line.clear();
  const Event event = interrupted() ? Event::interrupted : state_->editor ? edit_line(prompt, line) : plain_line(line);
  if (event == Event::interrupted) clear_interrupt();
  while (!line.empty() && (line.back() == '\n' || line.back() == '\r')) line.pop_back();
  return event;
}

LineEditor::Event LineEditor::edit_line(const char* prompt, std::string& line) {
  EditLine* editor = state_->editor;
  state_->prompt = prompt;
  el_set(editor, EL_PREP_TERM, 1);  // before the prompt shows: el_gets shows it first, and keys typed in between would echo twice
  int n = 0;
  const char* got = el_gets(editor, &n);
  if (got && n > 0) return line.assign(got, size_t(n)), Event::message;
  const Event event = interrupted() ? Event::interrupted : Event::end;
  el_reset(editor);
  fputc('\n', stdout);
  return event;
}

LineEditor::Event LineEditor::plain_line(std::string& line) {
  std::string& unread = state_->unread;
  size_t end;
  for (size_t seen = 0; (end = unread.find('\n', seen)) == std::string::npos;) {
    seen = unread.size();
    char more[1 << 12];
    const ssize_t n = read_or_interrupt(STDIN_FILENO, more, sizeof more);
    if (n > 0) {
      unread.append(more, size_t(n));
      continue;
    }
    line.swap(unread);  // the last line may have no end; that of a Ctrl-C is dropped
    unread.clear();
    if (n < 0 && interrupted()) return line.clear(), Event::interrupted;
    return line.empty() ? Event::end : Event::message;
  }
  line = unread.substr(0, end + 1);
  unread.erase(0, end + 1);
  return Event::message;
}

void LineEditor::remember(const std::string& line) {
  if (state_->editor && !line.empty()) history(state_->history, &state_->event, H_ENTER, (line + "\n").c_str());
}

LineEditor::Event LineEditor::read(std::string& message) {
  message.clear();
  std::string line;
  bool fenced = false;
  for (int lines = 0;;) {  // of the message so far; an empty one counts
    if (const Event e = read_line(lines || fenced ? ". " : "> ", line); e != Event::message) return e;
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
