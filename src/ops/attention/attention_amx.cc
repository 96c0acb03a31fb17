// attention on AMX tiles: the flash form with queries in the columns of the right operand, S^T = K Q^T and O^T = V^T P^T, every operand
// a sum of bf16 parts (tile/cpu/amx.h). How many products of parts are kept is decided by what they cost a model: see the README.
//
// A tile's row of K is 32 features of a key as stored, values j and j + 16 side by side. A tile's row of V^T is a feature of 32 keys,
// keys j and j + 16 side by side: rows of V are paired and turned over in registers, once a block. P needs no turning: rows j and j + 16
// of the scores are the pairs of its tile's row j.
#include "ops/attention/attention_flash_cpu.h"
#include "tile/cpu/amx.h"

namespace ridge::RIDGE_ISA {
namespace {

constexpr int kPanelRows = 2 * kTileRows;      // of the left operand: two tiles share a set of sums
constexpr int64_t kPartStep = 2 * kTileBytes;  // 32 of the depth of a panel or of two column tiles: one part

// sums[32][V 16] = or += panel . columns over `depth` tiles. In three products [depth step][hi, lo][2 tiles] on both sides, in one
// there is no lo. `between` is called after every set of products: what the vector units do meanwhile.
template <int V, bool left_low, bool right_low, class Between>
RIDGE_INLINE void multiply(const char* left, const char* right, int64_t left_step, int64_t depth, float* sums, bool first,
                           Between&& between) {
  constexpr int64_t kRow = V * kTileRows * 4, kRightStep = (right_low ? 2 : 1) * kPartStep;
  float* lower = sums + kTileRows * V * kTileRows;
  if (first) {
    tile_zero<0>(), tile_zero<2>();
    if (V == 2) tile_zero<1>(), tile_zero<3>();
  } else {
    tile_load<0>(sums, kRow), tile_load<2>(lower, kRow);
    if (V == 2) tile_load<1>(sums + kTileRows, kRow), tile_load<3>(lower + kTileRows, kRow);
  }
  const auto products = [&]() __attribute__((always_inline)) {
    tile_multiply<0, 4, 6>(), tile_multiply<2, 5, 6>();
    if (V == 2) tile_multiply<1, 4, 7>(), tile_multiply<3, 5, 7>();
    between();
  };
  for (int64_t i = 0; i < depth; ++i, left += left_step, right += kRightStep) {
    tile_load<4>(left), tile_load<5>(left + kTileBytes);
    if (right_low) {
      tile_load<6>(right + kPartStep);
      if (V == 2) tile_load<7>(right + kPartStep + kTileBytes);
      products();  // hi . lo
    }
    tile_load<6>(right);
    if (V == 2) tile_load<7>(right + kTileBytes);
    products();  // hi . hi
    if (left_low) {
      tile_load<4>(left + kPartStep), tile_load<5>(left + kPartStep + kTileBytes);
      products();  // lo . hi
    }
  }
  tile_store<0>(sums, kRow), tile_store<2>(lower, kRow);
  if (V == 2) tile_store<1>(sums + kTileRows, kRow), tile_store<3>(lower + kTileRows, kRow);
}

template <class T>
RIDGE_INLINE Vec values(const T* row, int64_t c, int64_t d) {
  if (c + kLanes <= d) return values(row, c);
  if constexpr (std::is_same_v<T, Q8>)
    return zero();
  else
    return c < d ? load(row + c, int(d - c)) : zero();
}

RIDGE_INLINE void put(char* to, Vec v) { store(reinterpret_cast<float*>(to), v); }

struct TileProducts {
  static constexpr int kBlock = 128, kPad = kPanelRows;
  static constexpr int64_t kDepth = kBlock / kTileDepth;  // of V^T P^T
  alignas(64) char k[kBlock * kMaxDim * 4];               // [panel of keys][step of features][hi, lo][2 tiles]
  alignas(64) char v[kBlock * kMaxDim * 2];               // [panel of features][step of keys][2 tiles]
  alignas(64) char p[kDepth * kPartStep];                 // [step of keys][2 tiles]
  alignas(64) float s[2][kBlock * kSubRows];              // [keys][rows]: of this sub-tile, and of the next
  bool low;                                               // keys have low parts

  template <class T>
  void load_k(const T* const* rows, int n, int64_t d) {
    const int64_t steps = padded_dim(d) / kTileDepth;
    const int padded = (n + kPanelRows - 1) / kPanelRows * kPanelRows;
    for (int j = 0; j < padded; ++j) {
      char* to =
          k + j / kPanelRows * steps * 2 * kPartStep + j % kPanelRows * 64;  // a tile's rows follow those of the one before
      for (int64_t i = 0; i < steps; ++i, to += 2 * kPartStep) {
        const int64_t c = i * kTileDepth;
        const Parts x = j < n ? split(values(rows[j], c, d), values(rows[j], c + kLanes, d)) : Parts{zero(), zero()};
        put(to, x.hi);
        if (low) put(to + kPartStep, x.lo);
      }
    }
  }

  template <class T>
  void load_v(const T* const* rows, int n, int64_t dv) {
    for (int64_t i = 0; i * kTileDepth < n; ++i)
      for (int64_t c = 0; c < padded_dim(dv); c += kTileRows) {
        Vec pairs[kTileRows];
        for (int j = 0; j < kTileRows; ++j) {
          const int64_t first = i * kTileDepth + j, second = first + kTileRows;
          pairs[j] = split(first < n ? values(rows[first], c, dv) : zero(), second < n ? values(rows[second], c, dv) : zero()).hi;
        }
        transpose(pairs);
        char* to = v + (c / kPanelRows * kDepth + i) * kPartStep + c % kPanelRows * 64;
        for (int j = 0; j < kTileRows; ++j) put(to + j * 64, pairs[j]);
      }
  }

  template <class T>
  void load_block(const AttentionCall& a, const AttentionTask& t, int64_t from, int n) {
    const T* rows[kBlock];
    int64_t offsets[kBlock];
    key_offsets(a, t, a.k, from, n, offsets);
    for (int j = 0; j < n; ++j) rows[j] = row_at<T>(a.k.data, offsets[j]);
    load_k(rows, n, a.d);
    key_offsets(a, t, a.v, from, n, offsets);
    for (int j = 0; j < n; ++j) rows[j] = row_at<T>(a.v.data, offsets[j]);
    load_v(rows, n, a.dv);
  }

  void load_keys(const AttentionCall& a, const AttentionTask& t, int64_t from, int n) {
    low = a.k.type != CpuFloat::bf16;
    switch (a.k.type) {
      case CpuFloat::f32: return load_block<float>(a, t, from, n);
      case CpuFloat::f16: return load_block<F16>(a, t, from, n);
      case CpuFloat::bf16: return load_block<Bf16>(a, t, from, n);
      case CpuFloat::q8: return load_block<Q8>(a, t, from, n);
    }
  }

  // [step of features][hi, lo][2 tiles]
  template <int L>
  RIDGE_INLINE static void pack_queries(const float* rows, int64_t d, int v, char* to) {
    to += v * kTileBytes;
    for (int64_t c = 0; c < d; c += kTileDepth, to += 2 * kPartStep) {
      Vec hi[kTileRows], lo[kTileRows];
      for (int i = 0; i < kTileRows; ++i) {
        const Parts x = split(load(rows + i * d + c), load(rows + i * d + c + kLanes));
        hi[i] = x.hi, lo[i] = x.lo;
      }
      transpose(hi);
      transpose(lo);
      for (int i = 0; i < kTileRows; ++i) put(to + i * 64, hi[i]), put(to + kPartStep + i * 64, lo[i]);
    }
  }

  template <int V, class Between>
  RIDGE_INLINE void scores(const Step<V>& st, int64_t d, float* to, Between&& between) const {
    const int64_t steps = padded_dim(d) / kTileDepth;
    for (int j = 0; j < st.padded; j += kPanelRows) {
      const char* panel = k + j / kPanelRows * steps * 2 * kPartStep;
      float* sums = to + j * V * kLanes;
      if (low)
        multiply<V, true, true>(panel, st.sub->q, 2 * kPartStep, steps, sums, true, between);
      else
        multiply<V, false, true>(panel, st.sub->q, 2 * kPartStep, steps, sums, true, between);
    }
  }

  // Of 16 pairs of keys a step: pair i, two keys for each lane.
  template <int V>
  RIDGE_INLINE void powers(Step<V>& st, const float* s, int i) {
    constexpr int L = V * kLanes;
    const int step = i / kTileRows, row = i % kTileRows;
#pragma GCC unroll 2
    for (int v = 0; v < V; ++v) {
      const float* at = s + (step * kTileDepth + row) * L + v * kLanes;
      const Vec x = exp2<4>(load(at) - st.base[v]), y = exp2<4>(load(at + kTileRows * L) - st.base[v]);
      st.sum[v] = st.sum[v] + (x + y);
      put(p + step * kPartStep + v * kTileBytes + row * 64, split(x, y).hi);
    }
  }

  template <int V, class Between>
  RIDGE_INLINE void accumulate(const Step<V>& st, int64_t dv, Between&& between) const {
    constexpr int L = V * kLanes;
    const int64_t d = padded_dim(dv), steps = st.padded / kTileDepth;
    float* o = st.sub->o;
    if (st.rescale)
      for (int64_t c = 0; c < d; ++c)
        for (int v = 0; v < V; ++v) store(o + c * L + v * kLanes, load(o + c * L + v * kLanes) * st.alpha[v]);
    for (int64_t c = 0; c < d; c += kPanelRows)
      multiply<V, false, false>(v + c / kPanelRows * kDepth * kPartStep, p, kPartStep, steps, o + c * L, false, between);
  }

  // While tiles multiply the next sub-tile's scores, the vector units make weights of this one's; while they multiply those with V, the
  // next one's maxima.
  template <int V>
  void walk(const AttentionCall& a, const AttentionTask& t, const Sub* subs, int count, int64_t from, int n) {
    Step<V> steps[2];
    Step<V>*now = nullptr, *next = nullptr;
    const int64_t groups_a_panel = padded_dim(a.d) / kTileDepth * (low ? 3 : 2);
    for (int i = 0, turn = 0; i < count || now; turn ^= 1) {
      for (next = nullptr; i < count && !next; ++i)
        if (look<V>(a, t, subs[i], from, n, kPad, steps[turn])) next = &steps[turn];
      int done = 0;
      const int pairs = now ? now->padded / 2 : 0;
      if (next) {
        const int groups = int(next->padded / kPanelRows * groups_a_panel), share = (pairs + groups - 1) / groups;
        scores<V>(
            *next, a.d, s[turn], [&]() __attribute__((always_inline)) {
              for (const int to = int(smaller(pairs, done + share)); done < to; ++done) powers<V>(*now, s[turn ^ 1], done);
            });
      }
      for (; done < pairs; ++done) powers<V>(*now, s[turn ^ 1], done);
      Vec even[V], odd[V], top[V];
      for (int v = 0; v < V; ++v) even[v] = odd[v] = broadcast(kMinusInf);
      if (next && (next->masked || a.softcap > 0)) mask_scores(*next, a.softcap, s[turn]);
      int seen = 0;
      const int rows = next ? next->padded : 0;
      if (now) {
        keep_sums(*now);
        accumulate<V>(
            *now, a.dv, [&]() __attribute__((always_inline)) {
              if (seen == rows) return;
              raise_tops<V>(s[turn], seen, seen + 16, even, odd);
              seen += 16;
            });
      }
      if (next) {
        raise_tops<V>(s[turn], seen, rows, even, odd);
        for (int v = 0; v < V; ++v) top[v] = max(even[v], odd[v]);
        rebase(*next, top);
      }
      now = next;
    }
  }

  void block(const AttentionCall& a, const AttentionTask& t, const Sub* subs, int count, int64_t from, int n) {
    const int whole = subs[count - 1].rows <= kLanes ? count - 1 : count;
    walk<2>(a, t, subs, whole, from, n);
    walk<1>(a, t, subs + whole, count - whole, from, n);
  }
};

void flash(const AttentionCall& a, const AttentionTask& t) {
  configure_tiles();
  run_flash<TileProducts>(a, t);
}

}  // namespace

extern const AttentionTiles attention_tiles;
const AttentionTiles attention_tiles{flash};

}  // namespace ridge::RIDGE_ISA
