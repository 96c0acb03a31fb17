// Another engine measured beside ours: its script, tools/rivals/rival_NAME.py, runs in a Python of its own and stays loaded between the
// rounds. tools/rivals/protocol.py says what the two tell each other. Not for anything but timing: no text passes through here.
#pragma once
#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "base/status.h"

namespace ridge {

class Json;

class Rival {
 public:
  struct Start {
    std::string python, model;  // the interpreter, and a file that the rival reads itself
    int threads;
    int64_t context, vocab;
  };
  struct Timing {
    std::string setting;  // "flash attention"
    double seconds;
  };

  // The script of "llama.cpp", found in the tree around the working folder or else around this binary; a name with a slash is a script.
  static Result<std::string> find_script(const std::string& name);
  // Returns when the rival has loaded the model and sleeps.
  static Result<std::unique_ptr<Rival>> start(const std::string& name, const Start& start);
  ~Rival();
  Rival(const Rival&) = delete;
  Rival& operator=(const Rival&) = delete;

  // One repeat of a test in each of the rival's settings.
  Result<std::vector<Timing>> time(int64_t prompt, int64_t tokens, int64_t depth);

  const std::string& name() const { return name_; }
  const std::string& version() const { return version_; }
  double cpu_seconds() const;  // of all its threads so far

 private:
  explicit Rival(std::string name) : name_(std::move(name)) {}
  Status spawn(const std::string& python, const std::string& script);
  Result<Json> ask(const Json& question);
  Result<std::string> read_line();
  Status ended();

  std::string name_, version_, command_, unread_;
  pid_t pid_ = -1;
  int channel_ = -1;  // its stdin and stdout
};

}  // namespace ridge
