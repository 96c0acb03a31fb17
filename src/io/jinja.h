// A Jinja engine for chat templates: compile() reads a template once, render() applies it to values, as python3-jinja2's
// ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True) does with the additions of Hugging Face's chat templates
// (raise_exception, strftime_now, tojson, generation blocks, break and continue).
// A template comes with a model file and is as untrusted as the conversation: work, output and nesting are limited, and every
// failure is a sentence with line and column. Not a web engine: no includes, inheritance or automatic escaping.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "io/jinja_value.h"

namespace ridge::jinja {

struct Program;

class Template {
 public:
  explicit Template(std::shared_ptr<const Program> program) : program_(std::move(program)) {}
  const Program& program() const { return *program_; }

 private:
  std::shared_ptr<const Program> program_;
};

struct Options {
  int64_t work = int64_t(1) << 28;     // see Budget; a long real conversation spends about one percent of it
  int64_t output = int64_t(64) << 20;  // bytes
  std::optional<int64_t> now;          // seconds since 1970 that strftime_now shows; the clock if absent
};

Result<Template> compile(std::string_view source);
// `globals` is a dict: messages, add_generation_prompt and whatever else the template asks for.
Result<std::string> render(const Template& t, const Value& globals, const Options& options = {});

}  // namespace ridge::jinja
