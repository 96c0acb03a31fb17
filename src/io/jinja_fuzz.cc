// Any bytes as a template over fixed variables: compile and render must end soon, within their limits, with a text or a sentence.
#include <cstdlib>

#include "io/chat_template.h"

namespace {

ridge::jinja::Value globals() {
  static const auto json =
      ridge::parse_json(R"({"messages": [{"role": "user", "content": "Grüße\n 'x' <b>"}, {"role": "assistant", "content": null,
    "tool_calls": [{"function": {"name": "f", "arguments": {"a": [1, 2.5, true]}}}]}], "tools": [{"name": "f", "items": {"type": ["a"]}}],
    "s": "abc", "n": 3, "f": 0.5, "xs": [3, 1, 2], "d": {"k": "v", "z": 1}, "yes": true, "nil": null, "add_generation_prompt": true})",
                        "globals", {});
  return ridge::value_of(*json);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace ridge;
  const auto t = jinja::compile({reinterpret_cast<const char*>(data), size});
  if (!t) {
    if (t.status().sentence().empty()) abort();
    return 0;
  }
  const auto text = jinja::render(*t, globals(), {.work = 1 << 20, .output = 1 << 16, .now = 0});
  if (text ? text->size() > (1 << 16) : text.status().sentence().empty()) abort();
  return 0;
}
