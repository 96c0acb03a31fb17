// The rule by which an output passes, and which element decides (Accuracy in ops/op.h):
//   |got - truth| <= relative * max |twin - truth| + floor * 2^-24 * max |truth|,  maxima over the operand;
// integers, infinities and NaN equal truth's. Where only the twin overflows (a value too large for the output's type), the twin's
// special value is as good as the truth's number.
#pragma once
#include <optional>
#include <string>

#include "check/args.h"

namespace ridge {

struct Worst {
  std::string operand;
  int64_t index[4] = {};
  double got = 0, truth = 0, tolerance = 0;
  double used = 0;  // |got - truth| / tolerance: above 1 fails; infinite for special values
  bool ok() const { return used <= 1; }
};
std::string to_string(const Worst& w);  // "c[3, 17]: got 1.25, truth 1.5, tolerance 1e-06"

// The element nearest to (or farthest beyond) its tolerance over all output operands.
Worst compare_outputs(const CaseArgs& got, const CaseArgs& truth, const CaseArgs& twin, const Accuracy& accuracy);

// Where two runs of one row differ in their outputs; NaN equals NaN. Layouts may differ.
std::optional<Worst> first_difference(const CaseArgs& a, const CaseArgs& b);

}  // namespace ridge
