#include "meter/bound.h"

#include <algorithm>

namespace ridge {

namespace {

Unit fastest_float(const Machine& m) {
  Unit best = Unit::fma_f32;
  for (Unit u : {Unit::matrix_bf16, Unit::matrix_fp8})
    if (m.ceiling(u) > m.ceiling(best)) best = u;
  return best;
}

double over(double work, double rate) { return work > 0 && rate > 0 ? work / rate : 0; }

// Written bytes cost more than read ones only where a line is fetched first; the copy rate counts both, so reads and writes are
// charged the read rate and the difference stays in the row's fraction.
double memory_time(const Cost& c, const Machine& m) { return over(c.bytes(), m.dram_read); }

}  // namespace

Bound bound(const Cost& c, const Machine& m) {
  // Where vector units are the matrix unit too, the two kinds of arithmetic share it.
  const Unit unit = fastest_float(m);
  const double matrix = over(c.matmul_flops, m.ceiling(unit)), vector = over(c.vector_flops, m.ceiling(Unit::fma_f32));
  const double compute = unit == Unit::fma_f32 ? matrix + vector : std::max(matrix, vector);
  const double memory = memory_time(c, m);
  const double floor = std::max(compute, memory);
  const char* by = floor <= m.launch_s ? "launch"
                   : memory >= compute ? "memory"
                                       : unit_name(vector > matrix ? Unit::fma_f32 : unit);
  return {floor + m.launch_s, by};
}

double predict(const Cost& c, Unit unit, double compute, double memory, const Machine& m) {
  const double rate = m.ceiling(unit) > 0 ? m.ceiling(unit) : m.ceiling(fastest_float(m));
  const double arithmetic = over(c.matmul_flops, rate * compute) + over(c.vector_flops, m.ceiling(Unit::fma_f32) * compute);
  return std::max(arithmetic, memory_time(c, m) / memory) + m.launch_s;
}

}  // namespace ridge
