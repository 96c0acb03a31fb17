// vec.h's words in the compiler's vector extension: 4 lanes, what every 64-bit CPU has. Included by vec.h alone.
#pragma once

namespace ridge::RIDGE_ISA {
namespace {

constexpr int kLanes = 4;
using Floats = float __attribute__((vector_size(16)));
using Words = int32_t __attribute__((vector_size(16)));
struct Vec {
  Floats v;
};
struct Mask {
  Words m;
};  // -1 or 0 a lane

RIDGE_INLINE Vec broadcast(float x) { return {Floats{x, x, x, x}}; }
RIDGE_INLINE Vec zero() { return {Floats{}}; }
RIDGE_INLINE Vec iota() { return {Floats{0, 1, 2, 3}}; }
RIDGE_INLINE Mask first(int n) { return {Words{0, 1, 2, 3} < Words{n, n, n, n}}; }

// ---- memory
RIDGE_INLINE Vec load(const float* p) {
  Vec a;
  __builtin_memcpy(&a.v, p, sizeof a.v);
  return a;
}
RIDGE_INLINE void store(float* p, Vec a) { __builtin_memcpy(p, &a.v, sizeof a.v); }
template <class T, class Convert>
RIDGE_INLINE Vec gather(const T* p, int n, Convert convert) {
  Vec a = zero();
  for (int i = 0; i < n; ++i) a.v[i] = convert(p[i]);
  return a;
}
RIDGE_INLINE Vec load(const float* p, int n) {
  return gather(p, n, [](float x) { return x; });
}
RIDGE_INLINE void store(float* p, Vec a, int n) {
  for (int i = 0; i < n; ++i) p[i] = a.v[i];
}

RIDGE_INLINE float widen(Bf16 h) {
  const uint32_t u = uint32_t(h.bits) << 16;
  float x;
  __builtin_memcpy(&x, &u, sizeof x);
  return x;
}
RIDGE_INLINE Bf16 narrow_bf16(float x) {
  uint32_t u;
  __builtin_memcpy(&u, &x, sizeof u);
  if ((u & 0x7fffffff) > 0x7f800000) return {uint16_t(u >> 16 | 0x40)};
  return {uint16_t((u + 0x7fff + (u >> 16 & 1)) >> 16)};
}
RIDGE_INLINE float widen(F16 h) {  // by hand: without F16C the compiler calls its runtime library
  uint32_t u = uint32_t(h.bits & 0x7fff) << 13;
  float x;
  __builtin_memcpy(&x, &u, sizeof x);
  x *= 0x1p112f;  // the exponent's bias; subnormals come out right
  __builtin_memcpy(&u, &x, sizeof u);
  if (x >= 65536) u |= 0x7f800000;  // infinities and NaN
  u |= uint32_t(h.bits & 0x8000) << 16;
  __builtin_memcpy(&x, &u, sizeof x);
  return x;
}
RIDGE_INLINE F16 narrow_f16(float x) {
  const _Float16 h = _Float16(x);
  F16 bits;
  __builtin_memcpy(&bits, &h, sizeof bits);
  return bits;
}
RIDGE_INLINE Vec load(const Bf16* p, int n) {
  return gather(p, n, [](Bf16 x) { return widen(x); });
}
RIDGE_INLINE Vec load(const Bf16* p) { return load(p, kLanes); }
RIDGE_INLINE Vec load(const F16* p, int n) {
  return gather(p, n, [](F16 x) { return widen(x); });
}
RIDGE_INLINE Vec load(const F16* p) { return load(p, kLanes); }
RIDGE_INLINE Vec load(const int8_t* p, int n) {
  return gather(p, n, [](int8_t x) { return float(x); });
}
RIDGE_INLINE Vec load(const int8_t* p) { return load(p, kLanes); }
RIDGE_INLINE Vec load(const uint8_t* p, int n) {
  return gather(p, n, [](uint8_t x) { return float(x); });
}
RIDGE_INLINE Vec load(const uint8_t* p) { return load(p, kLanes); }
RIDGE_INLINE void store(Bf16* p, Vec a, int n) {
  for (int i = 0; i < n; ++i) p[i] = narrow_bf16(a.v[i]);
}
RIDGE_INLINE void store(Bf16* p, Vec a) { store(p, a, kLanes); }
RIDGE_INLINE void store(F16* p, Vec a, int n) {
  for (int i = 0; i < n; ++i) p[i] = narrow_f16(a.v[i]);
}
RIDGE_INLINE void store(F16* p, Vec a) { store(p, a, kLanes); }

// ---- arithmetic
RIDGE_INLINE Vec select(Mask m, Vec a, Vec b) { return {m.m ? a.v : b.v}; }
RIDGE_INLINE Vec operator+(Vec a, Vec b) { return {a.v + b.v}; }
RIDGE_INLINE Vec operator-(Vec a, Vec b) { return {a.v - b.v}; }
RIDGE_INLINE Vec operator*(Vec a, Vec b) { return {a.v * b.v}; }
RIDGE_INLINE Vec operator/(Vec a, Vec b) { return {a.v / b.v}; }
RIDGE_INLINE Vec operator-(Vec a) { return {-a.v}; }
RIDGE_INLINE Vec fma(Vec a, Vec b, Vec c) { return {a.v * b.v + c.v}; }
RIDGE_INLINE Vec min(Vec a, Vec b) { return {a.v < b.v ? a.v : b.v}; }
RIDGE_INLINE Vec max(Vec a, Vec b) { return {a.v > b.v ? a.v : b.v}; }
RIDGE_INLINE Vec abs(Vec a) { return {Floats(Words(a.v) & 0x7fffffff)}; }
RIDGE_INLINE Vec sqrt(Vec a) {
  for (int i = 0; i < kLanes; ++i) a.v[i] = __builtin_sqrtf(a.v[i]);
  return a;
}
RIDGE_INLINE Vec round(Vec a) {  // |a| < 2^22: beside 1.5 * 2^23 a float has no fraction
  const Floats magic = broadcast(12582912.0f).v;
  return {(a.v + magic) - magic};
}

// Two steps of half the exponent, so that each factor is a normal number and a subnormal result is rounded once.
RIDGE_INLINE Vec times_power_of_2(Vec a, Vec n) {  // n whole, |n| <= 252; where n is NaN so is a, and any factor will do
  const Words whole = __builtin_convertvector(select({n.v == n.v}, n, zero()).v, Words), half = whole >> 1;
  return {a.v * Floats((half + 127) << 23) * Floats((whole - half + 127) << 23)};
}

// ---- lanes
RIDGE_INLINE Mask operator<(Vec a, Vec b) { return {a.v < b.v}; }
RIDGE_INLINE Mask operator<=(Vec a, Vec b) { return {a.v <= b.v}; }
RIDGE_INLINE Mask operator==(Vec a, Vec b) { return {a.v == b.v}; }
RIDGE_INLINE Mask both(Mask a, Mask b) { return {a.m & b.m}; }

RIDGE_INLINE float reduce_add(Vec a) { return (a.v[0] + a.v[2]) + (a.v[1] + a.v[3]); }
RIDGE_INLINE float reduce_max(Vec a) {
  const float x = a.v[0] > a.v[2] ? a.v[0] : a.v[2], y = a.v[1] > a.v[3] ? a.v[1] : a.v[3];
  return x > y ? x : y;
}

RIDGE_INLINE void store_sums(float* p, Vec a, Vec b, Vec c, Vec d) {
  p[0] = reduce_add(a), p[1] = reduce_add(b), p[2] = reduce_add(c), p[3] = reduce_add(d);
}

}  // namespace
}  // namespace ridge::RIDGE_ISA
