// gemm beyond what its contract's cases say.
#include <gtest/gtest.h>

#include "check/check_op.h"
#include "check/grad_op.h"
#include "ops/list.h"

namespace ridge {
namespace {

class GemmTest : public testing::TestWithParam<Isa> {
 protected:
  void SetUp() override {
    if (GetParam() > active_isa()) GTEST_SKIP() << "this machine has no " << isa_name(GetParam());
  }
};

TEST_P(GemmTest, RowsKeepTheContract) {
  const CheckReport r = check_op(*find_op("gemm"), {.suite = Suite::edge, .row_filter = isa_name(GetParam()), .isa = GetParam()});
  EXPECT_TRUE(r.ok()) << to_text(r);
}

TEST(Gemm, ToleranceRejectsWhatIsWrong) {
  for (const Failure& f : check_rejections(*find_op("gemm"), {})) ADD_FAILURE() << f.case_name << " " << f.row << ": " << f.what;
}

TEST(Gemm, GradientsAgreeWithDifferences) {
  const GradReport r = grad_op(*find_op("gemm"), {.elements = 6, .case_flops = 2e7});
  EXPECT_TRUE(r.ok()) << to_text(r);
}

INSTANTIATE_TEST_SUITE_P(Isas, GemmTest, testing::Values(Isa::portable, Isa::avx2, Isa::avx512, Isa::amx),
                         [](const auto& isa) { return std::string(isa_name(isa.param)); });

}  // namespace
}  // namespace ridge
