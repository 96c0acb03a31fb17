// The backward pass of attention on a CPU, compiled once per ISA. Two kinds of tasks, neither of which adds to what another one
// writes:
//
//   queries   a tile of rows in the lanes, over its keys:  S, dP -> dS;  dq += dS k
//   keys      a tile of keys in the lanes, over its rows:  S, dP -> P, dS;  dv += P d_o, dk += dS q
//
// Each computes S and dP anew, 7 products where 5 would do; in exchange there are no partial sums of dq to add up in a fixed
// order, and one long segment still gives work to all threads. Everything is made of the two products of attention_tile_cpu.h.
#include "ops/attention/attention_tile_cpu.h"

namespace ridge::RIDGE_ISA {
namespace {

constexpr int V = 2, L = V * kLanes;

struct KeyRange {
  int64_t from, to;
};

RIDGE_INLINE KeyRange visible(const AttentionGrad& a, const AttentionGradTask& t, int64_t row) {
  const int64_t p = row / a.group;  // as many keys as queries
  return {a.window > 0 ? larger(0, p - a.window + 1) : 0, a.causal ? p + 1 : t.tokens};
}
RIDGE_INLINE int64_t token_of(const AttentionGrad& a, const AttentionGradTask& t, int64_t row) {
  return t.first_token + row / a.group;
}
RIDGE_INLINE int64_t head_of(const AttentionGrad& a, const AttentionGradTask& t, int64_t row) {
  return t.kv_head * a.group + row % a.group;
}
RIDGE_INLINE int64_t offset(const HeadView& v, int64_t token, int64_t head) { return token * v.token + head * v.head; }

// Scores come out of the product ready for the exponential, or for the tanh of a softcap.
RIDGE_INLINE float query_scale(const AttentionGrad& a) { return a.softcap > 0 ? a.scale / a.softcap : a.scale; }
// An empty row's lse is -inf; against +inf all its weights are zero.
RIDGE_INLINE float lse_of(const AttentionGrad& a, int64_t token, int64_t head) {
  const float lse = a.lse[token * a.lse_token + head * a.lse_head];
  return lse == -__builtin_inff() ? __builtin_inff() : lse;
}

// f32 rows stay where they are, others (and those to be scaled) go to `panel` [n][width].
RIDGE_INLINE const float* row_at(const HeadView& v, int64_t token, int64_t head, float* panel, int64_t width) {
  const int64_t at = offset(v, token, head);
  if (v.type == CpuFloat::f32) return static_cast<const float*>(v.data) + at;
  widen_row(v.data, v.type, at, panel, width);
  return panel;
}

RIDGE_INLINE void add_lane(const HeadView& to, int64_t token, int64_t head, const float* panel, int lane, int64_t n,
                           float factor) {
  float row[kMaxDim];
  from_lane<L>(panel, lane, row, n);
  float* p = static_cast<float*>(to.data) + offset(to, token, head);
  each_vec(n,
           [&](int64_t c, int lanes) { store(p + c, fma(broadcast(factor), load(row + c, lanes), load(p + c, lanes)), lanes); });
}

struct Weights {
  Vec p, ds;
};
RIDGE_INLINE Weights weights_of(Vec s, Vec dp, Vec lse, Vec delta, Mask seen, float softcap) {
  Vec slope = broadcast(1);
  if (softcap > 0) {
    const Vec t = tanh(s);
    s = broadcast(softcap) * t;
    slope = broadcast(1) - t * t;
  }
  const Vec p = select(seen, exp(s - lse), zero());
  return {p, p * (dp - delta) * slope};
}

void deltas(const AttentionGrad& a, int64_t from, int64_t to) {
  float o[kMaxDim], d_o[kMaxDim];
  for (int64_t t = from; t < to; ++t)
    for (int64_t h = 0; h < a.heads; ++h) {
      widen_row(a.o.data, a.o.type, offset(a.o, t, h), o, a.dv);
      widen_row(a.d_o.data, a.d_o.type, offset(a.d_o, t, h), d_o, a.dv);
      Vec sum = zero();
      each_vec(a.dv, [&](int64_t c, int lanes) { sum = fma(load(o + c, lanes), load(d_o + c, lanes), sum); });
      a.delta[t * a.heads + h] = reduce_add(sum) - (a.d_lse ? a.d_lse[t * a.d_lse_token + h * a.d_lse_head] : 0);
    }
}

void queries(const AttentionGrad& a, const AttentionGradTask& t) {
  alignas(64) float q[kMaxDim * L], d_o[kMaxDim * L], dq[kMaxDim * L], s[kBlock * L], dp[kBlock * L];
  alignas(64) float k_panel[kBlock * kMaxDim], v_panel[kBlock * kMaxDim], lse[L], delta[L], from[L], to[L], row[kMaxDim];
  const float *k_rows[kBlock], *v_rows[kBlock];
  for (int r = 0; r < L; ++r) {
    const int64_t of = t.first + smaller(r, t.count - 1), token = token_of(a, t, of), head = head_of(a, t, of);
    widen_row(a.q.data, a.q.type, offset(a.q, token, head), row, a.d);
    to_lane<L>(q, r, row, a.d, query_scale(a));
    widen_row(a.d_o.data, a.d_o.type, offset(a.d_o, token, head), row, a.dv);
    to_lane<L>(d_o, r, row, a.dv, 1);
    const KeyRange seen = visible(a, t, of);
    lse[r] = lse_of(a, token, head), delta[r] = a.delta[token * a.heads + head];
    from[r] = float(seen.from), to[r] = float(seen.to);  // exact: a segment is shorter than 2^24 (takes() asks)
  }
  clear(dq, a.d * L);
  const Vec keep[V] = {broadcast(1), broadcast(1)};
  const int64_t end = visible(a, t, t.first + t.count - 1).to;
  for (int64_t j0 = visible(a, t, t.first).from; j0 < end; j0 += kBlock) {
    const int n = int(smaller(kBlock, end - j0));
    for (int j = 0; j < n; ++j) {
      k_rows[j] = row_at(a.k, t.first_token + j0 + j, t.kv_head, k_panel + j * a.d, a.d);
      v_rows[j] = row_at(a.v, t.first_token + j0 + j, t.kv_head, v_panel + j * a.dv, a.dv);
    }
    scores<V>(k_rows, n, q, a.d, s);
    scores<V>(v_rows, n, d_o, a.dv, dp);
    for (int v = 0; v < L; v += kLanes)
      for (int j = 0; j < n; ++j) {
        const Vec at = broadcast(float(j0 + j));
        const Mask seen = both(load(from + v) <= at, at < load(to + v));
        store(s + j * L + v,
              weights_of(load(s + j * L + v), load(dp + j * L + v), load(lse + v), load(delta + v), seen, a.softcap).ds);
      }
    accumulate<V>(dq, keep, k_rows, n, a.d, s);
  }
  for (int r = 0; r < t.count; ++r) add_lane(a.dq, token_of(a, t, t.first + r), head_of(a, t, t.first + r), dq, r, a.d, a.scale);
}

void keys(const AttentionGrad& a, const AttentionGradTask& t) {
  alignas(64) float k[kMaxDim * L], v[kMaxDim * L], dk[kMaxDim * L], d_v[kMaxDim * L], s[kBlock * L], dp[kBlock * L];
  alignas(64) float q_panel[kBlock * kMaxDim], o_panel[kBlock * kMaxDim], row[kMaxDim];
  const float *q_rows[kBlock], *o_rows[kBlock];
  for (int j = 0; j < L; ++j) {
    const int64_t token = t.first_token + t.first + smaller(j, t.count - 1);
    widen_row(a.k.data, a.k.type, offset(a.k, token, t.kv_head), row, a.d);
    to_lane<L>(k, j, row, a.d, 1);
    widen_row(a.v.data, a.v.type, offset(a.v, token, t.kv_head), row, a.dv);
    to_lane<L>(v, j, row, a.dv, 1);
  }
  clear(dk, a.d * L);
  clear(d_v, a.dv * L);
  const Vec keep[V] = {broadcast(1), broadcast(1)}, scale = broadcast(query_scale(a));
  // Rows that see some of these keys: from the first key's own query on (causal), until the last key has left the window.
  const int64_t first = (a.causal ? t.first : 0) * a.group;
  const int64_t end = (a.window > 0 ? smaller(t.tokens, t.first + t.count - 1 + a.window) : t.tokens) * a.group;
  for (int64_t r0 = first; r0 < end; r0 += kBlock) {
    const int n = int(smaller(kBlock, end - r0));
    for (int i = 0; i < n; ++i) {
      const int64_t token = token_of(a, t, r0 + i), head = head_of(a, t, r0 + i);
      float* q = q_panel + i * a.d;
      widen_row(a.q.data, a.q.type, offset(a.q, token, head), q, a.d);
      each_vec(a.d, [&](int64_t c, int lanes) { store(q + c, load(q + c, lanes) * scale, lanes); });
      q_rows[i] = q;
      o_rows[i] = row_at(a.d_o, token, head, o_panel + i * a.dv, a.dv);
    }
    scores<V>(q_rows, n, k, a.d, s);
    scores<V>(o_rows, n, v, a.dv, dp);
    for (int i = 0; i < n; ++i) {
      const int64_t token = token_of(a, t, r0 + i), head = head_of(a, t, r0 + i);
      const KeyRange seen = visible(a, t, r0 + i);
      const Vec lse = broadcast(lse_of(a, token, head)), delta = broadcast(a.delta[token * a.heads + head]);
      // Relative to the tile; lanes past the last key are cut off with the rest.
      const Vec from = broadcast(float(larger(seen.from - t.first, 0))),
                to = broadcast(float(larger(0, smaller(seen.to - t.first, t.count))));
      for (int u = 0; u < L; u += kLanes) {
        const Vec at = iota() + broadcast(float(u));
        const Weights w = weights_of(load(s + i * L + u), load(dp + i * L + u), lse, delta, both(from <= at, at < to), a.softcap);
        store(s + i * L + u, w.p);
        store(dp + i * L + u, w.ds);
      }
    }
    if (a.d_v.data) accumulate<V>(d_v, keep, o_rows, n, a.dv, s);
    if (a.dk.data) accumulate<V>(dk, keep, q_rows, n, a.d, dp);
  }
  const float factor = a.softcap > 0 ? a.softcap : 1;  // q came in scaled
  for (int j = 0; j < t.count; ++j) {
    const int64_t token = t.first_token + t.first + j;
    if (a.dk.data) add_lane(a.dk, token, t.kv_head, dk, j, a.d, factor);
    if (a.d_v.data) add_lane(a.d_v, token, t.kv_head, d_v, j, a.dv, 1);
  }
}

}  // namespace

extern const AttentionGradCpu attention_grad_cpu;
const AttentionGradCpu attention_grad_cpu{L, deltas, queries, keys};

}  // namespace ridge::RIDGE_ISA
