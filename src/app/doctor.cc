// ridgeline doctor: measures this machine's ceilings, keeps them for plan and bench, and names what makes timings jitter.
#include <fmt/format.h>
#include <unistd.h>

#include "app/loaded.h"
#include "app/verbs.h"
#include "meter/doctor.h"
#include "meter/measure.h"

namespace ridge {

namespace {

void print_machine(const Machine& m, const std::string& path) {
  fmt::print("{}{}\n", m.name, m.measured ? "" : " (nominal: not measured yet)");
  for (int u = 0; u < kUnits; ++u)
    if (m.rate[u] > 0)
      fmt::print("  {:<14} {:>9.1f} G{}/s\n", unit_name(Unit(u)), m.rate[u] / 1e9,
                 unit_name(Unit(u))[0] == 'f' || u == int(Unit::matrix_bf16) ? "FLOP" : "OP");
  fmt::print("  {:<14} {:>9.1f} GB/s\n  {:<14} {:>9.1f} GB/s\n  {:<14} {:>9.1f} GB/s\n", "l2_read", m.l2_read / 1e9, "dram_read",
             m.dram_read / 1e9, "dram_copy", m.dram_copy / 1e9);
  for (const ReadRate& r : m.reads)
    fmt::print("  {:<14} {:>9.1f} GB/s\n", fmt::format("read {:.0f} MB", r.bytes / 1e6), r.rate / 1e9);
  fmt::print("  {:<14} {:>9.2f} us\n", "launch", m.launch_s * 1e6);
  if (!path.empty()) fmt::print("  kept in {}\n", path);
}

}  // namespace

int doctor_verb(const DoctorVerb& o) {
  const int threads = threads_of(o.threads);
  const Isa isa = active_isa();
  Machine m;
  std::string path;
  if (o.measure) {
    m = measure_and_keep(Pool(threads), isa);
    if (access(machine_path(isa, threads).c_str(), R_OK) == 0) path = machine_path(isa, threads);
  } else {
    m = load_machine(isa, threads);
  }
  const std::vector<DoctorRow> rows = doctor_rows(isa, threads);
  if (o.json) {
    Json list = Json::array();
    for (const DoctorRow& r : rows) list.push(Json::object({{"what", r.what}, {"value", r.value}, {"advice", r.advice}}));
    print_json(Json::object({{"machine", machine_json(m)}, {"kept", path}, {"checks", std::move(list)}}));
    return 0;
  }
  print_machine(m, path);
  fmt::print("\n");
  for (const DoctorRow& r : rows)
    fmt::print("{} {:<22} {}{}\n", r.advice.empty() ? "  ok " : " look", r.what, r.value,
               r.advice.empty() ? "" : "\n       " + r.advice);
  return 0;
}

}  // namespace ridge
