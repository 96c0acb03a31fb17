#include "base/view.h"

#include <cstring>

#include "base/check.h"
#include "base/format.h"

namespace ridge {

namespace {

constexpr int kLargestBlock = 256;

// A matrix whose rows lie one after the other, or its transpose.
double get_woven(const View& v, int64_t i, int64_t j) {
  const Format& f = *format_of(v.type);
  const bool turned = v.strides[1] != 1;
  if (turned) std::swap(i, j);
  float value;
  f.decode_row(v.data + i / f.rows * (v.strides[turned] / f.block) * f.bytes, int(i % f.rows), j, &value, 1);
  return value;
}

double get_block(const View& v, int64_t element) {
  const Format& f = *format_of(v.type);
  RIDGE_CHECK(f.block <= kLargestBlock, "a block is at most 256 values");
  float values[kLargestBlock];
  f.decode(v.data + element / f.block * f.bytes, values, f.block);
  return values[element % f.block];
}

template <class T>
T load(const char* p) {
  T x;
  memcpy(&x, p, sizeof x);
  return x;
}
template <class T>
void store(char* p, T x) {
  memcpy(p, &x, sizeof x);
}

}  // namespace

double View::get(int64_t i, int64_t j, int64_t k, int64_t l) const {
  if (is_woven(type)) return get_woven(*this, i, j);
  if (is_block(type)) return get_block(*this, i * strides[0] + j * strides[1] + k * strides[2] + l * strides[3]);
  const char* p = at(i, j, k, l);
  switch (type) {
    case DType::f64: return load<double>(p);
    case DType::f32: return load<float>(p);
    case DType::f16: return f32_from_f16(load<uint16_t>(p));
    case DType::bf16: return f32_from_bf16(load<uint16_t>(p));
    case DType::i32: return load<int32_t>(p);
    case DType::i64: return double(load<int64_t>(p));
    default: return load<uint8_t>(p);
  }
}

void View::set(double x, int64_t i, int64_t j, int64_t k, int64_t l) const {
  RIDGE_CHECK(!is_block(type), "block formats are written by their encoder, not element by element");
  char* p = at(i, j, k, l);
  switch (type) {
    case DType::f64: return store(p, x);
    case DType::f32: return store(p, float(x));
    case DType::f16: return store(p, std::bit_cast<uint16_t>(_Float16(x)));
    case DType::bf16: return store(p, bf16_from_f32(float(x)));
    case DType::i32: return store(p, int32_t(x));
    case DType::i64: return store(p, int64_t(x));
    default: return store(p, uint8_t(x));
  }
}

char* View::at_woven(int64_t i, int64_t j) const {
  const Format& f = *format_of(type);
  RIDGE_CHECK(rank == 2 && strides[1] == 1 && i % f.rows == 0 && j % f.block == 0, "woven rows are cut at whole blocks alone");
  return data + (i / f.rows * (strides[0] / f.block) + j / f.block) * f.bytes;
}

bool View::dense() const {
  int64_t stride = 1;
  for (int i = rank - 1; i >= 0; --i) {
    if (dims[i] != 1 && strides[i] != stride) return false;
    stride *= dims[i];
  }
  return true;
}

bool View::whole_blocks() const {
  const Format* f = format_of(type);
  if (!f || rank == 0 || !rows_dense() || dims[rank - 1] % f->block != 0) return false;
  for (int i = 0; i + 1 < rank; ++i)
    if (dims[i] > 1 && strides[i] % f->block != 0) return false;
  return true;
}

View View::t() const {
  RIDGE_CHECK(rank == 2, "only a matrix is transposed: " + to_string(*this));
  View v = *this;
  std::swap(v.dims[0], v.dims[1]);
  std::swap(v.strides[0], v.strides[1]);
  return v;
}

View View::rows(int64_t from, int64_t n) const {
  RIDGE_CHECK(from >= 0 && n >= 0 && from + n <= dims[0], "rows out of range of " + to_string(*this));
  View v = *this;
  v.data = at(from);
  v.dims[0] = n;
  return v;
}

View View::cols(int64_t from, int64_t n) const {
  RIDGE_CHECK(rank == 2 && from >= 0 && n >= 0 && from + n <= dims[1], "columns out of range of " + to_string(*this));
  View v = *this;
  v.data = at(0, from);
  v.dims[1] = n;
  return v;
}

View View::heads(int64_t n) const {
  RIDGE_CHECK(rank == 2 && dims[1] % n == 0 && strides[1] == 1, "columns do not split into heads: " + to_string(*this));
  View v = *this;
  v.rank = 3;
  v.dims[1] = n;
  v.dims[2] = dims[1] / n;
  v.strides[1] = v.dims[2];
  v.strides[2] = 1;
  return v;
}

View View::flat() const {
  RIDGE_CHECK(dense(), "only a view without gaps is flat: " + to_string(*this));
  return view_of(data, type, {count()});
}

View view_of(void* data, DType type, std::initializer_list<int64_t> dims) {
  RIDGE_CHECK(dims.size() >= 1 && dims.size() <= 4, "a view has rank 1 to 4");
  View v;
  v.data = static_cast<char*>(data);
  v.type = type;
  for (int64_t n : dims) v.dims[v.rank++] = n;
  int64_t stride = 1;
  for (int i = v.rank - 1; i >= 0; --i) {
    v.strides[i] = stride;
    stride *= v.dims[i];
  }
  return v;
}

std::string to_string(const View& v) {
  if (!v) return "(none)";
  std::string s = std::string(name_of(v.type)) + " [";
  for (int i = 0; i < v.rank; ++i) s += (i ? ", " : "") + std::to_string(v.dims[i]);
  s += "]";
  if (!v.dense()) {
    s += " strides [";
    for (int i = 0; i < v.rank; ++i) s += (i ? ", " : "") + std::to_string(v.strides[i]);
    s += "]";
  }
  return s;
}

}  // namespace ridge
