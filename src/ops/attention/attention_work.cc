#include "ops/attention/attention_work.h"

#include <algorithm>

#include "base/check.h"

namespace ridge {

namespace {

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

int64_t split_keys(int64_t keys, int block) { return std::max(kSplitKeys, ceil_div(ceil_div(keys, kSplits), block) * block); }

// What at least one of the rows [from, to) of a segment sees.
struct KeyRange {
  int64_t from, to;
};
KeyRange seen_by(const Attention::Args& a, int64_t queries, int64_t keys, int64_t group, int64_t from, int64_t to) {
  const int64_t first = keys - queries + from / group, last = keys - queries + (to - 1) / group;
  return {a.window > 0 ? std::max<int64_t>(0, first - a.window + 1) : 0, a.causal ? std::max<int64_t>(0, last + 1) : keys};
}

// Rows of a task, of a segment with `rows` a key head: what the stack holds at most, whole sub-tiles of any level.
int64_t rows_of_task(const Attention::Args& a, int64_t rows) {
  auto padded = [](int64_t d) { return ceil_div(d, kDimPad) * kDimPad; };
  const int64_t most = kTaskStateBytes / (4 * (padded(a.q.dims[2]) + padded(a.o.dims[2])));
  const int64_t even = ceil_div(ceil_div(rows * a.k.dims[1], kRowTasks), kDimPad) * kDimPad;
  return std::clamp(even, kSplitRows, std::min(most, kMostTaskRows));
}

struct Planner {
  const Attention::Args& a;
  const AttentionCpu& cpu;
  AttentionTask *tasks, *merges;
  float* partials;
  int64_t task_count = 0, merge_count = 0;

  // Few rows: all of them against ranges of keys.
  void split(AttentionTask t) {
    const int64_t size = split_keys(t.keys, cpu.block_keys), row = a.o.dims[2] + 2;
    const KeyRange seen{t.key_from, t.key_to};
    const int64_t from = seen.from / size, to = ceil_div(seen.to, size);
    t.partials = int32_t(std::max<int64_t>(1, to - from));
    if (t.partials == 1) return void(tasks[task_count++] = t);
    t.partial = partials;
    merges[merge_count++] = t;
    for (int64_t s = from; s < to; ++s) {
      t.key_from = std::max(seen.from, s * size);
      t.key_to = std::min(seen.to, (s + 1) * size);
      t.partial = partials;
      partials += t.rows * row;
      tasks[task_count++] = t;
    }
  }

  void segment(int64_t s) {
    const int64_t group = a.q.dims[1] / a.k.dims[1], first = int64_t(a.segments.cu_seqlens.get(s)),
                  queries = int64_t(a.segments.cu_seqlens.get(s + 1)) - first, rows = queries * group;
    const bool paged = a.k.rank == 4;
    const int64_t keys = paged ? int64_t(a.segments.kv_lens.get(s)) : queries;
    const int64_t task = rows_of_task(a, rows);
    for (int64_t kv = 0; kv < a.k.dims[1]; ++kv)
      for (int64_t r = 0; r < rows; r += task) {
        const int64_t n = std::min(task, rows - r);
        const KeyRange seen = seen_by(a, queries, keys, group, r, r + n);
        AttentionTask t{.first_token = first,
                        .queries = queries,
                        .keys = keys,
                        .table = paged ? a.pages.table.as<int32_t>(s) : nullptr,
                        .table_stride = a.pages.table.strides[1],
                        .key_from = seen.from,
                        .key_to = std::max(seen.from, seen.to),
                        .kv_head = int32_t(kv),
                        .first_row = int32_t(r),
                        .rows = int32_t(n),
                        .partials = 1,
                        .partial = nullptr};
        if (rows <= kSplitRows)
          split(t);
        else
          tasks[task_count++] = t;
      }
  }
};

}  // namespace

bool dense_keys(const View& v) { return v.type == DType::q8_0 ? v.whole_blocks() : dense_float(v); }

bool dense_float(const View& v) {
  return (v.type == DType::f32 || v.type == DType::f16 || v.type == DType::bf16) && v.rows_dense();
}

CpuFloat cpu_float(DType type) {
  switch (type) {
    case DType::f16: return CpuFloat::f16;
    case DType::bf16: return CpuFloat::bf16;
    case DType::q8_0: return CpuFloat::q8;
    default: RIDGE_DCHECK(type == DType::f32, "supports() takes f32, f16, bf16 and Q8_0"); return CpuFloat::f32;
  }
}

HeadView head_view(const View& v) { return {v.data, cpu_float(v.type), v.strides[0], v.strides[1]}; }

AttentionCall cpu_call(const Attention::Args& a) {
  auto keys = [](const View& v) {
    return v.rank == 4 ? KeyView{v.data, cpu_float(v.type), v.strides[0], v.strides[1], v.strides[2]}
                       : KeyView{v.data, cpu_float(v.type), 0, v.strides[1], v.strides[0]};
  };
  return {.q = head_view(a.q),
          .o = head_view(a.o),
          .k = keys(a.k),
          .v = keys(a.v),
          .lse = a.lse ? a.lse.as<float>() : nullptr,
          .lse_token = a.lse.strides[0],
          .lse_head = a.lse.strides[1],
          .sinks = a.sinks ? a.sinks.as<float>() : nullptr,
          .sink_stride = a.sinks.strides[0],
          .d = a.q.dims[2],
          .dv = a.o.dims[2],
          .group = a.q.dims[1] / a.k.dims[1],
          .page = a.k.rank == 4 ? a.k.dims[2] : 0,
          .scale = float(a.scale),
          .softcap = float(a.softcap),
          .window = a.window,
          .causal = a.causal};
}

int64_t most_tasks(const Attention::Args& a) {
  const int64_t group = a.q.dims[1] / a.k.dims[1];
  return a.k.dims[1] * (a.q.dims[0] * group / kSplitRows + kSplits * a.segments.count());
}

int64_t most_partials(const Attention::Args& a) {
  const int64_t keys = a.k.rank == 4 ? a.pages.table.dims[1] * a.k.dims[2] : a.k.dims[0];
  const int64_t splits = std::min<int64_t>(kSplits, ceil_div(keys, kSplitKeys));
  const int64_t rows = std::min(a.segments.count() * a.k.dims[1] * kSplitRows, a.q.dims[0] * a.q.dims[1]);
  return splits > 1 ? rows * splits * (a.o.dims[2] + 2) : 0;
}

Work plan_work(const Attention::Args& a, const AttentionCpu& cpu, char* scratch) {
  const int64_t most = most_tasks(a);
  AttentionTask* tasks = reinterpret_cast<AttentionTask*>(scratch);
  Planner p{a, cpu, tasks, tasks + most, reinterpret_cast<float*>(tasks + 2 * most)};
  for (int64_t s = 0; s < a.segments.count(); ++s) p.segment(s);
  auto size = [](const AttentionTask& t) { return t.rows * (t.key_to - t.key_from); };
  std::sort(tasks, tasks + p.task_count, [&](const AttentionTask& x, const AttentionTask& y) { return size(x) > size(y); });
  return {{tasks, size_t(p.task_count)}, {tasks + most, size_t(p.merge_count)}};
}

}  // namespace ridge
