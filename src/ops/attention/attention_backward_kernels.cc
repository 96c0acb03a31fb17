// attention_backward's rows, best first.
#include <algorithm>
#include <cmath>

#include "device/isa.h"
#include "ops/attention/attention.h"
#include "ops/attention/attention_work.h"
#include "ops/call.h"
#include "tile/cpu/isa_table.h"

namespace ridge {

RIDGE_ISA_TABLES(AttentionGradCpu, attention_grad_cpu)

namespace {

using Args = AttentionBackward::Args;
constexpr int64_t kTokensATask = 32;

Verdict takes(const Args& a) {
  const int64_t d = a.q.dims[2], dv = a.v.dims[2];
  if (d % 8 != 0 || dv % 8 != 0 || d > kMaxHeadDim || dv > kMaxHeadDim) return {"head dimensions are multiples of 8 up to 256"};
  for (const View& v : {a.q, a.k, a.v, a.o, a.d_o})
    if (!dense_float(v)) return {"q, k, v, o and d_o are f32, f16 or bf16 with dense head rows"};
  for (const View& v : {a.dq, a.dk, a.dv})
    if (v && (v.type != DType::f32 || !v.rows_dense())) return {"gradients are f32 with dense head rows"};
  for (const View& v : {a.lse, a.d_lse, a.sinks, a.d_sinks})
    if (v && v.type != DType::f32) return {"lse and sinks are f32"};
  if (a.q.dims[0] >= int64_t(1) << 24) return {"a batch has fewer than 2^24 tokens"};
  return {};
}

AttentionGrad cpu_call(const Args& a, float* delta) {
  auto wanted = [](const View& v) { return v ? head_view(v) : HeadView{}; };
  return {.q = head_view(a.q),
          .k = head_view(a.k),
          .v = head_view(a.v),
          .o = head_view(a.o),
          .d_o = head_view(a.d_o),
          .lse = a.lse.as<float>(),
          .d_lse = a.d_lse ? a.d_lse.as<float>() : nullptr,
          .lse_token = a.lse.strides[0],
          .lse_head = a.lse.strides[1],
          .d_lse_token = a.d_lse.strides[0],
          .d_lse_head = a.d_lse.strides[1],
          .delta = delta,
          .heads = a.q.dims[1],
          .group = a.q.dims[1] / a.k.dims[1],
          .d = a.q.dims[2],
          .dv = a.v.dims[2],
          .dq = wanted(a.dq),
          .dk = wanted(a.dk),
          .d_v = wanted(a.dv),
          .scale = float(a.scale),
          .softcap = float(a.softcap),
          .window = a.window,
          .causal = a.causal};
}

int64_t most_tasks(const Args& a, int tile) {
  const int64_t group = a.q.dims[1] / a.k.dims[1];
  return a.k.dims[1] * (a.q.dims[0] * group / tile + a.q.dims[0] / tile + 2 * a.segments.count());
}
int64_t delta_bytes(const Args& a) { return (a.q.dims[0] * a.q.dims[1] * int64_t(sizeof(float)) + 63) / 64 * 64; }

template <Isa isa>
int64_t workspace(const Args& a) {
  return delta_bytes(a) + most_tasks(a, attention_grad_cpu(isa).tile) * int64_t(sizeof(AttentionGradTask));
}

int64_t plan(const Args& a, int tile, AttentionGradTask* tasks) {
  const int64_t group = a.q.dims[1] / a.k.dims[1];
  int64_t n = 0;
  for (int64_t s = 0; s < a.segments.count(); ++s) {
    const int64_t first = int64_t(a.segments.cu_seqlens.get(s)), tokens = int64_t(a.segments.cu_seqlens.get(s + 1)) - first;
    for (int64_t kv = 0; kv < a.k.dims[1]; ++kv)
      for (bool keys : {true, false}) {
        if (keys ? !a.dk && !a.dv : !a.dq) continue;
        const int64_t all = keys ? tokens : tokens * group;
        for (int64_t i = 0; i < all; i += tile)
          tasks[n++] = {first, tokens, int32_t(kv), int32_t(i), int32_t(std::min<int64_t>(tile, all - i)), keys};
      }
  }
  // Longest first: a tile of keys meets up to `group` times as many rows as a tile of rows meets keys.
  auto size = [&](const AttentionGradTask& t) {
    if (!a.causal) return t.keys ? t.tokens * group * 4 : t.tokens * 3;
    return t.keys ? (t.tokens - t.first) * group * 4 : t.first / group * 3;
  };
  std::sort(tasks, tasks + n, [&](const AttentionGradTask& x, const AttentionGradTask& y) { return size(x) > size(y); });
  return n;
}

void sink_gradients(Ctx& x, const Args& a, const float* delta) {
  if (!a.d_sinks || a.segments.count() == 0) return;
  const int64_t heads = a.q.dims[1], from = int64_t(a.segments.cu_seqlens.get(0)),
                to = int64_t(a.segments.cu_seqlens.get(a.segments.count()));
  x.pool().parallel(heads, [&](int64_t h, int) {
    double sum = 0;
    for (int64_t t = from; t < to; ++t)
      if (const double lse = a.lse.get(t, h); lse > -INFINITY) sum -= std::exp(a.sinks.get(h) - lse) * delta[t * heads + h];
    a.d_sinks.add(sum, h);
  });
}

template <Isa isa>
void launch(Ctx& x, const Args& a, char* scratch) {
  const AttentionGradCpu& cpu = attention_grad_cpu(isa);
  float* delta = reinterpret_cast<float*>(scratch);
  AttentionGradTask* tasks = reinterpret_cast<AttentionGradTask*>(scratch + delta_bytes(a));
  const AttentionGrad c = cpu_call(a, delta);
  const int64_t tokens = a.q.dims[0];
  x.pool().parallel((tokens + kTokensATask - 1) / kTokensATask,
                    [&](int64_t i, int) { cpu.deltas(c, i * kTokensATask, std::min(tokens, (i + 1) * kTokensATask)); });
  x.pool().parallel(plan(a, cpu.tile, tasks), [&](int64_t i, int) { (tasks[i].keys ? cpu.keys : cpu.queries)(c, tasks[i]); });
  sink_gradients(x, a, delta);
}

}  // namespace

std::span<const Kernel<AttentionBackward>> AttentionBackward::kernels() {
  constexpr auto cpu = Place::cpu;
  constexpr Speed speed{.unit = Unit::fma_f32, .compute = 0.4, .memory = 0.8};  // of 5 products; it does 7
  static const Kernel<AttentionBackward> rows[] = {
      {"two_pass_avx512", cpu, Isa::avx512, Tier::fast, takes, launch<Isa::avx512>, workspace<Isa::avx512>, speed},
      {"two_pass_avx2", cpu, Isa::avx2, Tier::fast, takes, launch<Isa::avx2>, workspace<Isa::avx2>, speed},
      {"two_pass_portable", cpu, Isa::portable, Tier::general, takes, launch<Isa::portable>, workspace<Isa::portable>, speed},
      {.name = "reference",
       .place = cpu,
       .isa = Isa::portable,
       .tier = Tier::reference,
       .supports = always<AttentionBackward>,
       .launch = AttentionBackward::reference},
  };
  return rows;
}

void attention_backward(Ctx& x, const AttentionBackward::Args& a) { call<AttentionBackward>(x, a); }
OpInfo attention_backward_op() { return erase<AttentionBackward>(); }

}  // namespace ridge
