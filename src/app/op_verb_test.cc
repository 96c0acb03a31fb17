// `ridgeline op ...` as a user sees it: the binary, its exit codes, its JSON.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <set>
#include <string>

#include "io/json.h"
#include "meter/ledger_file.h"

namespace ridge {
namespace {

using testing::HasSubstr;

struct Outcome {
  int code;
  std::string out;  // stdout, and stderr where asked for
};

Outcome run(const std::string& arguments) {
  FILE* p = popen((std::string(RIDGE_BINARY) + " op " + arguments).c_str(), "r");
  Outcome r{-1, ""};
  char buffer[4096];
  for (size_t n; (n = fread(buffer, 1, sizeof buffer, p)) > 0;) r.out.append(buffer, n);
  const int status = pclose(p);
  if (WIFEXITED(status)) r.code = WEXITSTATUS(status);
  return r;
}

Json parsed(const Outcome& r) {
  Result<Json> j = parse_json(r.out, "output", kRequestJson);
  EXPECT_TRUE(j.ok()) << (j.ok() ? "" : j.status().sentence()) << r.out;
  return j.ok() ? std::move(*j) : Json();
}

TEST(OpVerb, ListsOpsAndRows) {
  const Outcome text = run("list");
  EXPECT_EQ(text.code, 0);
  EXPECT_THAT(text.out, HasSubstr("gemm"));
  const Json j = parsed(run("list gemm --json"));
  ASSERT_EQ(j.size(), 1u);
  EXPECT_EQ(j[0].get_string("op"), "gemm");
  EXPECT_EQ(j[0]["rows"].items().back().get_string("row"), "reference");
  const Outcome one = run("list sample");
  EXPECT_THAT(one.out, HasSubstr("case smoke  smoke_greedy\n"));
  EXPECT_EQ(parsed(run("list sample --json"))[0]["cases"][0].get_string("case"), "smoke_greedy");
}

TEST(OpVerb, CasesAreNamedTheSameWayForEveryAction) {
  const auto cases = [](const std::string& arguments) {  // each once
    std::set<std::string> names;
    const Json j = parsed(run(arguments + " --json"));
    for (const char* list : {"", "gradients"})
      for (const Json& line : (*list ? j[0][list] : j).items())
        if (line.find("case")) names.insert(line.get_string("case"));
    return names;
  };
  for (const char* action : {"bench", "why", "grad"}) {
    const std::string words = std::string(action) + " glu" + (action == std::string("bench") ? " --seconds 0.001" : "");
    EXPECT_EQ(cases(words + " --case smoke_gelu"), (std::set<std::string>{"smoke_gelu"})) << action << ": the whole name";
    EXPECT_EQ(cases(words + " --case smoke_gelu_t"), (std::set<std::string>{"smoke_gelu_tanh", "smoke_gelu_tanh_ungated"}))
        << action << ": a part of names";
    EXPECT_EQ(cases(words + " --case gelu_tanh_un --suite smoke"), (std::set<std::string>{"smoke_gelu_tanh_ungated"})) << action;
  }
  EXPECT_EQ(parsed(run("check glu --case smoke_gelu --json"))[0].get_int("cases", 0), 1);
  EXPECT_EQ(parsed(run("check glu --case smoke_gelu_t --json"))[0].get_int("cases", 0), 2);
  for (const char* action : {"check", "grad", "bench", "why"})
    EXPECT_EQ(run(std::string(action) + " glu --case edge_silu_tails --suite smoke 2>/dev/null").code, 2) << action;
}

TEST(OpVerb, WhyShowsTheRowsAskedFor) {
  const Json j = parsed(run("why glu --case smoke_gelu --row reference --json"));
  ASSERT_EQ(j[0]["rows"].size(), 1u);
  EXPECT_FALSE(j[0]["rows"][0].get_bool("picked", true));
}

TEST(OpVerb, ChecksAndGradientsRunOnTheThreadsAskedFor) {  // the drivers' tests see that the runs do
  for (const std::string action : {"check", "grad"}) {
    EXPECT_EQ(parsed(run(action + " glu --case smoke_gelu -t 3 --json"))[0].get_int("threads", 0), 3) << action;
    EXPECT_EQ(parsed(run(action + " glu --case smoke_gelu --json"))[0].get_int("threads", 0), action == "check" ? 2 : 1);
  }
  EXPECT_EQ(run("check glu --case smoke_gelu -t 0 2>/dev/null").code, 2);
}

TEST(OpVerb, AnOptionWithoutEffectIsRefused) {
  const std::pair<const char*, const char*> wrong[] = {
      {"list --case x", "--case"},          {"list --row x", "--row"},
      {"list -t 2", "--threads"},           {"list --suite edge", "--suite"},
      {"grad glu --row x", "--row"},        {"grad glu --seconds 1", "--seconds"},
      {"why glu --seconds 1", "--seconds"}, {"check glu --ledger x", "--ledger"},
      {"why glu --ledger x", "--ledger"}};
  for (const auto& [words, option] : wrong) {
    const Outcome r = run(std::string(words) + " 2>&1");
    EXPECT_EQ(r.code, 2) << words;
    EXPECT_THAT(r.out, HasSubstr(std::string("has no use for ") + option)) << words;
  }
}

TEST(OpVerb, ChecksOneCaseOfOneRow) {  // the repro line of a failure
  const Outcome r = run("check sample --case smoke_everything --row reference --json");
  EXPECT_EQ(r.code, 0);
  const Json j = parsed(r);
  EXPECT_EQ(j[0].get_int("cases", 0), 1);
  EXPECT_TRUE(j[0].get_bool("ok", false));
}

TEST(OpVerb, WrongNamesAreUsageErrorsWithTheChoices) {
  const Outcome op = run("check gem 2>&1");
  EXPECT_EQ(op.code, 2);
  EXPECT_THAT(op.out, HasSubstr("gemm"));
  EXPECT_EQ(run("paint 2>/dev/null").code, 2);
  EXPECT_EQ(run("check gemm --case nothing_like_it 2>/dev/null").code, 2);
  EXPECT_EQ(run("check gemm --row nothing_like_it 2>/dev/null").code, 2);
  EXPECT_EQ(run("check gemm --suite large 2>/dev/null").code, 2);
}

TEST(OpVerb, BenchRowsAreLedgerRowsAndAreKept) {
  const std::string path = testing::TempDir() + "op_verb_" + std::to_string(getpid()) + ".jsonl";
  const Outcome r = run("bench sample --case smoke_greedy --json --ledger " + path);
  ASSERT_EQ(r.code, 0);
  const Json j = parsed(r);
  ASSERT_GE(j.size(), 1u);
  for (const char* key : {"op", "case", "row", "device", "dtype", "time_s", "bound_s", "bound_by", "fraction", "rival",
                          "rival_time_s", "ratio", "machine", "date", "commit", "sources"})
    EXPECT_NE(j[0].find(key), nullptr) << key;
  const auto kept = read_ledger(path);
  unlink(path.c_str());
  ASSERT_TRUE(kept.ok());
  EXPECT_EQ(kept->size(), j.size());
  EXPECT_EQ((*kept)[0].case_name, "smoke_greedy");
}

TEST(OpVerb, WhyNamesEveryRowWithItsVerdict) {
  const Json j = parsed(run("why sample --case smoke_greedy --json"));
  ASSERT_EQ(j.size(), 1u);
  ASSERT_GE(j[0]["rows"].size(), 1u);
  int picked = 0;
  for (const Json& row : j[0]["rows"].items()) picked += row.get_bool("picked", false);
  EXPECT_EQ(picked, 1);
}

TEST(OpVerb, GradientsOfAnOpWithoutABackwardPassAreNoFailure) {
  const Outcome r = run("grad sample");
  EXPECT_EQ(r.code, 0);
  EXPECT_THAT(r.out, HasSubstr("no backward pass"));
}

}  // namespace
}  // namespace ridge
