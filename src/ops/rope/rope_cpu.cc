// rope on a CPU, compiled once per ISA: a token at a time. Its angles are computed once for all heads, in integers: a phase is
// position * step modulo 2^64, so it is exact where a product of floats has lost all its bits (10^6 radians in f32 are off by
// 0.03). The phase splits into a quarter turn, which swaps and negates, and a rest of at most an eighth, which f32 polynomials
// turn into sine and cosine to 1 ulp. That is 32 angles in some 100 ns against 12 heads to turn and write: no table of cosines is
// kept anywhere.
#include "ops/rope/rope_cpu.h"

#include "tile/cpu/vec.h"

namespace ridge::RIDGE_ISA {
namespace {

constexpr int kMaxDim = 512;

template <class T>
RIDGE_INLINE Vec load_at(const void* data, int64_t i, int lanes) {
  const T* p = static_cast<const T*>(data) + i;
  return lanes == kLanes ? load(p) : load(p, lanes);
}
template <class T>
RIDGE_INLINE void store_at(void* data, int64_t i, Vec x, int lanes) {
  T* p = static_cast<T*>(data) + i;
  lanes == kLanes ? store(p, x) : store(p, x, lanes);
}

// f(const Vec&) over the n values at v + offset
RIDGE_INLINE void read_row(const RopeView& v, int64_t offset, int64_t n, float* to) {
  each_vec(n, [&](int64_t c, int lanes) {
    switch (v.type) {
      case RopeFloat::f32: return store_at<float>(to, c, load_at<float>(v.data, offset + c, lanes), lanes);
      case RopeFloat::f16: return store_at<float>(to, c, load_at<F16>(v.data, offset + c, lanes), lanes);
      case RopeFloat::bf16: return store_at<float>(to, c, load_at<Bf16>(v.data, offset + c, lanes), lanes);
      case RopeFloat::q8: return;  // nothing that is read is in blocks
    }
  });
}
// Q8_0 as its format defines it: an f16 scale d = max |x| / 127, then 32 times round(x / d). n is a multiple of 32.
RIDGE_INLINE void write_blocks(uint8_t* to, int64_t n, const float* from) {
  constexpr int kBlock = 32, kBytes = 34;
  alignas(64) float codes[kBlock];
  for (int64_t b = 0; b < n; b += kBlock, from += kBlock, to += kBytes) {
    Vec top = zero();
    for (int i = 0; i < kBlock; i += kLanes) top = max(abs(load(from + i)), top);
    const float d = reduce_max(top) / 127, inverse = d > 0 ? 1 / d : 0;
    F16 scale;
    store(&scale, broadcast(d), 1);
    __builtin_memcpy(to, &scale, 2);
    for (int i = 0; i < kBlock; i += kLanes)
      store(codes + i, round(max(broadcast(-127), min(broadcast(127), load(from + i) * broadcast(inverse)))));
    for (int i = 0; i < kBlock; ++i) to[2 + i] = uint8_t(int8_t(codes[i]));
  }
}

RIDGE_INLINE void write_row(const RopeView& v, int64_t offset, int64_t n, const float* from) {
  if (v.type == RopeFloat::q8) return write_blocks(static_cast<uint8_t*>(v.data) + offset / 32 * 34, n, from);
  each_vec(n, [&](int64_t c, int lanes) {
    const Vec x = load_at<float>(from, c, lanes);
    switch (v.type) {
      case RopeFloat::f32: return store_at<float>(v.data, offset + c, x, lanes);
      case RopeFloat::f16: return store_at<F16>(v.data, offset + c, x, lanes);
      case RopeFloat::bf16: return store_at<Bf16>(v.data, offset + c, x, lanes);
      case RopeFloat::q8: return;  // see write_blocks
    }
  });
}

// Cosines and sines as the rotation wants them: half_split [half]; interleaved [2 half], doubled, sines negated at even places.
struct Angles {
  alignas(64) float cosine[kMaxDim], sine[kMaxDim];
};

RIDGE_INLINE void sincos(Vec x, Vec* sine, Vec* cosine) {  // |x| <= pi / 4; the series' next terms are below 2e-9 and 1e-10
  const Vec z = x * x;
  *sine = fma(x * z, polynomial(z, -1.0f / 6, 1.0f / 120, -1.0f / 5040, 1.0f / 362880), x);
  *cosine = fma(z, polynomial(z, -0.5f, 1.0f / 24, -1.0f / 720, 1.0f / 40320, -1.0f / 3628800), broadcast(1));
}

RIDGE_INLINE void angles(const RopeTurn& t, int64_t token, float sense, Angles& out) {
  alignas(64) float rest[kMaxDim / 2 + kLanes], odd[kMaxDim / 2 + kLanes], cosine_sign[kMaxDim / 2 + kLanes],
      sine_sign[kMaxDim / 2 + kLanes];
  const uint64_t position = uint64_t(int64_t(t.positions[token * t.position_stride]));
  for (int64_t i = 0; i < t.half; ++i) {
    const uint32_t turn = uint32_t((position * t.steps[i]) >> 32);
    const uint32_t quarter = (turn + (1u << 29)) >> 30;                    // the nearest; all arithmetic wraps
    rest[i] = float(int32_t(turn - (quarter << 30))) * 1.46291807927e-9f;  // 2 pi / 2^32
    odd[i] = float(quarter & 1);
    cosine_sign[i] = 1 - float((quarter + 1) & 2);
    sine_sign[i] = 1 - float(quarter & 2);
  }
  alignas(64) float c[kMaxDim / 2 + kLanes], s[kMaxDim / 2 + kLanes];
  for (int64_t i = 0; i < t.half; i += kLanes) {  // lanes past half hold rubbish that nobody reads
    Vec sine, cosine;
    sincos(load(rest + i), &sine, &cosine);
    const Mask swapped = load(odd + i) == broadcast(1);
    store(c + i, select(swapped, sine, cosine) * load(cosine_sign + i) * broadcast(t.m));
    store(s + i, select(swapped, cosine, sine) * load(sine_sign + i) * broadcast(t.m * sense));
  }
  for (int64_t i = 0; i < t.half; ++i) {
    if (!t.interleaved) {
      out.cosine[i] = c[i], out.sine[i] = s[i];
    } else {
      out.cosine[2 * i] = out.cosine[2 * i + 1] = c[i];
      out.sine[2 * i] = -s[i], out.sine[2 * i + 1] = s[i];
    }
  }
}

RIDGE_INLINE void turn_row(const RopeTurn& t, const Angles& a, float* y) {
  if (!t.interleaved) {
    each_vec(t.half, [&](int64_t i, int lanes) {
      const Vec c = load_at<float>(a.cosine, i, lanes), s = load_at<float>(a.sine, i, lanes);
      const Vec u = load_at<float>(y, i, lanes), v = load_at<float>(y, t.half + i, lanes);
      store_at<float>(y, i, u * c - v * s, lanes);
      store_at<float>(y, t.half + i, fma(u, s, v * c), lanes);
    });
    return;
  }
  alignas(64) float neighbour[kMaxDim];
  for (int64_t i = 0; i < t.half; ++i) neighbour[2 * i] = y[2 * i + 1], neighbour[2 * i + 1] = y[2 * i];
  each_vec(2 * t.half, [&](int64_t i, int lanes) {
    const Vec other = load_at<float>(neighbour, i, lanes) * load_at<float>(a.sine, i, lanes);
    store_at<float>(y, i, fma(load_at<float>(y, i, lanes), load_at<float>(a.cosine, i, lanes), other), lanes);
  });
}

RIDGE_INLINE float inverse_rms(const float* x, int64_t d, float eps) {
  Vec sum = zero();
  each_vec(d, [&](int64_t c, int lanes) {
    const Vec v = load_at<float>(x, c, lanes);
    sum = fma(v, v, sum);
  });
  return 1 / __builtin_sqrtf(reduce_add(sum) / float(d) + eps);
}

RIDGE_INLINE void normalise(const float* w, int64_t d, float eps, float* y) {
  const Vec inv = broadcast(inverse_rms(y, d, eps));
  each_vec(d, [&](int64_t c, int lanes) {
    store_at<float>(y, c, load_at<float>(y, c, lanes) * inv * load_at<float>(w, c, lanes), lanes);
  });
}

void forward(const RopeCall& a, int64_t from, int64_t to) {
  Angles angle;
  alignas(64) float y[kMaxDim];
  const int64_t d = a.turn.d;
  for (int64_t t = from; t < to; ++t) {
    angles(a.turn, t, 1, angle);
    for (int64_t h = 0; h < a.heads; ++h) {
      read_row(a.q, t * a.q.outer + h * a.q.head, d, y);
      if (a.q_norm) normalise(a.q_norm, d, a.eps, y);
      turn_row(a.turn, angle, y);
      write_row(a.q_out, t * a.q_out.outer + h * a.q_out.head, d, y);
    }
    const int64_t slot = a.k_pages.data ? a.slots[t * a.slot_stride] : -1;
    auto place = [&](const RopeView& p, int64_t h) { return slot / a.page * p.outer + h * p.head + slot % a.page * p.row; };
    for (int64_t h = 0; h < a.kv_heads; ++h) {
      if (!a.k_out.data && slot < 0) break;
      read_row(a.k, t * a.k.outer + h * a.k.head, d, y);
      if (a.k_norm) normalise(a.k_norm, d, a.eps, y);
      turn_row(a.turn, angle, y);
      if (a.k_out.data) write_row(a.k_out, t * a.k_out.outer + h * a.k_out.head, d, y);
      if (slot < 0) continue;
      write_row(a.k_pages, place(a.k_pages, h), d, y);
      read_row(a.v, t * a.v.outer + h * a.v.head, a.dv, y);
      write_row(a.v_pages, place(a.v_pages, h), a.dv, y);
    }
  }
}

// dy becomes dx, d_norm grows: see rope.h for y = x w inv.
RIDGE_INLINE void differentiate_norm(const RopeGradCall& a, const float* x, float* dy) {
  const int64_t d = a.turn.d;
  const float inv = inverse_rms(x, d, a.eps);
  Vec sum = zero();
  each_vec(d, [&](int64_t c, int lanes) {
    const Vec g = load_at<float>(dy, c, lanes), in = load_at<float>(x, c, lanes);
    if (a.d_norm) store_at<float>(a.d_norm, c, fma(g * in, broadcast(inv), load_at<float>(a.d_norm, c, lanes)), lanes);
    sum = fma(g * load_at<float>(a.norm, c, lanes), in, sum);
  });
  const Vec along = broadcast(reduce_add(sum) * inv * inv / float(d));
  each_vec(d, [&](int64_t c, int lanes) {
    const Vec g = load_at<float>(dy, c, lanes) * load_at<float>(a.norm, c, lanes) - load_at<float>(x, c, lanes) * along;
    store_at<float>(dy, c, broadcast(inv) * g, lanes);
  });
}

void backward(const RopeGradCall& a, int64_t from, int64_t to) {
  Angles angle;
  alignas(64) float dy[kMaxDim], x[kMaxDim];
  const int64_t d = a.turn.d;
  for (int64_t c = 0; c < d && a.d_norm; ++c) a.d_norm[c] = 0;
  for (int64_t t = from; t < to; ++t) {
    angles(a.turn, t, -1, angle);
    for (int64_t h = 0; h < a.heads; ++h) {
      read_row(a.d_out, t * a.d_out.outer + h * a.d_out.head, d, dy);
      turn_row(a.turn, angle, dy);
      if (a.norm) {
        read_row(a.x, t * a.x.outer + h * a.x.head, d, x);
        differentiate_norm(a, x, dy);
      }
      if (!a.dx.data) continue;
      float* dx = static_cast<float*>(a.dx.data) + t * a.dx.outer + h * a.dx.head;
      each_vec(d, [&](int64_t c, int lanes) {
        store_at<float>(dx, c, load_at<float>(dx, c, lanes) + load_at<float>(dy, c, lanes), lanes);
      });
    }
  }
}

}  // namespace

extern const RopeCpu rope_cpu;
const RopeCpu rope_cpu{forward, backward};

}  // namespace ridge::RIDGE_ISA
