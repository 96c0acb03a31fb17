// attention on a CPU, compiled once per ISA. Two ways to multiply, one softmax.
//
//   tile   up to 2 vectors of rows, a row in each lane: prefill, chunks, decode of many heads a key head. Key blocks of 64;
//          scores are a [64][rows] block in L1, the result an [dv][rows] block. K and V are read once for all rows of the tile.
//   few    up to 8 rows, features in the lanes: decode. A key is loaded once and multiplied into 4 rows; V likewise.
//
// Both keep a running maximum m and sum l a row and never divide before the end. A block that a row sees nothing of leaves the
// row's state as it was, to the last bit, so results do not depend on which rows share a tile nor on which blocks others need.
// Masked scores are -inf; a row that has seen nothing has m = -inf and is rescaled against 0, which gives exact zeros, not NaN.
#include "ops/attention/attention_tile_cpu.h"

namespace ridge::RIDGE_ISA {
namespace {

constexpr int kFew = 8;
constexpr float kMinusInf = -__builtin_inff();

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

// f32 keys stay where they are; others are widened into `panel` [n][d].
RIDGE_INLINE void key_rows(const AttentionCall& a, const AttentionTask& t, const KeyView& k, int64_t d, int64_t from, int n,
                           float* panel, const float** rows) {
  int64_t offsets[kBlock];
  key_offsets(a, t, k, from, n, offsets);
  for (int j = 0; j < n; ++j) {
    if (k.type == CpuFloat::f32) {
      rows[j] = static_cast<const float*>(k.data) + offsets[j];
    } else {
      widen_row(k.data, k.type, offsets[j], panel + j * d, d);
      rows[j] = panel + j * d;
    }
  }
}

// q is scaled once, so that scores come out ready for the exponential (or for the tanh of a softcap).
RIDGE_INLINE float query_scale(const AttentionCall& a) { return a.softcap > 0 ? a.scale / a.softcap : a.scale; }

// o / l and lse of one row; o is unnormalised and overwritten.
RIDGE_INLINE void finish_row(const AttentionCall& a, const AttentionTask& t, int64_t r, float* o, float m, float l) {
  const int64_t token = token_of(a, t, r), head = head_of(a, t, r);
  float lse = kMinusInf, factor = 0;
  if (l > 0) {
    if (a.sinks) {
      const float sink = a.sinks[head * a.sink_stride], top = m > sink ? m : sink;
      l = l * __builtin_expf(m - top) + __builtin_expf(sink - top);
      factor = __builtin_expf(m - top) / l;
      m = top;
    } else {
      factor = 1 / l;
    }
    lse = m + __builtin_logf(l);
  }
  each_vec(a.dv, [&](int64_t c, int lanes) { store(o + c, load(o + c, lanes) * broadcast(factor), lanes); });
  store_row(a.o, token * a.o.token + head * a.o.head, o, a.dv);
  if (a.lse) a.lse[token * a.lse_token + head * a.lse_head] = lse;
}

RIDGE_INLINE void give_row(const AttentionCall& a, const AttentionTask& t, int64_t r, float* o, float m, float l) {
  if (!t.partial) return finish_row(a, t, r, o, m, l);
  float* p = t.partial + r * (a.dv + 2);
  each_vec(a.dv, [&](int64_t c, int lanes) { store(p + c, load(o + c, lanes), lanes); });
  p[a.dv] = m;
  p[a.dv + 1] = l;
}

// ---- tile: a row a lane

template <int V>
struct TileState {
  static constexpr int L = V * kLanes;
  alignas(64) float q[kMaxDim * L];  // [d][L]
  alignas(64) float o[kMaxDim * L];  // [dv][L]
  alignas(64) float s[kBlock * L];   // [keys][L]
  alignas(64) float from[L], to[L];  // a row's keys, relative to the block
  Vec m[V], l[V];
};

template <int V>
RIDGE_INLINE void load_queries(const AttentionCall& a, const AttentionTask& t, TileState<V>& st) {
  constexpr int L = V * kLanes;
  const float scale = query_scale(a);
  float row[kMaxDim];
  for (int r = 0; r < L; ++r) {
    const int64_t of = smaller(r, t.rows - 1);  // lanes past the last row repeat it; nobody looks
    widen_row(a.q.data, a.q.type, token_of(a, t, of) * a.q.token + head_of(a, t, of) * a.q.head, row, a.d);
    to_lane<L>(st.q, r, row, a.d, scale);
  }
  clear(st.o, a.dv * L);
  for (int v = 0; v < V; ++v) st.m[v] = broadcast(kMinusInf), st.l[v] = zero();
}

// Scores of the block become weights; alpha is what everything before shrinks by.
template <int V>
RIDGE_INLINE void softmax_block(TileState<V>& st, int n, bool masked, float softcap, Vec* alpha) {
  constexpr int L = V * kLanes;
  for (int v = 0; v < V; ++v) {
    float* s = st.s + v * kLanes;
    const Vec from = load(st.from + v * kLanes), to = load(st.to + v * kLanes), none = broadcast(kMinusInf);
    Vec top = st.m[v];
    for (int j = 0; j < n; ++j) {
      Vec x = load(s + j * L);
      if (softcap > 0) x = broadcast(softcap) * tanh(x);
      if (masked) {
        const Vec at = broadcast(float(j));
        x = select(both(from <= at, at < to), x, none);
      }
      if (masked || softcap > 0) store(s + j * L, x);
      top = max(x, top);
    }
    const Vec base = select(top == none, zero(), top);
    alpha[v] = exp(st.m[v] - base);
    Vec sum = st.l[v] * alpha[v];
    for (int j = 0; j < n; ++j) {
      const Vec p = exp(load(s + j * L) - base);
      store(s + j * L, p);
      sum = sum + p;
    }
    st.m[v] = top;
    st.l[v] = sum;
  }
}

template <int V>
void run_tile(const AttentionCall& a, const AttentionTask& t) {
  constexpr int L = V * kLanes;
  TileState<V> st;
  alignas(64) float k_panel[kBlock * kMaxDim], v_panel[kBlock * kMaxDim];
  const float *k_rows[kBlock], *v_rows[kBlock];
  load_queries(a, t, st);
  // Block borders lie at multiples of kBlock whatever the range.
  for (int64_t from = t.key_from; from < t.key_to;) {
    const int n = int(smaller(t.key_to, from / kBlock * kBlock + kBlock) - from);
    key_rows(a, t, a.k, a.d, from, n, k_panel, k_rows);
    scores<V>(k_rows, n, st.q, a.d, st.s);
    bool masked = false;
    for (int r = 0; r < L; ++r) {
      const KeyRange seen = r < t.rows ? visible(a, t, t.first_row + r) : KeyRange{0, 0};
      masked = masked || (r < t.rows && (seen.from > from || seen.to < from + n));
      st.from[r] = float(larger(seen.from - from, 0));
      st.to[r] = float(larger(smaller(seen.to - from, n), 0));
    }
    Vec alpha[V];
    softmax_block(st, n, masked, a.softcap, alpha);
    key_rows(a, t, a.v, a.dv, from, n, v_panel, v_rows);
    accumulate<V>(st.o, alpha, v_rows, n, a.dv, st.s);
    from += n;
  }
  alignas(64) float m[L], l[L], row[kMaxDim];
  for (int v = 0; v < V; ++v) store(m + v * kLanes, st.m[v]), store(l + v * kLanes, st.l[v]);
  for (int r = 0; r < t.rows; ++r) {
    from_lane<L>(st.o, r, row, a.dv);
    give_row(a, t, r, row, m[r], l[r]);
  }
}

void tile(const AttentionCall& a, const AttentionTask& t) {
  if (t.rows <= kLanes)
    run_tile<1>(a, t);
  else
    run_tile<2>(a, t);
}

// ---- few: features in the lanes

struct FewState {
  alignas(64) float q[kFew][kMaxDim];
  alignas(64) float o[kFew][kMaxDim];
  alignas(64) float s[kFew][kBlock];
  float m[kFew], l[kFew], alpha[kFew];
};

// Scores of N keys for R rows.
template <int N, int R, class T>
RIDGE_INLINE void few_scores(FewState& st, int r0, const T* const* rows, int j, int64_t d) {
  Vec sum[N][R];
#pragma GCC unroll 4
  for (int i = 0; i < N; ++i)
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) sum[i][r] = zero();
  auto step = [&](int64_t c, auto&& load_key) {
    Vec q[R];
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) q[r] = load(st.q[r0 + r] + c);
#pragma GCC unroll 4
    for (int i = 0; i < N; ++i) {
      const Vec k = load_key(rows[j + i] + c);
#pragma GCC unroll 4
      for (int r = 0; r < R; ++r) sum[i][r] = fma(k, q[r], sum[i][r]);
    }
  };
  int64_t c = 0;
  for (; c + kLanes <= d; c += kLanes) step(c, [](const T* p) { return load(p); });
  if (c < d) step(c, [&](const T* p) { return load(p, int(d - c)); });
#pragma GCC unroll 4
  for (int r = 0; r < R; ++r) {
    float* s = st.s[r0 + r] + j;
    if constexpr (N == 4)
      store_sums(s, sum[0][r], sum[1][r], sum[2][r], sum[3][r]);
    else
      for (int i = 0; i < N; ++i) s[i] = reduce_add(sum[i][r]);
  }
}

// o of R rows, C vectors of features from c on.
template <int R, int C, class T>
RIDGE_INLINE void few_accumulate(FewState& st, int r0, const T* const* rows, int n, int64_t c, int lanes) {
  Vec sum[R][C];
#pragma GCC unroll 4
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
    for (int i = 0; i < C; ++i) sum[r][i] = load(st.o[r0 + r] + c + i * kLanes) * broadcast(st.alpha[r0 + r]);
  for (int j = 0; j < n; ++j) {
    Vec v[C];
#pragma GCC unroll 4
    for (int i = 0; i < C; ++i) v[i] = lanes == kLanes ? load(rows[j] + c + i * kLanes) : load(rows[j] + c + i * kLanes, lanes);
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) {
      const Vec p = broadcast(st.s[r0 + r][j]);
#pragma GCC unroll 4
      for (int i = 0; i < C; ++i) sum[r][i] = fma(p, v[i], sum[r][i]);
    }
  }
#pragma GCC unroll 4
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
    for (int i = 0; i < C; ++i) store(st.o[r0 + r] + c + i * kLanes, sum[r][i]);
}

RIDGE_INLINE void softmax_row(FewState& st, int r, int n, KeyRange seen, float softcap) {
  float* s = st.s[r];
  Vec top = broadcast(kMinusInf);
  each_vec(n, [&](int64_t j, int lanes) {
    Vec x = load(s + j);  // past n: unused floats of the block, masked below
    if (softcap > 0) x = broadcast(softcap) * tanh(x);
    const Vec at = iota() + broadcast(float(j));
    x = select(both(first(lanes), both(broadcast(float(seen.from)) <= at, at < broadcast(float(seen.to)))), x,
               broadcast(kMinusInf));
    store(s + j, x);
    top = max(x, top);
  });
  const float block = reduce_max(top), m = block > st.m[r] ? block : st.m[r], base = m == kMinusInf ? 0 : m;
  Vec sum = zero();
  each_vec(n, [&](int64_t j, int) {
    const Vec p = exp(load(s + j) - broadcast(base));
    store(s + j, p);
    sum = sum + p;
  });
  const float alpha = st.m[r] == kMinusInf ? 0 : st.m[r] == m ? 1 : __builtin_expf(st.m[r] - base);
  st.alpha[r] = alpha;
  st.l[r] = st.l[r] * alpha + reduce_add(sum);
  st.m[r] = m;
}

template <class T>
RIDGE_INLINE void prefetch_row(const T* row, int64_t n) {
  for (int64_t c = 0; c < n; c += int64_t(64 / sizeof(T))) __builtin_prefetch(row + c);
}

template <int R, class TK, class TV>
RIDGE_INLINE void few_block(const AttentionCall& a, const AttentionTask& t, FewState& st, int r0, const TK* const* k,
                            const TV* const* v, int64_t from, int n) {
  constexpr int kKeys = kLanes == 16 ? 4 : 2;  // keys a step: their sums and the rows' queries fit the registers
  int j = 0;
  for (; j + kKeys <= n; j += kKeys) {
    for (int i = 0; i < kKeys && r0 == 0; ++i) prefetch_row(v[j + i], a.dv);  // the values are another stream, a block later
    few_scores<kKeys, R>(st, r0, k, j, a.d);
  }
  for (; j < n; ++j) few_scores<1, R>(st, r0, k, j, a.d);
  for (int r = r0; r < r0 + R; ++r) {
    const KeyRange seen = visible(a, t, t.first_row + r);
    softmax_row(st, r, n, {larger(seen.from - from, 0), larger(smaller(seen.to - from, n), 0)}, a.softcap);
  }
  constexpr int kVecs = kLanes == 16 ? 4 : 2;
  int64_t c = 0;
  for (; c + kVecs * kLanes <= a.dv; c += kVecs * kLanes) few_accumulate<R, kVecs>(st, r0, v, n, c, kLanes);
  for (; c + kLanes <= a.dv; c += kLanes) few_accumulate<R, 1>(st, r0, v, n, c, kLanes);
  if (c < a.dv) few_accumulate<R, 1>(st, r0, v, n, c, int(a.dv - c));
}

template <class TK, class TV>
void run_few(const AttentionCall& a, const AttentionTask& t) {
  FewState st;
  const Vec scale = broadcast(query_scale(a));
  for (int r = 0; r < t.rows; ++r) {
    for (int c = 0; c < kMaxDim; c += kLanes) store(st.q[r] + c, zero()), store(st.o[r] + c, zero());
    widen_row(a.q.data, a.q.type, token_of(a, t, r) * a.q.token + head_of(a, t, r) * a.q.head, st.q[r], a.d);
    for (int c = 0; c < kMaxDim; c += kLanes) store(st.q[r] + c, load(st.q[r] + c) * scale);
    st.m[r] = kMinusInf, st.l[r] = 0;
    for (int j = 0; j < kBlock; j += kLanes) store(st.s[r] + j, zero());
  }
  const TK* k[kBlock];
  const TV* v[kBlock];
  int64_t k_offsets[kBlock], v_offsets[kBlock];
  for (int64_t from = t.key_from; from < t.key_to;) {
    const int n = int(smaller(t.key_to, from / kBlock * kBlock + kBlock) - from);
    key_offsets(a, t, a.k, from, n, k_offsets);
    key_offsets(a, t, a.v, from, n, v_offsets);
    for (int j = 0; j < n; ++j) {
      k[j] = static_cast<const TK*>(a.k.data) + k_offsets[j];
      v[j] = static_cast<const TV*>(a.v.data) + v_offsets[j];
    }
    for (int r = 0; r < t.rows; r += 4) {
      switch (t.rows - r) {
        case 1: few_block<1>(a, t, st, r, k, v, from, n); break;
        case 2: few_block<2>(a, t, st, r, k, v, from, n); break;
        case 3: few_block<3>(a, t, st, r, k, v, from, n); break;
        default: few_block<4>(a, t, st, r, k, v, from, n);
      }
    }
    from += n;
  }
  for (int r = 0; r < t.rows; ++r) give_row(a, t, r, st.o[r], st.m[r], st.l[r]);
}

void few(const AttentionCall& a, const AttentionTask& t) {
  switch (a.k.type) {  // `supports` asks for one type of both
    case CpuFloat::f32: return run_few<float, float>(a, t);
    case CpuFloat::f16: return run_few<F16, F16>(a, t);
    case CpuFloat::bf16: return run_few<Bf16, Bf16>(a, t);
  }
}

// ---- merge: partial results in the order of their keys

void merge(const AttentionCall& a, const AttentionTask& t) {
  const int64_t row = a.dv + 2, next = t.rows * row;
  AttentionTask whole = t;
  whole.partial = nullptr;
  float o[kMaxDim];
  for (int r = 0; r < t.rows; ++r) {
    const float* p = t.partial + r * row;
    float m = kMinusInf, l = 0;
    for (int i = 0; i < t.partials; ++i)
      if (p[i * next + a.dv] > m) m = p[i * next + a.dv];
    for (int64_t c = 0; c < a.dv; ++c) o[c] = 0;
    for (int i = 0; i < t.partials && m > kMinusInf; ++i) {
      const float* part = p + i * next;
      const float weight = __builtin_expf(part[a.dv] - m);
      l += weight * part[a.dv + 1];
      each_vec(a.dv, [&](int64_t c, int lanes) {
        store(o + c, fma(broadcast(weight), load(part + c, lanes), load(o + c, lanes)), lanes);
      });
    }
    finish_row(a, whole, r, o, m, l);
  }
}

}  // namespace

extern const AttentionCpu attention_cpu;
const AttentionCpu attention_cpu{2 * kLanes, kFew, kBlock, tile, few, merge};

}  // namespace ridge::RIDGE_ISA
