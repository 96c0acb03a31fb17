#include "check/args.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "base/check.h"
#include "base/format.h"

namespace ridge {

namespace {

// Pairs of bytes that read as NaN in every floating type (and as a block's scale), and as an index far out of range. What is written has
// another pattern than what is read: a NaN keeps its bits on the way from a gap of the one to a gap of the other.
constexpr uint16_t kReadNan = 0xffff, kWrittenNan = 0x7ffe, kReadIndex = 0x5b5b, kWrittenIndex = 0x5c5c;

void fill(const Region& r, uint16_t pattern) {
  const auto odd = (r.data() - r.all()) % 2;  // the pattern starts at data(), which may be an odd address
  for (int64_t at = 0; at < r.all_bytes(); ++at) r.all()[at] = char((at + odd) % 2 ? pattern >> 8 : pattern & 0xff);
}

// Dimensions by stride, the densest first; those of one element last, their stride does not matter.
std::array<int, 4> by_stride(const View& v) {
  std::array<int, 4> order{0, 1, 2, 3};
  auto key = [&](int d) { return v.dims[d] == 1 || d >= v.rank ? INT64_MAX : v.strides[d]; };
  std::sort(order.begin(), order.end(), [&](int a, int b) { return key(a) != key(b) ? key(a) < key(b) : a < b; });
  return order;
}

// Calls f(first index in src, in dst, length) for runs along the dimension that is densest in src.
template <class F>
void for_each_run(const View& src, F&& f) {
  const int inner = by_stride(src)[0];
  int64_t outer[4], i[4];
  for (int d = 0; d < 4; ++d) outer[d] = d == inner ? 1 : src.dims[d];
  for (i[0] = 0; i[0] < outer[0]; ++i[0])
    for (i[1] = 0; i[1] < outer[1]; ++i[1])
      for (i[2] = 0; i[2] < outer[2]; ++i[2])
        for (i[3] = 0; i[3] < outer[3]; ++i[3]) f(i, inner, src.dims[inner]);
}

int64_t element(const View& v, const int64_t i[4]) {
  return i[0] * v.strides[0] + i[1] * v.strides[1] + i[2] * v.strides[2] + i[3] * v.strides[3];
}
bool runs_dense(const View& v, int inner) { return v.strides[inner] == 1 || v.dims[inner] == 1; }

void copy_run(const View& src, const View& dst, const int64_t i[4], int inner, int64_t n, std::vector<float>& decoded) {
  const int64_t from = element(src, i), to = element(dst, i);
  if (is_block(src.type)) {
    RIDGE_CHECK(runs_dense(src, inner), "the rows of a block format are contiguous");
    const char* p = src.data + bytes_of(src.type, from);
    if (src.type == dst.type) return void(memcpy(dst.data + bytes_of(dst.type, to), p, size_t(bytes_of(src.type, n))));
    decoded.resize(size_t(n));
    format_of(src.type)->decode(p, decoded.data(), n);
    View row = view_of(dst.data + to * size_of(dst.type), dst.type, {n});
    row.strides[0] = dst.strides[inner];
    for (int64_t k = 0; k < n; ++k) row.set(decoded[size_t(k)], k);
    return;
  }
  const int64_t a = size_of(src.type), b = size_of(dst.type);
  if (src.type == dst.type && runs_dense(src, inner) && runs_dense(dst, inner))
    return void(memcpy(dst.data + to * b, src.data + from * a, size_t(n * a)));
  View x = view_of(src.data + from * a, src.type, {n}), y = view_of(dst.data + to * b, dst.type, {n});
  x.strides[0] = src.strides[inner];
  y.strides[0] = dst.strides[inner];
  for (int64_t k = 0; k < n; ++k) {
    if (src.type == dst.type)
      memcpy(y.at(k), x.at(k), size_t(a));
    else
      y.set(x.get(k), k);
  }
}

// A woven matrix lies without gaps; in another type it is decoded row by row.
void copy_woven(const View& src, const View& dst) {
  if (src.type == dst.type) return void(memcpy(dst.data, src.data, size_t(src.bytes())));
  const Format& f = *format_of(src.type);
  std::vector<float> row(size_t(src.dims[1]));
  for (int64_t i = 0; i < src.dims[0]; ++i) {
    decode_values(f, src.data, src.dims[1] / f.block, i, 0, row.data(), src.dims[1]);
    for (int64_t j = 0; j < src.dims[1]; ++j) dst.set(row[size_t(j)], i, j);
  }
}

View with_gaps(View v) {
  if (is_woven(v.type)) return v;
  const int64_t pad = is_block(v.type) ? format_of(v.type)->block : 5;  // 5 elements: no row but the first is aligned
  int64_t extent = 0;                                                   // of what lies inside the dimension at hand
  for (int d : by_stride(v)) {
    if (d >= v.rank || v.dims[d] == 1 || v.strides[d] == 0) continue;
    if (extent) v.strides[d] = std::max(v.strides[d], extent) + pad;
    extent = v.dims[d] * v.strides[d];
  }
  return v;
}

// Rounds the elements of a plain view to another type and back. A block format quantises along the rows, the last block of
// each filled up with zeros.
void round_elements(const View& v, DType to) {
  if (!is_block(to)) {
    double cell = 0;
    View one = view_of(&cell, to, {1});
    for_each_index(v, [&](int64_t i, int64_t j, int64_t k, int64_t l) {
      one.set(v.get(i, j, k, l));
      v.set(one.get(), i, j, k, l);
    });
    return;
  }
  const Format& f = *format_of(to);
  const int64_t n = v.dims[v.rank - 1], padded = (n + f.block - 1) / f.block * f.block;
  std::vector<float> row(size_t(padded), 0.0f);
  std::vector<char> coded(size_t(bytes_of(to, padded)));
  View lines = v;  // the last dimension is walked here
  lines.dims[v.rank - 1] = 1;
  for_each_index(lines, [&](int64_t i, int64_t j, int64_t k, int64_t l) {
    View one = view_of(v.at(i, j, k, l), v.type, {n});
    one.strides[0] = v.strides[v.rank - 1];
    for (int64_t c = 0; c < n; ++c) row[size_t(c)] = float(one.get(c));
    f.encode(row.data(), coded.data(), padded);
    f.decode(coded.data(), row.data(), padded);
    for (int64_t c = 0; c < n; ++c) one.set(row[size_t(c)], c);
    std::fill(row.begin() + n, row.end(), 0.0f);
  });
}

bool is_floating(DType t) { return is_float(t) || is_block(t); }

int64_t skew_of(DType t, int operand) {
  constexpr int64_t elements[] = {1, 3, 5}, block_bytes[] = {2, 18, 34};
  return is_block(t) ? block_bytes[operand % 3] : elements[operand % 3] * size_of(t);
}

}  // namespace

const char* name_of(Placement p) {
  constexpr const char* names[] = {"own", "strided", "offset", "guard_after", "guard_before"};
  return names[int(p)];
}

int64_t span_of(const View& v) {
  if (!v || v.count() == 0) return 0;
  int64_t last = 0;
  for (int d = 0; d < v.rank; ++d) {
    RIDGE_CHECK(v.strides[d] >= 0, "a case's strides are not negative: " + to_string(v));
    last += (v.dims[d] - 1) * v.strides[d];
  }
  const Format* f = format_of(v.type);
  return f ? (last + f->block) / f->block * f->block : last + 1;  // whole blocks
}

void copy_elements(const View& src, const View& dst) {
  if (src.count() == 0) return;
  if (is_woven(src.type)) return copy_woven(src, dst);
  std::vector<float> decoded;
  for_each_run(src, [&](const int64_t i[4], int inner, int64_t n) { copy_run(src, dst, i, inner, n, decoded); });
}

void for_each_index(const View& v, const std::function<void(int64_t, int64_t, int64_t, int64_t)>& f) {
  for (int64_t i = 0; i < v.dims[0]; ++i)
    for (int64_t j = 0; j < v.dims[1]; ++j)
      for (int64_t k = 0; k < v.dims[2]; ++k)
        for (int64_t l = 0; l < v.dims[3]; ++l) f(i, j, k, l);
}

CaseArgs::CaseArgs(const OpInfo& op, const CaseInfo& c)
    : op_(&op), sampler_(std::make_shared<Sampler>(c.name)), args_(std::make_unique<char[]>(op.args_size)) {
  op.init(args_.get());
  c.make(*sampler_, args_.get());
}

bool CaseArgs::shares(int a, int b) const {
  const View &u = view(a), &v = view(b);
  return u && v && u.data == v.data && u.count() > 0 && v.count() > 0;
}

CaseArgs::CaseArgs(const CaseArgs& from, const CopyAs& how)
    : op_(from.op_), sampler_(from.sampler_), args_(std::make_unique<char[]>(from.op_->args_size)) {
  memcpy(args_.get(), from.args_.get(), op_->args_size);  // Args are trivially copyable: call<> asserts it
  std::vector<bool> done(size_t(operands()), false);
  for (int i = 0; i < operands(); ++i) {
    if (done[size_t(i)] || !from.has(i)) continue;
    std::vector<int> members{i};
    for (int j = i + 1; j < operands(); ++j)
      if (!how.unalias && from.shares(i, j)) members.push_back(j);
    for (int m : members) done[size_t(m)] = true;
    copy_group(from, std::move(members), how);
  }
}

void CaseArgs::copy_group(const CaseArgs& from, std::vector<int> members, const CopyAs& how) {
  Group g;
  const bool placed = how.only < 0 || std::find(members.begin(), members.end(), how.only) != members.end();
  const Placement placement = placed ? how.placement : Placement::own;
  const View& first = from.view(members[0]);
  bool alike = true;
  int64_t elements = 0;
  for (int m : members) {
    const View& v = from.view(m);
    RIDGE_CHECK(v.type == first.type, std::string(op_->name) + ": operands that share memory are of one type");
    alike = alike && std::equal(v.dims, v.dims + 4, first.dims) && std::equal(v.strides, v.strides + 4, first.strides);
    g.read = g.read || is_input(op_->operands[size_t(m)].role);
    g.written = g.written || output(m);
  }
  const bool inputs_rounded = how.rounds != DType::f64 && g.read && is_floating(first.type);
  DType type = first.type;
  if (how.f64 && is_floating(type))
    type = DType::f64;
  else if (is_block(type) && how.decoded && !g.written)  // what is written is rounded as its type rounds
    type = DType::f32;
  for (int m : members) {
    View v = from.view(m);
    if (placement == Placement::strided && alike) v = with_gaps(v);
    v.type = type;
    view(m) = v;
    elements = std::max(elements, span_of(v));
  }
  const Fence fence = placement == Placement::guard_after    ? Fence::guard_after
                      : placement == Placement::guard_before ? Fence::guard_before
                                                             : Fence::canaries;
  g.region = Region(bytes_of(type, elements), fence, placement == Placement::offset ? skew_of(type, members[0]) : 0);
  fill(g.region, is_floating(type) ? (g.written ? kWrittenNan : kReadNan) : (g.written ? kWrittenIndex : kReadIndex));
  for (int m : members) view(m).data = g.region.data();
  if (g.read)
    for (int m : members) copy_elements(from.view(m), view(m));
  if (inputs_rounded && !(is_block(how.rounds) && is_block(first.type)))  // a row that quantises inputs takes weights as they are
    for (int m : members)
      if (m == members[0] || !alike) round_elements(view(m), how.rounds);
  g.members = std::move(members);
  groups_.push_back(std::move(g));
}

void CaseArgs::arm() {
  for (Group& g : groups_) g.armed.assign(g.region.all(), g.region.all() + g.region.all_bytes());
}

void CaseArgs::restore() {
  for (Group& g : groups_) memcpy(g.region.all(), g.armed.data(), g.armed.size());
}

void CaseArgs::mark_elements(const Group& g, std::vector<char>& mask) const {
  for (int m : g.members) {
    if (!output(m)) continue;
    const View& v = view(m);
    const int64_t base = v.data - g.region.all();
    if (v.count() == 0) continue;
    if (is_block(v.type)) {
      for_each_run(v, [&](const int64_t i[4], int, int64_t n) {
        memset(mask.data() + base + bytes_of(v.type, element(v, i)), 1, size_t(bytes_of(v.type, n)));
      });
      continue;
    }
    const int64_t size = size_of(v.type);
    for_each_run(v, [&](const int64_t i[4], int inner, int64_t n) {
      const int64_t from = base + element(v, i) * size, stride = v.strides[inner] * size;
      if (stride == size) return void(memset(mask.data() + from, 1, size_t(n * size)));
      for (int64_t k = 0; k < n; ++k) memset(mask.data() + from + k * stride, 1, size_t(size));
    });
  }
}

std::string CaseArgs::describe_change(const Group& g, int64_t at) const {
  const Operand& o = op_->operands[size_t(g.members[0])];
  const View& v = view(g.members[0]);
  const int64_t byte = at - (g.region.data() - g.region.all());
  if (byte < 0) return fmt::format("{}: {} bytes before its first element were overwritten", o.name, -byte);
  if (byte >= g.region.bytes())
    return fmt::format("{}: {} bytes past its end were overwritten", o.name, byte - g.region.bytes() + 1);
  if (!g.written) return fmt::format("{}: an input changed, at byte {}", o.name, byte);
  return fmt::format("{}: the gap between its rows was overwritten, at byte {} of {}", o.name, byte, to_string(v));
}

std::string CaseArgs::damage() const {
  for (const Group& g : groups_) {
    if (memcmp(g.region.all(), g.armed.data(), g.armed.size()) == 0) continue;
    std::vector<char> mask(g.armed.size(), 0);
    mark_elements(g, mask);
    for (size_t at = 0; at < mask.size(); ++at)
      if (!mask[at] && g.region.all()[at] != g.armed[at]) return describe_change(g, int64_t(at));
  }
  return {};
}

}  // namespace ridge
