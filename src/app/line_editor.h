// Reads what a person types in `chat`: line editing and history on a terminal (libedit), plain lines elsewhere.
// A line that ends in a backslash goes on in the next; what stands between lines of """ is one message, empty lines included.
// Lines are remembered as they were typed, those of a long message one by one.
#pragma once
#include <optional>
#include <string>

namespace ridge {

class LineEditor {
 public:
  // The file is created with its folders; one that cannot be written is only a warning. `plain`: no editing on a terminal either.
  explicit LineEditor(const std::string& history_file, bool plain = false);
  ~LineEditor();
  LineEditor(const LineEditor&) = delete;

  enum class Event : uint8_t { message, interrupted, end };  // Ctrl-C at the prompt; Ctrl-D or the end of the input
  Event read(std::string& message);

 private:
  void remember(const std::string& line);
  Event read_line(const char* prompt, std::string& line);
  Event edit_line(const char* prompt, std::string& line);
  Event plain_line(std::string& line);
  struct State;
  State* state_;
};

// "${XDG_STATE_HOME:-~/.local/state}/ridgeline/history"; empty where neither variable is set.
std::string chat_history_file();

}  // namespace ridge
