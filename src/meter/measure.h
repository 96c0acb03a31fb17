// The ceilings of the CPU this runs on, measured with probe_cpu.h's loops, and where they are kept.
// Measuring takes two to three seconds; loading a file nothing. `plan` only loads, `doctor` always measures, `run` and `bench` do what is
// needed. The file is keyed by CPU, level and thread count, so a machine that comes back without AMX is another machine.
#pragma once
#include <string>

#include "device/isa.h"
#include "device/pool.h"
#include "meter/machine.h"

namespace ridge {

// All threads of the pool at once; each number is the best of short runs, so other programs lower it little. The caller sees to it that
// `isa` is within detect_isa(). Tests take an effort below 1: that part of the time and of the memory.
Machine measure_machine(const Pool& pool, Isa isa, double effort = 1);

// "${XDG_CACHE_HOME:-~/.cache}/ridgeline": what may be lost. Empty where neither variable is set.
std::string cache_folder();
std::string machine_path(Isa isa, int threads);  // in cache_folder()

// The file of this machine, or nominal values (measured == false) where there is none or it cannot be read.
Machine load_machine(Isa isa, int threads);
// Measures and keeps. A ceiling is a best, so each number that the file already has higher stays: a measurement beside busy programs does
// no harm, and deleting the file starts anew. A file that cannot be written is logged and otherwise no matter.
Machine measure_and_keep(const Pool& pool, Isa isa, double effort = 1);
// The file, or else a measurement that is kept.
Machine load_or_measure(const Pool& pool, Isa isa, double effort = 1);

}  // namespace ridge
