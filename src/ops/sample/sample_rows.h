// The rows of a batch through the passes of one ISA.
#pragma once
#include "device/pool.h"
#include "ops/sample/sample.h"
#include "ops/sample/sample_cpu.h"

namespace ridge {

int64_t sample_workspace(const Sample::Args& a);
void sample_rows(const SampleCpu& cpu, const Pool& pool, const Sample::Args& a, char* scratch);

}  // namespace ridge
