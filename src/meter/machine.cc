// Machine files: read as hostile, written whole or not at all.
#include "meter/machine.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>

#include "io/json.h"
#include "io/new_file.h"

namespace ridge {
namespace {

// The plain numbers of a machine file, for the reader and the writer.
struct Number {
  const char* key;
  double Machine::*member;
};
constexpr Number kNumbers[] = {{"dram_read", &Machine::dram_read},
                               {"dram_copy", &Machine::dram_copy},
                               {"l2_read", &Machine::l2_read},
                               {"launch_s", &Machine::launch_s}};

// mkdir -p for the folder of a file.
Status make_folders(const std::string& path) {
  for (size_t slash = path.find('/', 1); slash != std::string::npos; slash = path.find('/', slash + 1)) {
    const std::string folder = path.substr(0, slash);
    if (mkdir(folder.c_str(), 0777) != 0 && errno != EEXIST)
      return failed(
          fmt::format("The folder {} cannot be made ({}): choose another with XDG_CACHE_HOME.", folder, strerror(errno)));
  }
  return {};
}

Result<std::vector<ReadRate>> read_curve(const Json& json, const std::string& where) {
  std::vector<ReadRate> curve;
  for (const Json& point : json.items()) {
    const double bytes = point[0].number().value_or(0), rate = point[1].number().value_or(0);
    if (point.items().size() != 2 || !(bytes > (curve.empty() ? 0 : curve.back().bytes)) || !(rate > 0) || std::isinf(rate))
      return unloadable(where + ": \"reads\" must be pairs [bytes, B/s], all above zero and ascending in bytes.");
    curve.push_back({bytes, rate});
  }
  return curve;
}

}  // namespace

const char* unit_name(Unit unit) {
  constexpr const char* names[kUnits] = {"fma_f32", "vector_i8", "matrix_bf16", "matrix_i8", "matrix_fp8"};
  return names[int(unit)];
}

double Machine::read_rate(double bytes) const {
  if (reads.empty()) return dram_read;
  if (bytes <= reads.front().bytes) return reads.front().rate;
  for (size_t i = 1; i < reads.size(); ++i) {
    const ReadRate &low = reads[i - 1], &high = reads[i];
    if (bytes > high.bytes) continue;
    const double part = std::log(bytes / low.bytes) / std::log(high.bytes / low.bytes);
    return low.rate * std::pow(high.rate / low.rate, part);
  }
  return reads.back().rate;
}

Machine nominal_machine(const std::string& cpu, const std::string& isa, int threads) {
  Machine m{
      .name = fmt::format("{}, {}, {} thread{}", cpu, isa, threads, threads == 1 ? "" : "s"), .isa = isa, .threads = threads};
  m.note = "nominal values: `ridgeline doctor` measures";
  const double all = threads, clock = 2.5e9;  // two vector instructions a cycle
  const bool avx512 = isa == "avx512" || isa == "vnni" || isa == "amx", avx2 = isa == "avx2";
  m.rate[int(Unit::fma_f32)] = all * clock * (avx512 ? 64 : avx2 ? 32 : 8);
  if (avx512 || avx2) m.rate[int(Unit::vector_i8)] = all * clock * (avx2 ? 64 : isa == "avx512" ? 128 : 256);
  if (isa == "amx") {
    m.rate[int(Unit::matrix_bf16)] = all * clock * 1024;
    m.rate[int(Unit::matrix_i8)] = all * clock * 2048;
  }
  m.l2_read = all * 50e9;
  m.dram_read = std::min(all * 10e9, 100e9);
  m.dram_copy = m.dram_read;
  m.launch_s = threads > 1 ? 1e-6 : 0;
  return m;
}

Json machine_json(const Machine& m) {
  Json json = Json::object({{"name", m.name}});
  if (!m.isa.empty()) json.set("isa", m.isa);
  if (m.threads) json.set("threads", m.threads);
  for (int u = 0; u < kUnits; ++u)
    if (m.rate[u] > 0) json.set(unit_name(Unit(u)), m.rate[u]);
  for (const Number& number : kNumbers)
    if (m.*number.member > 0) json.set(number.key, m.*number.member);
  if (!m.reads.empty()) {
    Json& curve = json.set("reads", Json::array());
    for (const ReadRate& r : m.reads) curve.push(Json(Json::Array{Json(r.bytes), Json(r.rate)}));
  }
  json.set("measured", m.measured);
  if (!m.note.empty()) json.set("note", m.note);
  return json;
}

Result<Machine> machine_from_json(const Json& json, const std::string& where) {
  if (!json.is_object()) return unloadable(where + ": a machine file must be an object, and this is " + json.kind_name() + ".");
  Machine m;
  JsonFields fields(json, where);
  m.name = fields.need_string("name");
  m.isa = fields.get_string("isa", "");
  m.threads = int(fields.get_int("threads", 0, 0, 1 << 20));
  m.measured = fields.get_bool("measured", false);
  m.note = fields.get_string("note", "");
  std::string known = " name isa threads measured note reads ";
  const auto take = [&](const char* key, double& value) {
    known += std::string(key) + " ";
    value = fields.get_number(key, 0);
    if (!(value >= 0) || std::isinf(value)) fields.complain(key, "must be a finite number that is not negative");
  };
  for (int u = 0; u < kUnits; ++u) take(unit_name(Unit(u)), m.rate[u]);
  for (const Number& number : kNumbers) take(number.key, m.*number.member);
  if (!fields.status()) return fields.status();
  for (const Json::Member& member : json.members())
    if (known.find(" " + member.key + " ") == std::string::npos)
      return unloadable(fmt::format("{}: \"{:.60}\" is no key of a machine file; there are:{}.", where, member.key,
                                    known.substr(0, known.size() - 1)));
  if (m.dram_read <= 0) return unloadable(where + ": \"dram_read\" (B/s) must be there and above zero.");
  if (m.ceiling(Unit::fma_f32) <= 0 && m.ceiling(Unit::matrix_bf16) <= 0)
    return unloadable(where + ": a machine needs \"fma_f32\" or \"matrix_bf16\" (FLOP/s) above zero.");
  Result<std::vector<ReadRate>> curve = read_curve(json["reads"], where);
  if (!curve) return curve.status();
  m.reads = std::move(*curve);
  return m;
}

Result<Machine> read_machine(const std::string& path) {
  const Result<Json> json = read_json(path, kHeaderJson);
  if (!json) return json.status();
  return machine_from_json(*json, path);
}

Status write_machine(const Machine& m, const std::string& path) {
  if (Status made = make_folders(path); !made) return made;
  Result<NewFile> file = NewFile::create(path);
  if (!file) return file.status();
  if (Status written = file->write(to_text(machine_json(m), 2) + "\n"); !written) return written;
  return file->commit();
}

}  // namespace ridge
