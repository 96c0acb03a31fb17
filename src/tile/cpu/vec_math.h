// Loops and elementary functions in vec.h's words: the same source for every ISA. Polynomials are our own minimax fits.
// Included by vec.h alone.
#pragma once

namespace ridge::RIDGE_ISA {
namespace {

// f(i, lanes) for i = 0, kLanes, ...: full vectors first, then the tail.
template <class F>
RIDGE_INLINE void each_vec(int64_t n, F&& f) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) f(i, kLanes);
  if (i < n) f(i, int(n - i));
}

RIDGE_INLINE Vec polynomial(Vec, float last) { return broadcast(last); }
template <class... More>
RIDGE_INLINE Vec polynomial(Vec x, float c, More... more) {
  return fma(polynomial(x, more...), x, broadcast(c));
}

// e^x = 2^n e^r with n = round(x / ln 2), |r| <= ln 2 / 2. The high part of ln 2 has 9 bits, so n times it is exact.
RIDGE_INLINE Vec exp(Vec x) {
  const Vec in = min(broadcast(89), max(broadcast(-104), x));  // beyond, the answers are inf and 0 already; NaN passes
  const Vec n = round(in * broadcast(1.44269504f));
  const Vec r = fma(n, broadcast(2.12194440e-4f), fma(n, broadcast(-0.693359375f), in));
  const Vec p = polynomial(r, 4.999999345e-01f, 1.666652069e-01f, 4.166838741e-02f, 8.368710035e-03f, 1.381461100e-03f);
  return times_power_of_2(fma(r * r, p, r) + broadcast(1), n);
}

RIDGE_INLINE Vec sigmoid(Vec x) { return broadcast(1) / (broadcast(1) + exp(-x)); }
RIDGE_INLINE Vec silu(Vec x) { return x / (broadcast(1) + exp(-x)); }

RIDGE_INLINE Vec tanh(Vec x) {
  const Vec size = abs(x), square = x * x;
  const Vec near =
      fma(x * square,
          polynomial(square, -3.333328194e-01f, 1.333144216e-01f, -5.373971216e-02f, 2.063907874e-02f, -5.704978373e-03f), x);
  const Vec far = broadcast(1) - broadcast(2) / (exp(size + size) + broadcast(1));
  return select(size < broadcast(0.625f), near, select(x < zero(), -far, far));
}

// Phi(-|x|) = e^(-x^2 / 2) q(t) with t = 1 / (1 + 0.3 |x|); q is fitted to 6e-8 relative for |x| <= 14.
RIDGE_INLINE Vec normal_cdf(Vec x) {
  const Vec size = abs(x), t = broadcast(1) / fma(size, broadcast(0.3f), broadcast(1));
  const Vec q = polynomial(t, 7.169252146e-06f, 1.194876815e-01f, 1.219204024e-01f, 9.468325931e-02f, 1.425362074e-01f,
                           -7.650755390e-02f, 2.286610938e-01f, -1.691666339e-01f, 3.837840311e-02f);
  const Vec tail = exp(x * x * broadcast(-0.5f)) * q;
  return select(x < zero(), tail, broadcast(1) - tail);
}
RIDGE_INLINE Vec gelu(Vec x) { return x * normal_cdf(x); }

// (1 + tanh u) / 2 = sigmoid(2 u), which does not cancel in the left tail.
RIDGE_INLINE Vec gelu_tanh(Vec x) {
  const Vec twice = x * fma(x * x, broadcast(0.0713548162f), broadcast(1.59576912f));
  return x / (broadcast(1) + exp(-twice));
}

}  // namespace
}  // namespace ridge::RIDGE_ISA
