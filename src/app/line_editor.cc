#include "app/line_editor.h"

#include <histedit.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <clocale>
#include <cstdio>
#include <cstdlib>

#include "app/interrupt.h"
#include "base/log.h"

namespace ridge {

struct LineEditor::State {
  EditLine* editor = nullptr;                                  // null: no terminal
  History* history = nullptr;
  HistEvent event{};
  std::string file;
  const char* prompt = "> ";
};

namespace {

constexpr int kHistoryLength = 1000;

bool make_folders(const std::string& path) {
  for (size_t at = path.find('/', 1); at != std::string::npos; at = path.find('/', at + 1))
    if (mkdir(path.substr(0, at).c_str(), 0700) != 0 && errno != EEXIST) return false;
  return true;
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
  el_set(s.editor, EL_PROMPT, +[](EditLine* e) -> char* {
    void* data = nullptr;
    el_get(e, EL_CLIENTDATA, &data);
    return const_cast<char*>(static_cast<State*>(data)->prompt);
  });
  el_set(s.editor, EL_EDITOR, "emacs");
  el_set(s.editor, EL_SIGNAL, 1);                              // the terminal is put right before our own handler sees a Ctrl-C
  el_set(s.editor, EL_HIST, history, s.history);
  el_source(s.editor, nullptr);
  if (history_file.empty() || !make_folders(history_file)) return;
  s.file = history_file;
  history(s.history, &s.event, H_LOAD, s.file.c_str());        // fails on the first day
}

LineEditor::~LineEditor() {
  if (state_->editor) {
    if (!state_->file.empty() && history(state_->history, &state_->event, H_SAVE, state_->file.c_str()) < 0)
      log_warn("the history of this conversation could not be kept in {}", state_->file);
    history_end(state_->history);
    el_end(state_->editor);
  }
  delete state_;
}

bool LineEditor::read_line(const char* prompt, std::string& line, Event& why_not) {
  line.clear();
  clear_interrupt();
  if (!state_->editor) {
    for (int c; (c = getchar()) != EOF;) {
      if (c == '\n') return true;
      line.push_back(char(c));
    }
    why_not = interrupted() ? Event::interrupted : Event::end;
    return !line.empty() && !interrupted();
  }
  state_->prompt = prompt;
  int n = 0;
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

LineEditor::Event LineEditor::read(std::string& message) {
  message.clear();
  std::string line;
  Event why_not = Event::end;
  bool fenced = false, more = true;
  while (more) {
    if (!read_line(message.empty() && !fenced ? "> " : ". ", line, why_not)) return why_not;
    if (line == "\"\"\"") {
      more = fenced = !fenced;
      continue;
    }
    const bool continued = !fenced && line.ends_with('\\');
    if (continued) line.pop_back();
    message += message.empty() ? line : "\n" + line;
    more = fenced || continued;
  }
  if (state_->editor && !message.empty() && message.find('\n') == std::string::npos)
    history(state_->history, &state_->event, H_ENTER, (message + "\n").c_str());
  return Event::message;
}

std::string chat_history_file() {
  if (const char* state = getenv("XDG_STATE_HOME"); state && *state == '/') return std::string(state) + "/ridgeline/history";
  const char* home = getenv("HOME");
  return home && *home ? std::string(home) + "/.local/state/ridgeline/history" : "";
}

}  // namespace ridge
