// attention on a CPU, compiled once per ISA. Two ways to multiply, one softmax.
//
//   flash  a row in each lane (attention_flash_cpu.h), with f32 vectors: prefill, chunks, decode of many heads a key head. Keys and
//          values are read as they are stored, or widened once for all rows of a task; their elements are broadcast.
//   few    up to 8 rows, features in the lanes: decode. A key is loaded once and multiplied into 4 rows; V likewise.
//
// Both keep a running base m and sum l a row and never divide before the end.
#include "ops/attention/attention_flash_cpu.h"

namespace ridge::RIDGE_ISA {
namespace {

constexpr int kFew = 8;

// ---- flash

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

struct VectorProducts {
  static constexpr int kBlock = ridge::RIDGE_ISA::kBlock, kPad = 1;
  alignas(64) float k[kBlock * kMaxDim], v[kBlock * kMaxDim];
  const float *k_rows[kBlock], *v_rows[kBlock];
  alignas(64) float s[kBlock * kSubRows];  // [keys][rows]

  void load_keys(const AttentionCall& a, const AttentionTask& t, int64_t from, int n) {
    key_rows(a, t, a.k, a.d, from, n, k, k_rows);
    key_rows(a, t, a.v, a.dv, from, n, v, v_rows);
  }

  // [d][L]
  template <int L>
  RIDGE_INLINE static void pack_queries(const float* rows, int64_t d, int v, char* to) {
    float* q = reinterpret_cast<float*>(to) + v * kLanes;
    for (int64_t c = 0; c < d; c += kLanes) {
      Vec x[kLanes];
      for (int i = 0; i < kLanes; ++i) x[i] = load(rows + i * d + c);
      transpose(x);
      for (int i = 0; i < kLanes; ++i) store(q + (c + i) * L, x[i]);
    }
  }

  template <int V>
  RIDGE_INLINE void powers(Step<V>& st) {
    constexpr int L = V * kLanes;
    for (int j = 0; j < st.n; ++j)
#pragma GCC unroll 2
      for (int v = 0; v < V; ++v) {
        const Vec p = exp2(load(s + j * L + v * kLanes) - st.base[v]);
        store(s + j * L + v * kLanes, p);
        st.sum[v] = st.sum[v] + p;
      }
  }

  template <int V>
  RIDGE_INLINE void attend(const AttentionCall& a, const AttentionTask& t, const Sub& sub, int64_t from, int n) {
    Step<V> st;
    if (!look<V>(a, t, sub, from, n, kPad, st)) return;
    scores<V>(k_rows, st.n, reinterpret_cast<const float*>(sub.q), a.d, s);
    if (st.masked || a.softcap > 0) mask_scores(st, a.softcap, s);
    Vec even[V], odd[V], top[V];
    for (int v = 0; v < V; ++v) even[v] = odd[v] = broadcast(kMinusInf);
    raise_tops<V>(s, 0, st.n, even, odd);
    for (int v = 0; v < V; ++v) top[v] = max(even[v], odd[v]);
    rebase(st, top);
    powers(st);
    keep_sums(st);
    accumulate<V>(sub.o, st.alpha, v_rows, st.n, a.dv, s);
  }

  void block(const AttentionCall& a, const AttentionTask& t, const Sub* subs, int count, int64_t from, int n) {
    for (int i = 0; i < count; ++i)
      subs[i].rows <= kLanes ? attend<1>(a, t, subs[i], from, n) : attend<2>(a, t, subs[i], from, n);
  }
};

void flash(const AttentionCall& a, const AttentionTask& t) { run_flash<VectorProducts>(a, t); }

// ---- few: features in the lanes

RIDGE_INLINE int64_t o_offset(const AttentionCall& a, const AttentionTask& t, int64_t r) {
  return token_of(a, t, r) * a.o.token + head_of(a, t, r) * a.o.head;
}

// The keys of a block, and their scales where they are Q8_0: those of values go into the weights.
template <class T>
struct FewKeys {
  int n;
  const T *k[kBlock], *v[kBlock];
  alignas(64) float k_scale[kMaxDim / 32][kBlock], v_scale[kMaxDim / 32][kBlock];
};

struct FewState {
  alignas(64) float q[kFew][kMaxDim];
  alignas(64) float o[kFew][kMaxDim];
  alignas(64) float s[kFew][kBlock];
  alignas(64) float weights[kFew][kBlock];  // s times the scales of a block of features
  float m[kFew], l[kFew], alpha[kFew];
};

template <class T>
constexpr bool kScaled = std::is_same_v<T, Q8>;

// kLanes features of a key or value, or `lanes` of them; unscaled.
template <class T>
RIDGE_INLINE Vec features(const T* row, int64_t c, int lanes) {
  if constexpr (kScaled<T>)
    return load(row[c / 32].values + c % 32);
  else
    return lanes == kLanes ? load(row + c) : load(row + c, lanes);
}

// n 0: no more blocks.
template <class T>
RIDGE_INLINE void find_keys(const AttentionCall& a, const AttentionTask& t, int64_t from, FewKeys<T>& b) {
  int64_t offsets[kBlock];
  b.n = int(larger(0, smaller(t.key_to, from / kBlock * kBlock + kBlock) - from));
  key_offsets(a, t, a.k, from, b.n, offsets);
  for (int j = 0; j < b.n; ++j) b.k[j] = row_at<T>(a.k.data, offsets[j]);
  key_offsets(a, t, a.v, from, b.n, offsets);
  for (int j = 0; j < b.n; ++j) b.v[j] = row_at<T>(a.v.data, offsets[j]);
}

RIDGE_INLINE void read_scales(const Q8* const* rows, int n, int64_t d, float (*scale)[kBlock]) {
  F16 bits[kBlock] = {};
  for (int64_t b = 0; b < d / 32; ++b) {
    for (int j = 0; j < n; ++j) __builtin_memcpy(bits + j, rows[j][b].scale, 2);
    for (int j = 0; j < kBlock; j += kLanes) store(scale[b] + j, load(bits + j));
  }
}

template <class T>
RIDGE_INLINE void prefetch_row(const T* row, int64_t n) {
  const char* at = reinterpret_cast<const char*>(row);
  const int64_t bytes = kScaled<T> ? n / 32 * int64_t(sizeof(Q8)) : n * int64_t(sizeof(T));
  for (int64_t i = 0; i < bytes; i += 64) __builtin_prefetch(at + i);
}

// Scores of N keys for R rows.
template <int N, int R, class T>
RIDGE_INLINE void few_scores(FewState& st, int r0, const FewKeys<T>& b, int j, int64_t d) {
  Vec sum[N][R];
#pragma GCC unroll 4
  for (int i = 0; i < N; ++i)
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) sum[i][r] = zero();
  auto step = [&](int64_t c, int lanes) __attribute__((always_inline)) {
    Vec q[R];
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) q[r] = load(st.q[r0 + r] + c);
#pragma GCC unroll 4
    for (int i = 0; i < N; ++i) {
      Vec k = features(b.k[j + i], c, lanes);
      if constexpr (kScaled<T>) k = k * broadcast(b.k_scale[c / 32][j + i]);
#pragma GCC unroll 4
      for (int r = 0; r < R; ++r) sum[i][r] = fma(k, q[r], sum[i][r]);
    }
  };
  int64_t c = 0;
  for (; c + kLanes <= d; c += kLanes) step(c, kLanes);
  if (c < d) step(c, int(d - c));
#pragma GCC unroll 4
  for (int r = 0; r < R; ++r) {
    float* s = st.s[r0 + r] + j;
    if constexpr (N == 4)
      store_sums(s, sum[0][r], sum[1][r], sum[2][r], sum[3][r]);
    else
      for (int i = 0; i < N; ++i) s[i] = reduce_add(sum[i][r]);
  }
}

// o of R rows, C vectors of features from c on. `ahead`: the next block's values are asked for.
template <int R, int C, class T>
RIDGE_INLINE void few_accumulate(FewState& st, int r0, const FewKeys<T>& b, int64_t c, int lanes, const FewKeys<T>& next,
                                 bool ahead, int64_t dv) {
  Vec sum[R][C];
  const float(*weights)[kBlock] = (kScaled<T> ? st.weights : st.s) + r0;
#pragma GCC unroll 4
  for (int r = 0; r < R; ++r) {
    if (kScaled<T>)
      for (int j = 0; j < kBlock; j += kLanes)
        store(st.weights[r0 + r] + j, load(st.s[r0 + r] + j) * load(b.v_scale[c / 32] + j));
#pragma GCC unroll 4
    for (int i = 0; i < C; ++i) sum[r][i] = load(st.o[r0 + r] + c + i * kLanes) * broadcast(st.alpha[r0 + r]);
  }
  for (int j = 0; j < b.n; ++j) {
    if (ahead && j < next.n) prefetch_row(next.v[j], dv);
    Vec v[C];
#pragma GCC unroll 4
    for (int i = 0; i < C; ++i) v[i] = features(b.v[j], c + i * kLanes, lanes);
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) {
      const Vec p = broadcast(weights[r][j]);
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
    if (softcap > 0) x = capped(x, softcap);
    const Vec at = iota() + broadcast(float(j));
    x = select(both(first(lanes), both(broadcast(float(seen.from)) <= at, at < broadcast(float(seen.to)))), x,
               broadcast(kMinusInf));
    store(s + j, x);
    top = max(x, top);
  });
  const float block = reduce_max(top), m = block > st.m[r] ? block : st.m[r], base = m == kMinusInf ? 0 : m;
  Vec sum = zero();
  each_vec(n, [&](int64_t j, int) {
    const Vec p = exp2(load(s + j) - broadcast(base));
    store(s + j, p);
    sum = sum + p;
  });
  const float alpha = st.m[r] == kMinusInf ? 0 : st.m[r] == m ? 1 : __builtin_exp2f(st.m[r] - base);
  st.alpha[r] = alpha;
  st.l[r] = st.l[r] * alpha + reduce_add(sum);
  st.m[r] = m;
}

// A block for R rows; meanwhile the next one is on its way from memory: at the end of a page the processor's own prefetcher stops.
template <int R, class T>
RIDGE_INLINE void few_block(const AttentionCall& a, const AttentionTask& t, FewState& st, int r0, const FewKeys<T>& b,
                            const FewKeys<T>& next, int64_t from) {
  constexpr int kKeys = kLanes == 16 ? 4 : 2;  // keys a step: their sums and the rows' queries fit the registers
  int j = 0;
  for (; j + kKeys <= b.n; j += kKeys) {
    for (int i = j; i < j + kKeys && r0 == 0; ++i)
      if (i < next.n) prefetch_row(next.k[i], a.d);
    few_scores<kKeys, R>(st, r0, b, j, a.d);
  }
  for (; j < b.n; ++j) few_scores<1, R>(st, r0, b, j, a.d);
  for (int r = r0; r < r0 + R; ++r) {
    const KeyRange seen = visible(a, t, t.first_row + r);
    softmax_row(st, r, b.n, {larger(seen.from - from, 0), larger(smaller(seen.to - from, b.n), 0)}, a.softcap);
  }
  constexpr int kVecs = kLanes < 16 || kScaled<T> ? 2 : 4;  // within a block of scales
  int64_t c = 0;
  for (; c + kVecs * kLanes <= a.dv; c += kVecs * kLanes)
    few_accumulate<R, kVecs>(st, r0, b, c, kLanes, next, r0 == 0 && c == 0, a.dv);
  for (; c + kLanes <= a.dv; c += kLanes) few_accumulate<R, 1>(st, r0, b, c, kLanes, next, r0 == 0 && c == 0, a.dv);
  if (c < a.dv) few_accumulate<R, 1>(st, r0, b, c, int(a.dv - c), next, r0 == 0 && c == 0, a.dv);
}

template <class T>
void run_few(const AttentionCall& a, const AttentionTask& t) {
  FewState st;
  FewKeys<T> keys[2];
  find_keys(a, t, t.key_from, keys[0]);
  for (int j = 0; j < keys[0].n; ++j) prefetch_row(keys[0].k[j], a.d);
  const Vec scale = broadcast(query_scale(a));
  for (int r = 0; r < t.rows; ++r) {
    for (int c = 0; c < kMaxDim; c += kLanes) store(st.q[r] + c, zero()), store(st.o[r] + c, zero());
    widen_row(a.q.data, a.q.type, token_of(a, t, r) * a.q.token + head_of(a, t, r) * a.q.head, st.q[r], a.d);
    for (int c = 0; c < kMaxDim; c += kLanes) store(st.q[r] + c, load(st.q[r] + c) * scale);
    st.m[r] = kMinusInf, st.l[r] = 0;
    for (int j = 0; j < kBlock; j += kLanes) store(st.s[r] + j, zero());
  }
  for (int j = 0; j < keys[0].n; ++j) prefetch_row(keys[0].v[j], a.dv);
  int turn = 0;
  for (int64_t from = t.key_from; from < t.key_to; turn ^= 1) {
    FewKeys<T>&now = keys[turn], &next = keys[turn ^ 1];
    find_keys(a, t, from + now.n, next);
    if constexpr (kScaled<T>) {
      read_scales(now.k, now.n, a.d, now.k_scale);
      read_scales(now.v, now.n, a.dv, now.v_scale);
    }
    for (int r = 0; r < t.rows; r += 4) {
      switch (t.rows - r) {
        case 1: few_block<1>(a, t, st, r, now, next, from); break;
        case 2: few_block<2>(a, t, st, r, now, next, from); break;
        case 3: few_block<3>(a, t, st, r, now, next, from); break;
        default: few_block<4>(a, t, st, r, now, next, from);
      }
    }
    from += now.n;
  }
  for (int r = 0; r < t.rows; ++r) give_row(a, t, r, o_offset(a, t, r), st.o[r], st.m[r], st.l[r]);
}

void few(const AttentionCall& a, const AttentionTask& t) {
  switch (a.k.type) {  // `supports` asks for one type of both
    case CpuFloat::f32: return run_few<float>(a, t);
    case CpuFloat::f16: return run_few<F16>(a, t);
    case CpuFloat::bf16: return run_few<Bf16>(a, t);
    case CpuFloat::q8: return run_few<Q8>(a, t);
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
      const float weight = __builtin_exp2f(part[a.dv] - m);
      l += weight * part[a.dv + 1];
      each_vec(a.dv, [&](int64_t c, int lanes) {
        store(o + c, fma(broadcast(weight), load(part + c, lanes), load(o + c, lanes)), lanes);
      });
    }
    finish_row(a, whole, r, o_offset(a, t, r), o, m, l);
  }
}

}  // namespace

extern const AttentionCpu attention_cpu;
const AttentionCpu attention_cpu{kFew, kBlock, flash, few, merge};

}  // namespace ridge::RIDGE_ISA
