// The rows of `ridgeline bench` and the forms in which they are shown: Markdown, CSV, JSON, ledger. bench.cc measures them.
#pragma once
#include <string>
#include <vector>

#include "app/loaded.h"
#include "meter/ledger.h"
#include "meter/ledger_file.h"

namespace ridge {

struct Rates {
  double median, min, max;
};

Rates rates_of(std::vector<double> values);

// A rival in the setting that was its best, and how much faster we were: medians, and the range over the rounds.
struct RivalRow {
  std::string name, version, setting;
  Rates tok_s, ratio;
};

struct BenchTest {
  int64_t prompt, tokens, depth;  // prompt or tokens is 0
  int64_t count() const { return prompt + tokens; }
  std::string name() const;  // "pp512", "tg64@d4096"
};

struct BenchRow {
  BenchTest test;
  Rates tok_s;
  double bound, predicted;  // tok/s
  std::string bound_by;
  int64_t rss;
  std::vector<RivalRow> rivals;
  std::vector<LedgerLine> ops;  // what each kind of call cost at best, where that was asked for
};

Json to_json(const BenchRow& r, const Loaded& l);
void to_ledger(const BenchRow& r, const Loaded& l, const CommonOptions& o, std::vector<LedgerRow>& kept);

// `output`: md or csv. The head has columns for each rival, in the order that every row's rivals have.
struct RivalName {
  std::string name, version;
};
void print_head(const Loaded& l, const std::vector<RivalName>& rivals, const std::string& output);
void print_row(const BenchRow& r, const Loaded& l, const std::string& output);
void print_ops(const BenchRow& r);

}  // namespace ridge
