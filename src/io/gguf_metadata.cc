// What a GGUF file's metadata can say and what its type numbers mean; gguf.cc finds the values, this file interprets them.
#include <bit>
#include <cstring>

#include "base/format.h"
#include "io/gguf.h"

static_assert(std::endian::native == std::endian::little, "files are read in place, as little-endian");

namespace ridge {

// ---- types

namespace {

struct PlainType {
  DType type;
  uint32_t number;
};
constexpr PlainType kPlain[] = {{DType::f32, 0},  {DType::f16, 1},  {DType::i32, 26},
                                {DType::i64, 27}, {DType::f64, 28}, {DType::bf16, 30}};

constexpr int8_t kValueBytes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};

template <class T>
T load(const char* p) {
  T x;
  memcpy(&x, p, sizeof x);
  return x;
}

}  // namespace

std::optional<DType> dtype_of_gguf(uint32_t number) {
  std::optional<DType> found;
  for (const PlainType& p : kPlain)
    if (p.number == number) found = p.type;
  for (DType t : block_types())
    if (uint32_t(format_of(t)->gguf_type) == number) found = t;
  return found;
}

std::optional<uint32_t> gguf_of_dtype(DType type) {
  if (is_woven(type)) return std::nullopt;
  if (const Format* f = format_of(type)) return uint32_t(f->gguf_type);
  for (const PlainType& p : kPlain)
    if (p.type == type) return p.number;
  return std::nullopt;
}

std::string gguf_type_name(uint32_t type) {
  constexpr const char* names[] = {"F32",     "F16",   "Q4_0",   "Q4_1",  nullptr, nullptr,  "Q5_0",  "Q5_1",    "Q8_0",
                                   "Q8_1",    "Q2_K",  "Q3_K",   "Q4_K",  "Q5_K",  "Q6_K",   "Q8_K",  "IQ2_XXS", "IQ2_XS",
                                   "IQ3_XXS", "IQ1_S", "IQ4_NL", "IQ3_S", "IQ2_S", "IQ4_XS", "I8",    "I16",     "I32",
                                   "I64",     "F64",   "IQ1_M",  "BF16",  nullptr, nullptr,  nullptr, "TQ1_0",   "TQ2_0",
                                   nullptr,   nullptr, nullptr,  "MXFP4", "NVFP4"};
  if (type < sizeof names / sizeof *names && names[type]) return names[type];
  return "type " + std::to_string(type);
}

int64_t gguf_value_bytes(GgufType type) { return uint32_t(type) < sizeof kValueBytes ? kValueBytes[int(type)] : 0; }

// ---- metadata values

std::optional<int64_t> GgufValue::integer(int64_t i) const {
  if (i < 0 || i >= count || type == GgufType::string) return std::nullopt;
  const char* p = raw.data() + i * kValueBytes[int(type)];
  switch (type) {
    case GgufType::u8: return load<uint8_t>(p);
    case GgufType::i8: return load<int8_t>(p);
    case GgufType::u16: return load<uint16_t>(p);
    case GgufType::i16: return load<int16_t>(p);
    case GgufType::u32: return load<uint32_t>(p);
    case GgufType::i32: return load<int32_t>(p);
    case GgufType::i64: return load<int64_t>(p);
    case GgufType::u64: {
      const uint64_t x = load<uint64_t>(p);
      return x >> 63 ? std::nullopt : std::optional(int64_t(x));
    }
    default: return std::nullopt;
  }
}

std::optional<double> GgufValue::number(int64_t i) const {
  if (const std::optional<int64_t> n = integer(i)) return double(*n);
  if (i < 0 || i >= count) return std::nullopt;
  if (type == GgufType::f32) return load<float>(raw.data() + 4 * i);
  if (type == GgufType::f64) return load<double>(raw.data() + 8 * i);
  if (type == GgufType::u64) return double(load<uint64_t>(raw.data() + 8 * i));
  return std::nullopt;
}

std::optional<bool> GgufValue::boolean(int64_t i) const {
  if (i < 0 || i >= count || type != GgufType::boolean) return std::nullopt;
  return raw[size_t(i)] != 0;
}

std::optional<std::string_view> GgufValue::text(int64_t i) const {
  if (i < 0 || i >= count || type != GgufType::string) return std::nullopt;
  return strings[size_t(i)];
}

GgufMetadata::GgufMetadata(std::vector<Entry> entries, std::shared_ptr<const Mapping> file)
    : entries_(std::move(entries)), file_(std::move(file)) {}

const GgufValue* GgufMetadata::find(std::string_view key) const {
  for (const Entry& e : entries_)
    if (e.key == key) return &e.value;
  return nullptr;
}

bool GgufMetadata::get_bool(std::string_view key, bool otherwise) const {
  const GgufValue* v = find(key);
  return v && !v->array ? v->boolean().value_or(otherwise) : otherwise;
}
int64_t GgufMetadata::get_int(std::string_view key, int64_t otherwise) const {
  const GgufValue* v = find(key);
  return v && !v->array ? v->integer().value_or(otherwise) : otherwise;
}
double GgufMetadata::get_number(std::string_view key, double otherwise) const {
  const GgufValue* v = find(key);
  return v && !v->array ? v->number().value_or(otherwise) : otherwise;
}
std::string GgufMetadata::get_string(std::string_view key, std::string_view otherwise) const {
  const GgufValue* v = find(key);
  return std::string(v && !v->array ? v->text().value_or(otherwise) : otherwise);
}
const std::vector<std::string_view>& GgufMetadata::get_strings(std::string_view key) const {
  static const std::vector<std::string_view> none;
  const GgufValue* v = find(key);
  return v && v->array ? v->strings : none;
}

namespace {
Json element_json(const GgufValue& v, int64_t i) {
  if (const auto s = v.text(i)) return *s;
  if (const auto b = v.boolean(i)) return *b;
  if (const auto n = v.integer(i)) return *n;
  return *v.number(i);
}
}  // namespace

Json GgufMetadata::to_json(int64_t longest_array) const {
  Json object = Json::object();
  for (const Entry& e : entries_) {
    if (!e.value.array) object.append(std::string(e.key), element_json(e.value, 0));
    if (!e.value.array || e.value.count > longest_array) continue;
    Json items = Json::array();
    for (int64_t i = 0; i < e.value.count; ++i) items.push(element_json(e.value, i));
    object.append(std::string(e.key), std::move(items));
  }
  return object;
}

}  // namespace ridge
