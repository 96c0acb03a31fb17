// The flash form of attention with queries in the lanes, as a skeleton: who multiplies is a parameter.
//
// A task is a tile of rows, walked in sub-tiles of two vectors of rows, against a range of keys, walked in blocks of 64. A block is made
// ready to multiply once for all sub-tiles. Sub-tiles keep their queries and results [features][rows] in the second-level cache; the
// scores of a block and sub-tile [keys][rows] stay in the first.
// Scores are in units of ln 2, so that weights are powers of two. A row's base m need not be its maximum: it follows once the maximum
// leads by more than 8, so that results are seldom rescaled; weights are then at most 256, which costs no bit of a float.
//
// Products gives:  kBlock, kPad                             keys of a block; scores come in multiples of kPad keys
//                  load_keys(call, task, from, n)           makes a block ready to multiply
//                  pack_queries<L>(rows, d, v, to)          vector v of the sub-tile's L rows, from [kLanes][d]
//                  block(call, task, subs, count, from, n)  one block against all sub-tiles
//
// A block that a row sees nothing of leaves the row's state as it was, to the last bit, so results do not depend on which rows share a
// sub-tile nor on which blocks others need. Masked scores are -inf; a row that has seen nothing has m = -inf and base 0: exact zeros.
#pragma once
#include "ops/attention/attention_tile_cpu.h"
#include "tile/cpu/exp2.h"
#include "tile/cpu/transpose.h"

namespace ridge::RIDGE_ISA {
namespace {

constexpr float kMinusInf = -__builtin_inff();
constexpr float kLog2E = 1.44269504f;
constexpr int kSubRows = 2 * kLanes;
constexpr int kTaskSubs = (kMostTaskRows + kSubRows - 1) / kSubRows;
constexpr float kLead = 8;

struct KeyRange {
  int64_t from, to;
};

// What row r of the segment sees.
RIDGE_INLINE KeyRange visible(const AttentionCall& a, const AttentionTask& t, int64_t row) {
  const int64_t p = t.keys - t.queries + row / a.group;
  return {a.window > 0 ? larger(0, p - a.window + 1) : 0, a.causal ? larger(0, p + 1) : t.keys};
}

RIDGE_INLINE int64_t token_of(const AttentionCall& a, const AttentionTask& t, int64_t r) {
  return t.first_token + (t.first_row + r) / a.group;
}
RIDGE_INLINE int64_t head_of(const AttentionCall& a, const AttentionTask& t, int64_t r) {
  return t.kv_head * a.group + (t.first_row + r) % a.group;
}

// Element offsets of n rows of q or o from row r of the task on: one division for all of them.
RIDGE_INLINE void row_offsets(const AttentionCall& a, const AttentionTask& t, const HeadView& view, int64_t r, int n,
                              int64_t* offsets) {
  int64_t token = token_of(a, t, r), in_group = (t.first_row + r) % a.group;
  for (int i = 0; i < n; ++i) {
    offsets[i] = token * view.token + (t.kv_head * a.group + in_group) * view.head;
    if (++in_group == a.group) in_group = 0, ++token;
  }
}

// Element offsets of n keys from key `from` on.
RIDGE_INLINE void key_offsets(const AttentionCall& a, const AttentionTask& t, const KeyView& k, int64_t from, int n,
                              int64_t* offsets) {
  const int64_t head = t.kv_head * k.head;
  if (!t.table) {
    for (int j = 0; j < n; ++j) offsets[j] = head + (t.first_token + from + j) * k.row;
    return;
  }
  int64_t page = from / a.page, at = from % a.page;
  for (int j = 0; j < n; ++page, at = 0) {
    const int64_t base = head + int64_t(t.table[page * t.table_stride]) * k.page + at * k.row;
    const int run = int(smaller(n - j, a.page - at));
    for (int i = 0; i < run; ++i) offsets[j + i] = base + i * k.row;
    j += run;
  }
}

// q is scaled once, so that scores come out ready for 2^s (or for the tanh of a softcap).
RIDGE_INLINE float query_scale(const AttentionCall& a) { return a.softcap > 0 ? a.scale / a.softcap : a.scale * kLog2E; }
RIDGE_INLINE Vec capped(Vec x, float softcap) { return broadcast(softcap * kLog2E) * tanh(x); }

// o / l and lse of one row, from its unnormalised o. The few operations on lse are in double: they are where its bits go.
RIDGE_INLINE void finish_row(const AttentionCall& a, const AttentionTask& t, int64_t r, int64_t offset, const float* o, float m,
                             float l) {
  float factor = l > 0 ? 1 / l : 0;
  if (a.sinks || a.lse) {
    constexpr double kLn2 = 0.693147180559945309;
    const int64_t token = token_of(a, t, r), head = head_of(a, t, r);
    const double base = double(m) * kLn2;
    float lse = l > 0 ? float(base + double(__builtin_logf(l))) : kMinusInf;
    if (a.sinks && l > 0) {
      const double sink = double(a.sinks[head * a.sink_stride]), top = base > sink ? base : sink;
      const float shrink = __builtin_expf(float(base - top)), sum = l * shrink + __builtin_expf(float(sink - top));
      factor = shrink / sum;
      lse = float(top + double(__builtin_logf(sum)));
    }
    if (a.lse) a.lse[token * a.lse_token + head * a.lse_head] = lse;
  }
  store_row(a.o, offset, o, a.dv, factor);
}

// offset: of the row in o
RIDGE_INLINE void give_row(const AttentionCall& a, const AttentionTask& t, int64_t r, int64_t offset, const float* o, float m,
                           float l) {
  if (!t.partial) return finish_row(a, t, r, offset, o, m, l);
  float* p = t.partial + r * (a.dv + 2);
  each_vec(a.dv, [&](int64_t c, int lanes) { store(p + c, load(o + c, lanes), lanes); });
  p[a.dv] = m;
  p[a.dv + 1] = l;
}

struct Sub {
  int first, rows;   // of the task
  char* q;           // as Products packs them
  float *o, *m, *l;  // [dv padded][V kLanes], [V kLanes] each
};

// The rows of a sub-tile are on their way from memory while another one is worked on.
RIDGE_INLINE void prefetch_rows(const AttentionCall& a, const AttentionTask& t, const HeadView& view, int64_t d, const Sub& sub,
                                bool write) {
  const int64_t bytes = view.type == CpuFloat::f32 ? 4 : 2;
  int64_t offsets[kSubRows];
  row_offsets(a, t, view, sub.first, sub.rows, offsets);
  for (int r = 0; r < sub.rows; ++r) {
    const char* at = static_cast<const char*>(view.data) + offsets[r] * bytes;
    for (int64_t i = 0; i < d * bytes; i += 64) write ? __builtin_prefetch(at + i, 1) : __builtin_prefetch(at + i, 0);
  }
}

// Scaled rows of q, one a lane; lanes past the last row are zero.
template <int V, class P>
RIDGE_INLINE void load_queries(const AttentionCall& a, const AttentionTask& t, const Sub& sub) {
  constexpr int L = V * kLanes;
  alignas(64) float rows[kLanes * kMaxDim];
  const int64_t d = padded_dim(a.d);
  const Vec scale = broadcast(query_scale(a));
  int64_t offsets[V * kLanes];
  row_offsets(a, t, a.q, sub.first, sub.rows, offsets);
  for (int v = 0; v < V; ++v) {
    for (int i = 0; i < kLanes; ++i) {
      float* row = rows + i * d;
      const bool real = v * kLanes + i < sub.rows;
      if (real) widen_row(a.q.data, a.q.type, offsets[v * kLanes + i], row, a.d);
      for (int64_t c = real ? a.d : 0; c < d; ++c) row[c] = 0;
      for (int64_t c = 0; c < d; c += kLanes) store(row + c, load(row + c) * scale);
    }
    P::template pack_queries<L>(rows, d, v, sub.q);
  }
  clear(sub.o, padded_dim(a.dv) * L);
  for (int v = 0; v < V; ++v) store(sub.m + v * kLanes, broadcast(kMinusInf)), store(sub.l + v * kLanes, zero());
}

template <int V>
RIDGE_INLINE void give_rows(const AttentionCall& a, const AttentionTask& t, const Sub& sub) {
  constexpr int L = V * kLanes;
  alignas(64) float rows[kLanes * kMaxDim];
  const int64_t d = padded_dim(a.dv);
  int64_t offsets[V * kLanes];
  row_offsets(a, t, a.o, sub.first, sub.rows, offsets);
  for (int v = 0; v < V; ++v) {
    for (int64_t c = 0; c < d; c += kLanes) {
      Vec x[kLanes];
      for (int i = 0; i < kLanes; ++i) x[i] = load(sub.o + (c + i) * L + v * kLanes);
      transpose(x);
      for (int i = 0; i < kLanes; ++i) store(rows + i * d + c, x[i]);
    }
    for (int i = 0; i < kLanes && v * kLanes + i < sub.rows; ++i) {
      const int r = v * kLanes + i;
      give_row(a, t, sub.first + r, offsets[r], rows + i * d, sub.m[r], sub.l[r]);
    }
  }
}

// A block against a sub-tile, as far as it has got.
template <int V>
struct Step {
  const Sub* sub;
  int n, padded;  // keys that some row sees; scores of so many are there
  bool masked, rescale;
  alignas(64) float from[V * kLanes], to[V * kLanes];  // each lane's own keys, where masked
  Vec base[V], alpha[V], sum[V];
};

// False: no row sees the block.
template <int V>
RIDGE_INLINE bool look(const AttentionCall& a, const AttentionTask& t, const Sub& sub, int64_t block, int n, int pad,
                       Step<V>& st) {
  const KeyRange first = visible(a, t, t.first_row + sub.first), last = visible(a, t, t.first_row + sub.first + sub.rows - 1);
  if (last.to <= block || first.from >= block + n) return false;
  st.sub = &sub;
  st.n = int(smaller(n, last.to - block));
  st.padded = (st.n + pad - 1) / pad * pad;
  st.masked = first.to < block + st.padded || last.from > block;
  for (int r = 0; r < V * kLanes && st.masked; ++r) {
    const KeyRange seen = r < sub.rows ? visible(a, t, t.first_row + sub.first + r) : KeyRange{0, 0};
    st.from[r] = float(larger(seen.from - block, 0));
    st.to[r] = float(larger(smaller(seen.to - block, st.n), 0));
  }
  return true;
}

// The largest of scores [from, to) a lane.
template <int V>
RIDGE_INLINE void raise_tops(const float* s, int from, int to, Vec (&even)[V], Vec (&odd)[V]) {
  constexpr int L = V * kLanes;
  int j = from;
  for (; j + 2 <= to; j += 2)
#pragma GCC unroll 2
    for (int v = 0; v < V; ++v) {
      even[v] = max(load(s + j * L + v * kLanes), even[v]);
      odd[v] = max(load(s + (j + 1) * L + v * kLanes), odd[v]);
    }
  for (int v = 0; v < V && j < to; ++v) even[v] = max(load(s + j * L + v * kLanes), even[v]);
}

// Scores as the softmax takes them: capped, and -inf where a row does not see the key.
template <int V>
RIDGE_INLINE void mask_scores(const Step<V>& st, float softcap, float* s) {
  constexpr int L = V * kLanes;
  for (int j = 0; j < st.padded; ++j)
    for (int v = 0; v < V; ++v) {
      Vec x = load(s + j * L + v * kLanes);
      if (softcap > 0) x = capped(x, softcap);
      if (st.masked) {
        const Vec at = broadcast(float(j));
        x = select(both(load(st.from + v * kLanes) <= at, at < load(st.to + v * kLanes)), x, broadcast(kMinusInf));
      }
      store(s + j * L + v * kLanes, x);
    }
}

// The bases follow the largest scores; alpha is what everything before shrinks by.
template <int V>
RIDGE_INLINE void rebase(Step<V>& st, const Vec (&top)[V]) {
  st.rescale = false;
  for (int v = 0; v < V; ++v) {
    const Vec m = load(st.sub->m + v * kLanes), next = select(m + broadcast(kLead) < top[v], top[v], m);
    st.base[v] = select(next == broadcast(kMinusInf), zero(), next);
    st.alpha[v] = select(next == m, broadcast(1), exp2(m - st.base[v]));
    st.rescale = st.rescale || reduce_max(select(next == m, zero(), broadcast(1))) > 0;
    st.sum[v] = load(st.sub->l + v * kLanes) * st.alpha[v];
    store(st.sub->m + v * kLanes, next);
  }
}
template <int V>
RIDGE_INLINE void keep_sums(const Step<V>& st) {
  for (int v = 0; v < V; ++v) store(st.sub->l + v * kLanes, st.sum[v]);
}

template <class P>
void run_flash(const AttentionCall& a, const AttentionTask& t) {
  alignas(64) char memory[kTaskStateBytes];
  alignas(64) float m[kTaskSubs * kSubRows], l[kTaskSubs * kSubRows];
  P p;
  Sub subs[kTaskSubs];
  int count = 0;
  char* at = memory;
  for (int r = 0; r < t.rows; r += kSubRows, ++count) {
    float* o = reinterpret_cast<float*>(at + padded_dim(a.d) * kSubRows * 4);
    subs[count] = {r, int(smaller(kSubRows, t.rows - r)), at, o, m + r, l + r};
    at += (padded_dim(a.d) + padded_dim(a.dv)) * kSubRows * 4;
  }
  for (int i = 0; i < count; ++i) {
    if (i + 1 < count) prefetch_rows(a, t, a.q, a.d, subs[i + 1], false);
    subs[i].rows <= kLanes ? load_queries<1, P>(a, t, subs[i]) : load_queries<2, P>(a, t, subs[i]);
  }
  // Block borders lie at multiples of kBlock whatever the range.
  for (int64_t from = t.key_from; from < t.key_to;) {
    const int n = int(smaller(t.key_to, from / P::kBlock * P::kBlock + P::kBlock) - from);
    p.load_keys(a, t, from, n);
    p.block(a, t, subs, count, from, n);
    from += n;
  }
  for (int i = 0; i < count; ++i) {
    if (!t.partial && i + 1 < count) prefetch_rows(a, t, a.o, a.dv, subs[i + 1], true);
    subs[i].rows <= kLanes ? give_rows<1>(a, t, subs[i]) : give_rows<2>(a, t, subs[i]);
  }
}

}  // namespace
}  // namespace ridge::RIDGE_ISA
