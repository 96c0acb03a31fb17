// Every op of the list against its own contract. A new op is tested by its line in ops/list.h.
#include "check/check_op.h"

#include <gtest/gtest.h>

#include "check/grad_op.h"
#include "ops/list.h"

namespace ridge {
namespace {

class EveryOp : public testing::TestWithParam<const OpInfo*> {};

TEST_P(EveryOp, RowsKeepTheContract) {
  const CheckReport r = check_op(*GetParam(), {.suite = Suite::model, .budget_s = 20});
  EXPECT_TRUE(r.ok());
  printf("%s", to_text(r).c_str());
}

TEST_P(EveryOp, ToleranceRejectsBugs) {
  for (const Failure& f : check_rejections(*GetParam(), {})) ADD_FAILURE() << f.what;
}

TEST_P(EveryOp, GradientsMatchDifferences) {
  const GradReport r = grad_op(*GetParam(), {});
  if (!r.differentiable) GTEST_SKIP() << "has no backward pass";
  EXPECT_TRUE(r.ok());
  printf("%s", to_text(r).c_str());
}

std::vector<const OpInfo*> every_op() {
  std::vector<const OpInfo*> all;
  for (const OpInfo& op : all_ops()) all.push_back(&op);
  return all;
}

INSTANTIATE_TEST_SUITE_P(Ops, EveryOp, testing::ValuesIn(every_op()), [](const auto& info) { return std::string(info.param->name); });

}  // namespace
}  // namespace ridge
