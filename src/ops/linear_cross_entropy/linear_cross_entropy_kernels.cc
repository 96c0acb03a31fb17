// The rows of linear_cross_entropy and its backward, best first.
//
// `chunked`: 256 tokens by 2,048 words at a time, 2 MB of logits that stay in the second-level caches. The products are gemm's own
// rows of the same ISA level, of those that round nothing; the workspace is a chunk's logits and what its products ask for. Chunks
// follow one another, so every sum has one order.
#include <cmath>

#include "base/check.h"
#include "ops/call.h"
#include "ops/gemm/gemm.h"
#include "ops/linear_cross_entropy/linear_cross_entropy.h"
#include "ops/linear_cross_entropy/linear_cross_entropy_cpu.h"
#include "ops/rows.h"
#include "tile/cpu/isa_table.h"

namespace ridge {

RIDGE_ISA_TABLES(LinearCrossEntropyCpu, linear_cross_entropy_cpu)

namespace {

constexpr int64_t kTokens = 256, kWords = 2048;
constexpr int64_t kAlign = 64;
int64_t aligned(int64_t bytes) { return (bytes + kAlign - 1) / kAlign * kAlign; }
// Where scratch is laid out that is only measured.
char* nowhere() { return reinterpret_cast<char*>(kAlign); }

// gemm's best row up to a level that neither rounds its inputs nor is the reference; null when there is none.
const Kernel<Gemm>* exact_gemm(Isa isa, const Gemm::Args& g) {
  for (const Kernel<Gemm>& k : Gemm::kernels())
    if (k.place == Place::cpu && k.isa <= isa && k.rounds == DType::f64 && k.tier != Tier::reference && k.supports(g)) return &k;
  return nullptr;
}

void multiply(Ctx& x, Isa isa, const Gemm::Args& g, char* scratch) { exact_gemm(isa, g)->launch(x, g, scratch); }

// -1: ignored.
int64_t target_at(const View& target, int64_t t, int64_t vocab) {
  const int64_t id = *target.as<int32_t>(t);
  RIDGE_CHECK(id < vocab, "linear_cross_entropy: token " + std::to_string(t) + " has target " + std::to_string(id) +
                              ", the vocabulary has " + std::to_string(vocab));
  return std::max<int64_t>(id, -1);
}

// The sizes that chunks of n come in: full ones, and the last.
struct Sizes {
  int64_t full, last;
  Sizes(int64_t n, int64_t chunk) : full(std::min(n, chunk)), last(n % chunk == 0 ? full : n % chunk) {}
};

// f(tokens, words) for each shape of chunk.
template <class F>
void each_shape(const View& h, const View& w, const F& f) {
  const Sizes tokens(h.dims[0], kTokens), words(w.dims[0], kWords);
  for (int64_t t : {tokens.full, tokens.last})
    for (int64_t v : {words.full, words.last}) f(t, v);
}

// What a pass needs of every product of every shape: a row that takes it, and that row's scratch.
struct Needs {
  bool met = true;
  int64_t scratch = 0;
  void add(Isa isa, const Gemm::Args& g) {
    const Kernel<Gemm>* row = exact_gemm(isa, g);
    met = met && row;
    if (row && row->workspace) scratch = std::max(scratch, row->workspace(g));
  }
};

// ---- forward
struct ForwardScratch {
  View z;                        // [tokens, words] of a chunk
  float *top, *sum, *at_target;  // [tokens]
  char* gemm;
  ForwardScratch(const LinearCrossEntropy::Args& a, char* at) {
    const int64_t t = std::min(kTokens, a.h.dims[0]), v = std::min(kWords, a.w.dims[0]);
    z = view_of(at, DType::f32, {t, v});
    top = reinterpret_cast<float*>(at + aligned(z.bytes()));
    sum = top + kTokens;
    at_target = sum + kTokens;
    gemm = reinterpret_cast<char*>(at_target + kTokens);
  }
  View piece(int64_t tokens, int64_t words) const { return view_of(z.data, DType::f32, {tokens, words}); }
};

Gemm::Args logits_of(const View& h, const View& w, const View& z) { return {.a = h, .b = w, .c = z}; }

Needs needs(Isa isa, const LinearCrossEntropy::Args& a) {
  Needs all;
  each_shape(a.h, a.w, [&](int64_t t, int64_t v) {
    all.add(isa, logits_of(a.h.rows(0, t), a.w.rows(0, v), view_of(nowhere(), DType::f32, {t, v})));
  });
  return all;
}

template <Isa isa>
Verdict supports(const LinearCrossEntropy::Args& a) {
  if (a.loss.type == DType::f64) return {"it sums in f32: double precision is the reference's"};
  if (!needs(isa, a).met) return {"no gemm row of this level takes the product"};
  return {};
}

template <Isa isa>
int64_t workspace(const LinearCrossEntropy::Args& a) {
  const ForwardScratch s(a, nowhere());
  return (s.gemm - nowhere()) + needs(isa, a).scratch;
}

template <Isa isa>
void launch(Ctx& x, const LinearCrossEntropy::Args& a, char* scratch) {
  const ForwardScratch s(a, scratch);
  const LinearCrossEntropyCpu& cpu = linear_cross_entropy_cpu(isa);
  const int64_t all_tokens = a.h.dims[0], vocab = a.w.dims[0];
  double loss = 0;
  for (int64_t t = 0; t < all_tokens; t += kTokens) {
    const int64_t tokens = std::min(kTokens, all_tokens - t);
    std::fill_n(s.top, tokens, -INFINITY);
    std::fill_n(s.sum, tokens, 0.0f);
    for (int64_t v = 0; v < vocab; v += kWords) {
      const int64_t words = std::min(kWords, vocab - v);
      const View z = s.piece(tokens, words);
      multiply(x, isa, logits_of(a.h.rows(t, tokens), a.w.rows(v, words), z), s.gemm);
      parallel_rows(x.pool(), tokens, words * 4, [&](int64_t from, int64_t n) {
        for (int64_t i = from; i < from + n; ++i) {
          const int64_t target = target_at(a.target, t + i, vocab);
          if (target < 0) continue;
          cpu.update(z.as<float>(i), words, float(a.softcap), &s.top[i], &s.sum[i]);
          if (target >= v && target < v + words) s.at_target[i] = *z.as<float>(i, target - v);
        }
      });
    }
    for (int64_t i = 0; i < tokens; ++i) {
      const bool ignored = target_at(a.target, t + i, vocab) < 0;
      const double lse = ignored ? 0 : s.top[i] + std::log(double(s.sum[i]));
      if (!ignored) loss += a.weight.get(t + i) * (lse - s.at_target[i]);
      if (a.lse) a.lse.set(lse, t + i);
    }
  }
  a.loss.set(loss);
}

constexpr Speed kSpeed{.unit = Unit::fma_f32, .compute = 0.75, .memory = 0.85};

template <Isa isa>
constexpr Kernel<LinearCrossEntropy> chunked(const char* name) {
  return {name, Place::cpu, isa, Tier::fast, supports<isa>, launch<isa>, workspace<isa>, kSpeed};
}

}  // namespace

std::span<const Kernel<LinearCrossEntropy>> LinearCrossEntropy::kernels() {
  static const Kernel<LinearCrossEntropy> rows[] = {
      chunked<Isa::avx512>("chunked_avx512"),
      chunked<Isa::avx2>("chunked_avx2"),
      chunked<Isa::portable>("chunked_portable"),
      {"reference", Place::cpu, Isa::portable, Tier::reference, always<LinearCrossEntropy>, reference},
  };
  return rows;
}

// ---- backward
namespace {

using BackwardArgs = LinearCrossEntropyBackward::Args;

struct BackwardScratch {
  View z;  // [tokens, words] of a chunk: logits, then their gradient
  View h;  // [tokens, k] as f32; ignored tokens are zero, whatever they hold
  char* gemm;
  BackwardScratch(const BackwardArgs& a, char* at) {
    const int64_t t = std::min(kTokens, a.h.dims[0]), v = std::min(kWords, a.w.dims[0]);
    z = view_of(at, DType::f32, {t, v});
    h = view_of(at + aligned(z.bytes()), DType::f32, {t, a.h.dims[1]});
    gemm = h.data + aligned(h.bytes());
  }
};

// The three products of a chunk; dh and dw are added to in place.
struct Products {
  Gemm::Args z, dh, dw;
  Products(const View& h, const View& w, const View& dz, const View& dh_rows, const View& dw_rows)
      : z{.a = h, .b = w, .c = dz},
        dh{.a = dz, .b = w.t(), .c = dh_rows, .residual = dh_rows},
        dw{.a = dz.t(), .b = h.t(), .c = dw_rows, .residual = dw_rows} {}
};

Products products(const BackwardArgs& a, const BackwardScratch& s, int64_t t, int64_t tokens, int64_t v, int64_t words) {
  return {s.h.rows(0, tokens), a.w.rows(v, words), view_of(s.z.data, DType::f32, {tokens, words}),
          a.dh ? a.dh.rows(t, tokens) : View{}, a.dw ? a.dw.rows(v, words) : View{}};
}

Needs needs(Isa isa, const BackwardArgs& a) {
  const BackwardScratch s(a, nowhere());
  Needs all;
  each_shape(a.h, a.w, [&](int64_t t, int64_t v) {
    const Products p = products(a, s, 0, t, 0, v);
    all.add(isa, p.z);
    if (a.dh) all.add(isa, p.dh);
    if (a.dw) all.add(isa, p.dw);
  });
  return all;
}

template <Isa isa>
Verdict supports_backward(const BackwardArgs& a) {
  if (a.h.type == DType::f64 || (a.dh && a.dh.type == DType::f64) || (a.dw && a.dw.type == DType::f64))
    return {"it sums in f32: double precision is the reference's"};
  if (!needs(isa, a).met) return {"no gemm row of this level takes the products"};
  return {};
}

template <Isa isa>
int64_t workspace_backward(const BackwardArgs& a) {
  const BackwardScratch s(a, nowhere());
  return (s.gemm - nowhere()) + needs(isa, a).scratch;
}

template <Isa isa>
void launch_backward(Ctx& x, const BackwardArgs& a, char* scratch) {
  const BackwardScratch s(a, scratch);
  const LinearCrossEntropyCpu& cpu = linear_cross_entropy_cpu(isa);
  const int64_t all_tokens = a.h.dims[0], k = a.h.dims[1], vocab = a.w.dims[0];
  const double dloss = a.dloss.get();
  for (int64_t t = 0; t < all_tokens; t += kTokens) {
    const int64_t tokens = std::min(kTokens, all_tokens - t);
    x.pool().parallel(tokens, [&](int64_t i, int) {
      const bool ignored = target_at(a.target, t + i, vocab) < 0;
      for (int64_t j = 0; j < k; ++j) *s.h.as<float>(i, j) = ignored ? 0 : float(a.h.get(t + i, j));
    });
    for (int64_t v = 0; v < vocab; v += kWords) {
      const int64_t words = std::min(kWords, vocab - v);
      const Products p = products(a, s, t, tokens, v, words);
      multiply(x, isa, p.z, s.gemm);
      parallel_rows(x.pool(), tokens, words * 4, [&](int64_t from, int64_t n) {
        for (int64_t i = from; i < from + n; ++i) {
          float* z = p.z.c.as<float>(i);
          const int64_t target = target_at(a.target, t + i, vocab);
          if (target < 0)
            std::fill_n(z, words, 0.0f);
          else
            cpu.gradient(z, words, float(a.softcap),
                         {.lse = float(a.lse.get(t + i)),
                          .scale = float(dloss * a.weight.get(t + i)),
                          .lse_scale = a.dlse ? float(a.dlse.get(t + i)) : 0,
                          .target = target >= v && target < v + words ? target - v : -1});
        }
      });
      if (a.dh) multiply(x, isa, p.dh, s.gemm);
      if (a.dw) multiply(x, isa, p.dw, s.gemm);
    }
  }
}

constexpr Speed kSpeedBackward{.unit = Unit::fma_f32, .compute = 0.6, .memory = 0.85};

template <Isa isa>
constexpr Kernel<LinearCrossEntropyBackward> chunked_backward(const char* name) {
  return {name,          Place::cpu, isa, Tier::fast, supports_backward<isa>, launch_backward<isa>, workspace_backward<isa>,
          kSpeedBackward};
}

}  // namespace

std::span<const Kernel<LinearCrossEntropyBackward>> LinearCrossEntropyBackward::kernels() {
  static const Kernel<LinearCrossEntropyBackward> rows[] = {
      chunked_backward<Isa::avx512>("chunked_avx512"),
      chunked_backward<Isa::avx2>("chunked_avx2"),
      chunked_backward<Isa::portable>("chunked_portable"),
      {"reference", Place::cpu, Isa::portable, Tier::reference, always<LinearCrossEntropyBackward>, reference},
  };
  return rows;
}

void linear_cross_entropy(Ctx& x, const LinearCrossEntropy::Args& a) { call<LinearCrossEntropy>(x, a); }
void linear_cross_entropy_backward(Ctx& x, const LinearCrossEntropyBackward::Args& a) { call<LinearCrossEntropyBackward>(x, a); }
OpInfo linear_cross_entropy_op() { return erase<LinearCrossEntropy>(); }
OpInfo linear_cross_entropy_backward_op() { return erase<LinearCrossEntropyBackward>(); }

}  // namespace ridge
