#include "meter/ledger_file.h"

#include <sys/stat.h>

#include <fmt/format.h>
#include <algorithm>
#include <cerrno>
#include <tuple>

#include "io/mapping.h"
#include "io/new_file.h"

namespace ridge {

namespace {

Json text_or_null(const std::string& s) { return s.empty() ? Json() : Json(s); }

auto key(const LedgerRow& r) { return std::tie(r.op, r.test, r.case_name, r.row, r.device); }

}  // namespace

Json to_json(const LedgerRow& r) {
  const bool rival = !r.rival.empty();
  Json j = Json::object();
  r.op.empty() ? j.set("test", r.test) : j.set("op", r.op);
  j.set("case", r.case_name);
  j.set("row", r.row);
  j.set("device", r.device);
  j.set("dtype", r.dtype);
  j.set("time_s", r.time_s);
  j.set("bound_s", r.bound_s);
  j.set("bound_by", r.bound_by);
  j.set("fraction", r.fraction);
  j.set("rival", text_or_null(r.rival));
  j.set("rival_time_s", rival ? Json(r.rival_time_s) : Json());
  j.set("ratio", rival ? Json(r.ratio) : Json());
  j.set("machine", r.machine);
  j.set("date", r.date);
  j.set("commit", text_or_null(r.commit));
  j.set("sources", text_or_null(r.sources));
  return j;
}

Result<LedgerRow> ledger_row(const Json& line, const std::string& where) {
  JsonFields f(line, where);  // its first complaint becomes the Status
  LedgerRow r;
  r.op = f.get_string("op", "");
  r.test = f.get_string("test", "");
  if (r.op.empty() == r.test.empty()) f.complain("op", "a row is of an op or of a test: exactly one of the two is given");
  r.case_name = f.need_string("case");
  r.row = f.need_string("row");
  r.device = f.need_string("device");
  r.dtype = f.get_string("dtype", "");
  r.time_s = f.need_number("time_s");
  r.bound_s = f.need_number("bound_s");
  r.bound_by = f.get_string("bound_by", "");
  r.fraction = f.need_number("fraction");
  r.rival = f.get_string("rival", "");
  r.rival_time_s = f.get_number("rival_time_s", 0);
  r.ratio = f.get_number("ratio", 0);
  r.machine = f.get_string("machine", "");
  r.date = f.get_string("date", "");
  r.commit = f.get_string("commit", "");
  r.sources = f.get_string("sources", "");
  if (!f.status().ok()) return f.status();
  return r;
}

Result<std::vector<LedgerRow>> read_ledger(const std::string& path) {
  std::vector<LedgerRow> rows;
  struct stat s;
  if (stat(path.c_str(), &s) != 0 && errno == ENOENT) return rows;
  if (s.st_size == 0) return rows;
  Result<Mapping> file = Mapping::open(path);
  if (!file) return file.status();
  std::string_view text = file->bytes();
  for (int number = 1; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    const std::string where = fmt::format("{}:{}", path, number);
    const Result<Json> json = parse_json(line, where, kRequestJson);
    if (!json) return json.status();
    Result<LedgerRow> row = ledger_row(*json, where);
    if (!row) return row.status();
    rows.push_back(std::move(*row));
  }
  return rows;
}

Status update_ledger(const std::string& path, std::span<const LedgerRow> fresh) {
  Result<std::vector<LedgerRow>> old = read_ledger(path);
  if (!old) return old.status();
  std::vector<LedgerRow> rows = std::move(*old);
  for (const LedgerRow& r : fresh) {
    const auto same = std::find_if(rows.begin(), rows.end(), [&](const LedgerRow& o) { return key(o) == key(r); });
    if (same == rows.end())
      rows.push_back(r);
    else
      *same = r;
  }
  std::sort(rows.begin(), rows.end(), [](const LedgerRow& a, const LedgerRow& b) { return key(a) < key(b); });
  std::string text;
  for (const LedgerRow& r : rows) {
    append_text(to_json(r), text);
    text += '\n';
  }
  Result<NewFile> file = NewFile::create(path);
  if (!file) return file.status();
  if (const Status s = file->write(text); !s.ok()) return s;
  return file->commit();
}

}  // namespace ridge
