#include "ops/call.h"

#include "meter/bound.h"

namespace ridge {

Cost cost_of(std::span<const Operand> operands, const void* args, Cost own) {
  for (const Operand& o : operands) {
    const View& v = o.of(const_cast<void*>(args));
    if (!v || !o.counted) continue;
    const double bytes = double(v.bytes());
    if (is_input(o.role)) own.bytes_read += bytes;
    if (o.role == Role::weight) own.weight_bytes += bytes;
    if (is_output(o.role)) own.bytes_written += bytes;
  }
  return own;
}

namespace detail {

void refuse_call(const char* op, const std::string& sentence, std::span<const Operand> operands, void* args) {
  std::string all = std::string(op) + ": " + sentence;
  for (const Operand& o : operands) all += std::string("\n  ") + o.name + ": " + to_string(o.of(args));
  check_failed(__FILE__, __LINE__, "the contract's check", all);
}

void no_row(const char* op) {
  check_failed(__FILE__, __LINE__, "a reference row", std::string(op) + " has no row that takes these arguments");
}

void enter(Ctx& x, const char* op, const char* row, const std::string& shape, const Cost& cost, const Speed& speed, double time_s,
           std::vector<Refusal> refused) {
  LedgerLine& l = x.ledger->line(op, row, shape);
  if (l.count++ == 0) l.refused = std::move(refused);
  l.cost += cost;
  l.time_s += time_s;
  if (!x.machine) return;
  const Bound b = bound(cost, *x.machine);
  l.bound_s += b.seconds;
  l.bound_by = b.by;
  l.predicted_s += predict(cost, speed.unit, speed.compute, speed.memory, *x.machine);
}

}  // namespace detail
}  // namespace ridge
