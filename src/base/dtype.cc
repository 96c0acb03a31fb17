#include "base/dtype.h"

#include <strings.h>

#include "base/check.h"
#include "base/format.h"

namespace ridge {

#define RIDGE_DECLARE(name) extern const Format name##_format;
RIDGE_FORMATS(RIDGE_DECLARE)
#undef RIDGE_DECLARE
#define RIDGE_DECLARE(name) extern const Format name##_woven_format;
RIDGE_WOVEN_FORMATS(RIDGE_DECLARE)
#undef RIDGE_DECLARE

namespace {
#define RIDGE_ENTRY(name) &name##_format,
#define RIDGE_WOVEN_ENTRY(name) &name##_woven_format,
constexpr const Format* kFormats[] = {RIDGE_FORMATS(RIDGE_ENTRY) RIDGE_WOVEN_FORMATS(RIDGE_WOVEN_ENTRY)};
#undef RIDGE_ENTRY
#undef RIDGE_WOVEN_ENTRY
#define RIDGE_TYPE(name) DType::name,
constexpr DType kBlockTypes[] = {RIDGE_FORMATS(RIDGE_TYPE)};
constexpr DType kWovenFrom[] = {RIDGE_WOVEN_FORMATS(RIDGE_TYPE)};
#undef RIDGE_TYPE
#define RIDGE_TYPE(name) DType::name##_woven,
constexpr DType kWovenTypes[] = {RIDGE_WOVEN_FORMATS(RIDGE_TYPE)};
#undef RIDGE_TYPE
constexpr int kPlainTypes = int(DType::u8) + 1;
}  // namespace

const Format* format_of(DType type) { return is_block(type) ? kFormats[int(type) - kPlainTypes] : nullptr; }

std::span<const DType> block_types() { return kBlockTypes; }
std::span<const DType> woven_types() { return kWovenTypes; }

DType woven_of(DType type) {
  for (size_t i = 0; i < std::size(kWovenFrom); ++i)
    if (kWovenFrom[i] == type) return kWovenTypes[i];
  return type;
}
DType stored_of(DType type) { return is_woven(type) ? kWovenFrom[int(type) - kStoredTypes] : type; }

const Format* format_named(const char* name) {
  for (DType t : kBlockTypes)
    if (const Format* f = format_of(t); strcasecmp(f->name, name) == 0) return f;
  return nullptr;
}

const char* name_of(DType type) {
  constexpr const char* plain[] = {"f64", "f32", "f16", "bf16", "i32", "i64", "u8"};
  return is_block(type) ? format_of(type)->name : plain[int(type)];
}

int64_t bytes_of(DType type, int64_t n) {
  const Format* f = format_of(type);
  if (!f) return n * size_of(type);
  const int64_t values = int64_t(f->block) * f->rows;
  RIDGE_CHECK(n % values == 0, std::string("a row of ") + f->name + " is a whole number of blocks");
  return n / values * f->bytes;
}

void decode_values(const Format& f, const char* data, int64_t row_blocks, int64_t row, int64_t from, float* values, int64_t n) {
  const char* blocks = data + row / f.rows * row_blocks * f.bytes;
  f.rows == 1 ? f.decode(blocks + from / f.block * f.bytes, values, n) : f.decode_row(blocks, int(row % f.rows), from, values, n);
}

}  // namespace ridge
