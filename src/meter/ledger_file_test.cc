#include "meter/ledger_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>

namespace ridge {
namespace {

struct LedgerFile : testing::Test {
  std::string path = testing::TempDir() + "ledger_" + std::to_string(getpid()) + ".jsonl";
  ~LedgerFile() override { unlink(path.c_str()); }
  void write(const std::string& text) {
    FILE* f = fopen(path.c_str(), "w");
    fwrite(text.data(), 1, text.size(), f);
    fclose(f);
  }
};

LedgerRow row(const std::string& op, const std::string& name, double time) {
  return {.op = op,
          .case_name = name,
          .row = "stream",
          .device = "cpu",
          .dtype = "Q4_1",
          .time_s = time,
          .bound_s = 0.5,
          .bound_by = "memory",
          .fraction = 0.5 / time,
          .machine = "M",
          .date = "2026-01-02T03:04:05Z",
          .commit = "abc",
          .sources = "0123"};
}

TEST_F(LedgerFile, NewestReplacesTheSameRow) {
  ASSERT_TRUE(update_ledger(path, std::vector{row("gemm", "b", 2), row("gemm", "a", 1)}).ok());
  LedgerRow rival = row("gemm", "b", 3);
  rival.rival = "onednn";
  rival.rival_time_s = 6;
  rival.ratio = 2;
  LedgerRow test = row("", "smollm2", 4);
  test.test = "pp512";
  ASSERT_TRUE(update_ledger(path, std::vector{rival, test}).ok());
  const auto rows = read_ledger(path);
  ASSERT_TRUE(rows.ok()) << rows.status().sentence();
  EXPECT_EQ(*rows, (std::vector{test, row("gemm", "a", 1), rival}));
}

TEST_F(LedgerFile, AbsentAndEmptyFilesAreEmptyLedgers) {
  EXPECT_TRUE((*read_ledger(path)).empty());
  write("");
  EXPECT_TRUE((*read_ledger(path)).empty());
}

TEST_F(LedgerFile, ABrokenLineIsNamedAndTheFileStays) {
  const std::string good = to_text(to_json(row("gemm", "a", 1))) + "\n";
  for (const char* bad : {"{", "[]", "{\"op\": \"gemm\"}", "{\"op\": 3}", "{\"op\":\"a\",\"test\":\"b\"}", "nul"}) {
    write(good + "\n" + bad + "\n");
    const auto rows = read_ledger(path);
    ASSERT_FALSE(rows.ok()) << bad;
    EXPECT_NE(rows.status().sentence().find(":3"), std::string::npos) << rows.status().sentence();
    EXPECT_FALSE(update_ledger(path, std::vector{row("gemm", "b", 2)}).ok());
    FILE* f = fopen(path.c_str(), "r");
    char text[4096] = {};
    const size_t n = fread(text, 1, sizeof text, f);
    fclose(f);
    EXPECT_EQ(std::string(text, n), good + "\n" + bad + "\n");
  }
}

TEST_F(LedgerFile, AFolderThatIsNotThereIsASentence) {
  EXPECT_FALSE(update_ledger("/nonexistent/folder/l.jsonl", std::vector{row("gemm", "a", 1)}).ok());
}

}  // namespace
}  // namespace ridge
