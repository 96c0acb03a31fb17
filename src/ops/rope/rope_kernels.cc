// rope's rows, best first: one source for every ISA, tokens shared among threads in chunks.
#include <cmath>
#include <numbers>

#include "base/check.h"
#include "device/isa.h"
#include "ops/call.h"
#include "ops/rope/rope.h"
#include "ops/rope/rope_cpu.h"
#include "tile/cpu/isa_table.h"

namespace ridge {

RIDGE_ISA_TABLES(RopeCpu, rope_cpu)

namespace {

constexpr int64_t kMaxDim = 512;
constexpr int64_t kChunk = 8;       // tokens a task: some microseconds
constexpr int64_t kGradChunk = 32;  // fixed, for the norms' gradients are summed chunk by chunk

bool dense_float(const View& v) {
  return (v.type == DType::f32 || v.type == DType::f16 || v.type == DType::bf16) && v.rows_dense();
}
bool plain_norm(const View& v) { return !v || (v.type == DType::f32 && v.dense()); }

bool dense_pages(const View& v) {  // the contract has seen to whole blocks
  return !v || dense_float(v) || v.type == DType::q8_0;
}

RopeFloat rope_float(DType type) {
  switch (type) {
    case DType::f16: return RopeFloat::f16;
    case DType::bf16: return RopeFloat::bf16;
    case DType::q8_0: return RopeFloat::q8;
    default: return RopeFloat::f32;
  }
}

RopeView rope_view(const View& v) {
  const RopeFloat type = rope_float(v.type);
  return {v ? v.data : nullptr, type, v.strides[0], v.strides[1], v.strides[2]};
}

// 64 bits of a turn need a long double: a double's 53 would be 2e-7 radians off at position 2^31.
uint64_t step_of(double frequency) {
  const long double turns = frequency / (2 * std::numbers::pi_v<long double>), part = turns - std::floor(turns);
  return part >= 0 && part < 1 ? uint64_t(std::ldexp(part, 64)) : 0;
}

struct Steps {
  uint64_t of[kMaxDim / 2];
  template <class Args>
  RopeTurn turn(const Args& a, int64_t d) {
    const int64_t half = (a.rotary_dim ? a.rotary_dim : d) / 2;
    if (a.inv_freq) {
      for (int64_t i = 0; i < half; ++i) of[i] = step_of(a.inv_freq.get(i));
    } else {
      double frequency[kMaxDim / 2];
      rope_frequencies(a.frequencies, view_of(frequency, DType::f64, {half}));
      for (int64_t i = 0; i < half; ++i) of[i] = step_of(frequency[i]);
    }
    return {of,
            half,
            d,
            a.pairs == RopePairs::interleaved,
            float(rope_attention_factor(a.frequencies)),
            a.positions.of.template as<int32_t>(),
            a.positions.of.strides[0]};
  }
};

Verdict takes(const Rope::Args& a) {
  if (a.q.dims[2] > kMaxDim || (a.v && a.v.dims[2] > kMaxDim)) return {"head dimensions are at most 512"};
  for (const View& v : {a.q, a.k, a.q_out, a.k_out, a.v})
    if (v && !dense_float(v)) return {"everything turned or copied is f32, f16 or bf16 with dense head rows"};
  if (!dense_pages(a.k_pages) || !dense_pages(a.v_pages)) return {"pages are f32, f16 or bf16 with dense head rows, or Q8_0"};
  if (!plain_norm(a.q_norm) || !plain_norm(a.k_norm)) return {"q_norm and k_norm are dense f32"};
  return {};
}

template <Isa isa>
void launch(Ctx& x, const Rope::Args& a, char*) {
  Steps steps;
  const RopeCall c{.turn = steps.turn(a, a.q.dims[2]),
                   .q = rope_view(a.q),
                   .k = rope_view(a.k),
                   .v = rope_view(a.v),
                   .q_out = rope_view(a.q_out),
                   .k_out = rope_view(a.k_out),
                   .k_pages = rope_view(a.k_pages),
                   .v_pages = rope_view(a.v_pages),
                   .heads = a.q.dims[1],
                   .kv_heads = a.k.dims[1],
                   .dv = a.v ? a.v.dims[2] : 0,
                   .page = a.k_pages ? a.k_pages.dims[2] : 1,
                   .slots = a.k_pages ? a.pages.slots.as<int64_t>() : nullptr,
                   .slot_stride = a.pages.slots.strides[0],
                   .q_norm = a.q_norm ? a.q_norm.as<float>() : nullptr,
                   .k_norm = a.k_norm ? a.k_norm.as<float>() : nullptr,
                   .eps = float(a.eps)};
  const int64_t tokens = a.q.dims[0];
  x.pool().parallel((tokens + kChunk - 1) / kChunk,
                    [&](int64_t i, int) { rope_cpu(isa).forward(c, i * kChunk, std::min(tokens, (i + 1) * kChunk)); });
}

// ---- backward

const View& any_gradient(const RopeBackward::Args& a) { return a.d_q_out ? a.d_q_out : a.d_k_out; }
int64_t grad_chunks(const RopeBackward::Args& a) { return (any_gradient(a).dims[0] + kGradChunk - 1) / kGradChunk; }

Verdict takes_gradient(const RopeBackward::Args& a) {
  if (any_gradient(a).dims[2] > kMaxDim) return {"head dimensions are at most 512"};
  for (const View& v : {a.d_q_out, a.d_k_out, a.dq, a.dk})
    if (v && (v.type != DType::f32 || !v.rows_dense())) return {"gradients are f32 with dense head rows"};
  for (const View& v : {a.q, a.k})
    if (v && !dense_float(v)) return {"q and k are f32, f16 or bf16 with dense head rows"};
  for (const View& v : {a.q_norm, a.k_norm})
    if (!plain_norm(v)) return {"q_norm and k_norm are dense f32"};
  return {};
}

int64_t workspace(const RopeBackward::Args& a) {  // a gradient of the norm for each chunk
  return a.dq_norm || a.dk_norm ? grad_chunks(a) * any_gradient(a).dims[2] * int64_t(sizeof(float)) : 0;
}

template <Isa isa>
void turn_back(Ctx& x, const RopeTurn& turn, const View& d_out, const View& in, const View& dx, const View& norm,
               const View& d_norm, double eps, float* partials) {
  if (!d_out || (!dx && !d_norm)) return;
  const RopeGradCall c{.turn = turn,
                       .d_out = rope_view(d_out),
                       .x = rope_view(in),
                       .dx = rope_view(dx),
                       .heads = d_out.dims[1],
                       .norm = norm ? norm.as<float>() : nullptr,
                       .d_norm = nullptr,
                       .eps = float(eps)};
  const int64_t tokens = d_out.dims[0], d = d_out.dims[2], chunks = (tokens + kGradChunk - 1) / kGradChunk;
  x.pool().parallel(chunks, [&](int64_t i, int) {
    RopeGradCall mine = c;
    if (d_norm) mine.d_norm = partials + i * d;
    rope_cpu(isa).backward(mine, i * kGradChunk, std::min(tokens, (i + 1) * kGradChunk));
  });
  for (int64_t e = 0; e < d && d_norm; ++e) {
    double s = 0;
    for (int64_t i = 0; i < chunks; ++i) s += partials[i * d + e];
    d_norm.add(s, e);
  }
}

template <Isa isa>
void launch_gradient(Ctx& x, const RopeBackward::Args& a, char* scratch) {
  Steps steps;
  const RopeTurn turn = steps.turn(a, any_gradient(a).dims[2]);
  float* partials = reinterpret_cast<float*>(scratch);
  turn_back<isa>(x, turn, a.d_q_out, a.q, a.dq, a.q_norm, a.dq_norm, a.eps, partials);
  turn_back<isa>(x, turn, a.d_k_out, a.k, a.dk, a.k_norm, a.dk_norm, a.eps, partials);
}

}  // namespace

std::span<const Kernel<Rope>> Rope::kernels() {
  constexpr Speed speed{.unit = Unit::fma_f32, .compute = 0.05, .memory = 0.5};
  static const Kernel<Rope> rows[] = {
      {"phase_avx512", Place::cpu, Isa::avx512, Tier::fast, takes, launch<Isa::avx512>, nullptr, speed},
      {"phase_avx2", Place::cpu, Isa::avx2, Tier::fast, takes, launch<Isa::avx2>, nullptr, speed},
      {"phase_portable", Place::cpu, Isa::portable, Tier::general, takes, launch<Isa::portable>, nullptr, speed},
      {.name = "reference",
       .place = Place::cpu,
       .isa = Isa::portable,
       .tier = Tier::reference,
       .supports = always<Rope>,
       .launch = Rope::reference},
  };
  return rows;
}

std::span<const Kernel<RopeBackward>> RopeBackward::kernels() {
  constexpr Speed speed{.unit = Unit::fma_f32, .compute = 0.05, .memory = 0.5};
  static const Kernel<RopeBackward> rows[] = {
      {"phase_avx512", Place::cpu, Isa::avx512, Tier::fast, takes_gradient, launch_gradient<Isa::avx512>, workspace, speed},
      {"phase_avx2", Place::cpu, Isa::avx2, Tier::fast, takes_gradient, launch_gradient<Isa::avx2>, workspace, speed},
      {"phase_portable", Place::cpu, Isa::portable, Tier::general, takes_gradient, launch_gradient<Isa::portable>, workspace,
       speed},
      {.name = "reference",
       .place = Place::cpu,
       .isa = Isa::portable,
       .tier = Tier::reference,
       .supports = always<RopeBackward>,
       .launch = RopeBackward::reference},
  };
  return rows;
}

void rope(Ctx& x, const Rope::Args& a) { call<Rope>(x, a); }
void rope_backward(Ctx& x, const RopeBackward::Args& a) { call<RopeBackward>(x, a); }
OpInfo rope_op() { return erase<Rope>(); }
OpInfo rope_backward_op() { return erase<RopeBackward>(); }

}  // namespace ridge
