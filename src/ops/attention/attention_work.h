// How a call of attention is cut into tasks for the CPU rows. Everything that decides a segment's arithmetic is a function of
// that segment's own shape: its result never depends on what else is in the batch, nor on the number of threads.
#pragma once
#include <span>

#include "ops/attention/attention.h"
#include "ops/attention/attention_cpu.h"

namespace ridge {

// A segment with few rows a key head is split over its keys, into at most kSplits ranges of at least kSplitKeys: decode has few heads
// to share among many threads. 256 keys of 64 f32 features are 128 KB to read, some 10 us: far above a task's overhead.
// Others are split over their rows, into about kRowTasks tasks of all heads together, of at least kSplitRows rows: each task makes the
// keys ready to multiply again.
constexpr int kSplits = 16;
constexpr int64_t kSplitKeys = 256;
constexpr int64_t kSplitRows = 64, kRowTasks = 9;
constexpr int64_t kFewRows = 8;  // up to which features are in the lanes, not rows

constexpr int64_t kMaxHeadDim = 256;  // what the ISA code's stack holds

bool dense_float(const View& v);  // f32, f16 or bf16, innermost stride 1
bool dense_keys(const View& v);   // the same, or whole rows of Q8_0 blocks
CpuFloat cpu_float(DType type);
HeadView head_view(const View& v);
AttentionCall cpu_call(const Attention::Args& a);

// Upper bounds by the shapes of the arguments alone, so that scratch is the same for every step of a captured bucket.
int64_t most_tasks(const Attention::Args& a);
int64_t most_partials(const Attention::Args& a);  // floats

struct Work {
  std::span<AttentionTask> tasks;   // largest first
  std::span<AttentionTask> merges;  // one for each group of partials
};
// Cuts the call into tasks, in scratch: most_tasks tasks, as many merges, most_partials floats.
Work plan_work(const Attention::Args& a, const AttentionCpu& cpu, char* scratch);

}  // namespace ridge
