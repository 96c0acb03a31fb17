// ledger/<machine>.jsonl: the project's memory of speed. One JSON object a line; one line for an op (or model test), case, row and
// device: the newest replaces the older. The file appears whole or not at all.
//   {"op": "gemm", "case": "model_smollm2_ffn_down_Q4_1", "row": "stream", "device": "cpu", "dtype": "Q4_1", "time_s": ..., ...}
// A row of a model test has "test" ("pp512") instead of "op". What does not apply (no rival) is null.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "io/json.h"

namespace ridge {

struct LedgerRow {
  std::string op, test;  // one of the two
  std::string case_name, row, device, dtype;
  double time_s = 0, bound_s = 0;
  std::string bound_by;
  double fraction = 0;                 // bound_s / time_s
  std::string rival;                   // empty: none was measured
  double rival_time_s = 0, ratio = 0;  // ratio: rival_time_s / time_s, above 1 we are faster
  std::string machine, date, commit;
  std::string sources;  // hash of the op's folder and src/tile; empty where the tree is absent
  bool operator==(const LedgerRow&) const = default;
};

Json to_json(const LedgerRow& r);
Result<LedgerRow> ledger_row(const Json& line, const std::string& where);

Result<std::vector<LedgerRow>> read_ledger(const std::string& path);             // a file that does not exist is empty
Status update_ledger(const std::string& path, std::span<const LedgerRow> rows);  // sorted, so that a diff shows what changed

}  // namespace ridge
