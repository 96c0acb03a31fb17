// Any bytes as JSON. The first byte picks the rules. What is accepted survives a round trip through its text, indented or not.
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "base/check.h"
#include "io/json.h"

namespace {

// NaN and infinities are written as null: a value that has none reads back equal.
bool finite(const ridge::Json& v) {
  if (v.is_number() && !std::isfinite(*v.number())) return false;
  for (const ridge::Json& item : v.items())
    if (!finite(item)) return false;
  for (const ridge::Json::Member& m : v.members())
    if (!finite(m.value)) return false;
  return true;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace ridge;
  if (size == 0) return 0;
  const JsonRules& rules = data[0] & 1 ? kModelFileJson : kRequestJson;
  const std::string_view bytes(reinterpret_cast<const char*>(data + 1), size - 1);
  RIDGE_CHECK(parse_json(to_text(Json(bytes)), "fuzz", kRequestJson).ok(), "a string of any bytes has a valid text");
  const Result<Json> value = parse_json(bytes, "fuzz", rules);
  if (!value) {
    RIDGE_CHECK(!value.status().sentence().empty(), "a refusal has a sentence");
    return 0;
  }
  for (int indent : {0, 2}) {
    const Result<Json> back = parse_json(to_text(*value, indent), "fuzz", rules);
    RIDGE_CHECK(back.ok(), "what was read can be written and read again");
    RIDGE_CHECK(!finite(*value) || *back == *value, "a round trip changes nothing");
  }
  return 0;
}
