// Every op of the list against its own contract. A new op is tested by its line in ops/list.h.
#include "check/check_op.h"

#include <gtest/gtest.h>

#include "check/grad_op.h"
#include "ops/list.h"

namespace ridge {
namespace {

#ifdef RIDGE_SANITIZED
constexpr Suite kSuite = Suite::smoke;
constexpr double kGradFlops = 1e6;
#else
constexpr Suite kSuite = Suite::model;
constexpr double kGradFlops = 1e8;
#endif

class EveryOp : public testing::TestWithParam<const OpInfo*> {};
class EveryDifferentiableOp : public testing::TestWithParam<const OpInfo*> {};

TEST_P(EveryOp, RowsKeepTheContract) {
  const CheckReport r = check_op(*GetParam(), {.suite = kSuite, .budget_s = 20});
  EXPECT_TRUE(r.ok());
  printf("%s", to_text(r).c_str());
}

TEST_P(EveryOp, ToleranceRejectsBugs) {
  for (const Failure& f : check_rejections(*GetParam(), {})) ADD_FAILURE() << f.what;
}

TEST_P(EveryDifferentiableOp, GradientsMatchDifferences) {
  const GradReport r = grad_op(*GetParam(), {.case_flops = kGradFlops});
  EXPECT_TRUE(r.ok());
  printf("%s", to_text(r).c_str());
}

std::vector<const OpInfo*> ops(bool differentiable) {
  std::vector<const OpInfo*> all;
  for (const OpInfo& op : all_ops())
    if (op.vjp || !differentiable) all.push_back(&op);
  return all;
}

std::string name(const testing::TestParamInfo<const OpInfo*>& info) { return info.param->name; }

INSTANTIATE_TEST_SUITE_P(Ops, EveryOp, testing::ValuesIn(ops(false)), name);
INSTANTIATE_TEST_SUITE_P(Ops, EveryDifferentiableOp, testing::ValuesIn(ops(true)), name);

}  // namespace
}  // namespace ridge
