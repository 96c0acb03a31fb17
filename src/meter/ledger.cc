#include "meter/ledger.h"

namespace ridge {

LedgerLine& Ledger::line(const char* op, const char* row, const std::string& shape) {
  for (LedgerLine& l : lines_)
    if (l.op == op && l.row == row && l.shape == shape) return l;
  lines_.push_back({op, row, shape});
  return lines_.back();
}

double Ledger::bound_s() const {
  double s = 0;
  for (const LedgerLine& l : lines_) s += l.bound_s;
  return s;
}

double Ledger::predicted_s() const {
  double s = 0;
  for (const LedgerLine& l : lines_) s += l.predicted_s;
  return s;
}

double Ledger::time_s() const {
  double s = 0;
  for (const LedgerLine& l : lines_) s += l.time_s;
  return s;
}

Cost Ledger::cost() const {
  Cost c;
  for (const LedgerLine& l : lines_) c += l.cost;
  return c;
}

}  // namespace ridge
