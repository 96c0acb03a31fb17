#include "base/dtype.h"

#include <strings.h>

#include "base/check.h"
#include "base/format.h"

namespace ridge {

#define RIDGE_DECLARE(name) extern const Format name##_format;
RIDGE_FORMATS(RIDGE_DECLARE)
#undef RIDGE_DECLARE

namespace {
#define RIDGE_ENTRY(name) &name##_format,
constexpr const Format* kFormats[] = {RIDGE_FORMATS(RIDGE_ENTRY)};
#undef RIDGE_ENTRY
#define RIDGE_TYPE(name) DType::name,
constexpr DType kBlockTypes[] = {RIDGE_FORMATS(RIDGE_TYPE)};
#undef RIDGE_TYPE
constexpr int kPlainTypes = int(DType::u8) + 1;
}  // namespace

const Format* format_of(DType type) { return is_block(type) ? kFormats[int(type) - kPlainTypes] : nullptr; }

std::span<const DType> block_types() { return kBlockTypes; }

const Format* format_named(const char* name) {
  for (const Format* f : kFormats)
    if (strcasecmp(f->name, name) == 0) return f;
  return nullptr;
}

const char* name_of(DType type) {
  constexpr const char* plain[] = {"f64", "f32", "f16", "bf16", "i32", "i64", "u8"};
  return is_block(type) ? format_of(type)->name : plain[int(type)];
}

int64_t bytes_of(DType type, int64_t n) {
  const Format* f = format_of(type);
  if (!f) return n * size_of(type);
  RIDGE_CHECK(n % f->block == 0, std::string("a row of ") + f->name + " is a whole number of blocks");
  return n / f->block * f->bytes;
}

}  // namespace ridge
