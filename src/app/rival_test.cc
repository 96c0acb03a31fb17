// `ridgeline bench --rival` against scripts that are no engines: they speak the protocol of tools/rivals/protocol.py, or fail to.
#include <cerrno>
#include <fstream>
#include <sstream>

#include "app/cli_testing.h"
#include "meter/ledger_file.h"

namespace ridge {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class RivalCli : public Cli {
 protected:
  // A rival that loads at once, notes its process and every question in files, and then answers by `body`, where n counts
  // questions from 0 and q is the question.
  std::string script(const std::string& body) const {
    return put(
        "rival.py",
        "import json, os, sys, time\n"
        "open('" +
            at("pid") +
            "', 'w').write(str(os.getpid()))\n"
            "start = json.loads(input())\n"
            "print(json.dumps({'version': 'fake 7, %d threads, %d tokens' % (start['threads'], start['context'])}), flush=True)\n"
            "notes = open('" +
            at("questions") +
            "', 'w')\n"
            "for n, line in enumerate(sys.stdin):\n"
            "  q = json.loads(line)\n"
            "  print(q['prompt'], q['tokens'], q['depth'], file=notes, flush=True)\n" +
            body);
  }
  std::string answers() const {  // a faster and a slower setting; both slow down from round to round
    return script("  print(json.dumps({'seconds': {'slow': 2.0 + n % 4, 'fast': 1.0 + n % 4}}), flush=True)\n");
  }
  Words words(const std::string& rival, const Words& more = {}) const {
    Words w = {"bench", tiny(), "-p", "16", "-n", "8", "-r", "3", "-t", "1", "--rival", rival};
    w.insert(w.end(), more.begin(), more.end());
    return w;
  }
  Words lines(const std::string& name) const {
    std::ifstream file(at(name));
    Words all;
    for (std::string line; std::getline(file, line);) all.push_back(line);
    return all;
  }
  bool gone() const {  // the rival's process
    std::ifstream file(at("pid"));
    pid_t pid = 0;
    file >> pid;
    return pid > 0 && kill(pid, 0) != 0 && errno == ESRCH;
  }
};

TEST_F(RivalCli, IsAskedOnceARoundAndItsBestSettingCounts) {
  const Json b = json_of(words(answers(), {"-d", "0,32"}));
  EXPECT_THAT(lines("questions"),
              ElementsAre("16 0 0", "16 0 0", "16 0 0", "16 0 0", "0 8 0", "0 8 0", "0 8 0", "0 8 0", "16 0 32", "16 0 32",
                          "16 0 32", "16 0 32", "0 8 32", "0 8 32", "0 8 32", "0 8 32"));
  ASSERT_EQ(b["rows"].size(), 4u);
  for (const Json& row : b["rows"].items()) {
    ASSERT_EQ(row["rivals"].size(), 1u);
    const Json& r = row["rivals"][0];
    EXPECT_THAT(keys_of(r), ElementsAre("name", "version", "tok_s", "ratio", "setting", "tok_s_range", "ratio_range"));
    EXPECT_EQ(r.get_string("name"), "rival.py");
    EXPECT_EQ(r.get_string("version"), "fake 7, 1 threads, 48 tokens");
    EXPECT_EQ(r.get_string("setting"), "fast");
    // Of 2, 3 and 4 seconds: the warm-up of 1 second is left out.
    const double count = row.get_string("test").starts_with("pp") ? 16 : 8;
    EXPECT_NEAR(r.get_number("tok_s", 0), count / 3, 1e-9);
    EXPECT_NEAR(r["tok_s_range"][0].number().value_or(0), count / 4, 1e-9);
    EXPECT_NEAR(r["tok_s_range"][1].number().value_or(0), count / 2, 1e-9);
    const double ours = row["tok_s"].get_number("median", 0), ratio = r.get_number("ratio", 0);
    EXPECT_NEAR(ratio, ours / (count / 3), 1e-9 * ratio);
    EXPECT_LE(r["ratio_range"][0].number().value_or(1e9), r["ratio_range"][1].number().value_or(0));
    EXPECT_LE(r["ratio_range"][0].number().value_or(1e9), row["tok_s"].get_number("max", 0) / (count / 2));
    EXPECT_GE(r["ratio_range"][1].number().value_or(0), row["tok_s"].get_number("min", 0) / (count / 4));
  }
  EXPECT_TRUE(gone());
}

TEST_F(RivalCli, HasColumnsInEveryTable) {
  const std::string rival = answers();
  for (const auto& [format, separator] : {std::pair("md", '|'), std::pair("csv", ',')}) {
    const Outcome r = ridgeline(words(rival + "," + rival, {"-o", format}));
    EXPECT_EQ(r.code, 0) << r.err;
    EXPECT_THAT(r.out, HasSubstr("fast"));
    std::istringstream text(r.out);
    std::vector<int64_t> columns;
    for (std::string line; std::getline(text, line);)
      if (const int64_t n = std::count(line.begin(), line.end(), separator); n > 2 || columns.size()) columns.push_back(n);
    ASSERT_GE(columns.size(), 3u) << r.out;
    for (int64_t n : columns) EXPECT_EQ(n, columns[0]) << r.out;
  }
}

TEST_F(RivalCli, HasALedgerRowOfItsOwn) {
  const std::string file = at("ledger.jsonl"), rival = answers();
  const Words alone = {"bench", tiny(), "-p", "16", "-n", "0", "-r", "3", "-t", "1", "--ledger", file};
  Words beside = alone;
  beside.insert(beside.end(), {"--rival", rival});
  EXPECT_EQ(ridgeline(beside).code, 0);
  EXPECT_EQ(ridgeline(alone).code, 0);
  const auto rows = read_ledger(file);
  ASSERT_TRUE(rows.ok()) << rows.status().sentence();
  ASSERT_EQ(rows->size(), 2u) << "one without a rival does not replace the one beside it";
  const LedgerRow& r = (*rows)[1];
  EXPECT_EQ((*rows)[0].rival, "");
  EXPECT_EQ((*rows)[0].row + ", beside rival.py", r.row);
  EXPECT_EQ(r.rival, "fake 7, 1 threads, 16 tokens, fast");
  EXPECT_NEAR(r.rival_time_s, 3, 1e-9);
  EXPECT_NEAR(r.ratio, r.rival_time_s / r.time_s, 1e-9 * r.ratio);
}

TEST_F(RivalCli, ThatCannotBeStartedIsOneSentence) {
  refused(ridgeline(words("nobody")), 1, {"\"nobody\"", "llama_cpp", "openvino"});
  refused(ridgeline(words(at("missing.py"))), 1, {"missing.py"});
  refused(ridgeline(words(answers(), {"--rival-python", at("python")})), 1, {at("python"), "--rival-python"});
  Program::Options variable;
  variable.environment["RIDGELINE_RIVAL_PYTHON"] = at("python");
  refused(ridgeline(words(answers()), variable), 1, {at("python")});
  refused(ridgeline(words(put("r.py", "import sys\nsys.exit(9)\n"))), 1, {"code 9", "r.py"});
  refused(ridgeline(words(put("r.py", "input()\nprint('{\"error\": \"no such package\"}')\n"))), 1, {"no such package"});
  refused(ridgeline(words(put("r.py", "input()\nprint('{}', flush=True)\ninput()\n"))), 1, {"no version"});
}

TEST_F(RivalCli, ThatFailsMidwayLeavesNothingHalfWritten) {
  const std::string file = at("ledger.jsonl");
  const std::pair<const char*, const char*> ends[] = {
      {"os.abort()", "signal 6"},
      {"print('seconds', flush=True)", "answer"},
      {"print('{\"error\": \"out of memory\"}', flush=True)", "out of memory"},
      {"print('{\"seconds\": {\"a\": 0}}', flush=True)", "no seconds"},
      {"print('{\"seconds\": {\"b\": 1}}', flush=True)", "change from round to round"},
      {"sys.stdout.write('x' * (2 << 20)); sys.stdout.flush()", "megabyte"},
  };
  for (const auto& [body, sentence] : ends) {  // in the second test, after its warm-up
    const std::string rival =
        script(std::string("  if n < 6: print('{\"seconds\": {\"a\": 1}}', flush=True)\n  else: ") + body + "\n");
    refused(ridgeline(words(rival, {"--json", "--ledger", file})), 1, {sentence});
    EXPECT_NE(access(file.c_str(), F_OK), 0) << body;
    EXPECT_TRUE(gone()) << body;
  }
}

TEST_F(RivalCli, InterruptedWhileItWorksEndsBoth) {
  const std::string rival = script("  time.sleep(1000)\n");
  Program p(words(rival), {});
  ASSERT_TRUE(p.printed("ours / rival.py"));
  while (lines("questions").empty()) usleep(1000);
  p.send(SIGINT);
  const Outcome r = p.wait();
  EXPECT_EQ(r.code, 130) << r.err;
  EXPECT_TRUE(gone());
}

TEST_F(RivalCli, ThatSpinsWhileItWaitsIsTold) {
  const std::string spins = put("spins.py",
                                "import json, sys, threading\n"
                                "def spin():\n"
                                "  while True: pass\n"
                                "input()\nprint('{\"version\": \"1\"}', flush=True)\n"
                                "threading.Thread(target=spin, daemon=True).start()\n"
                                "for line in sys.stdin: print('{\"seconds\": {\"a\": 1}}', flush=True)\n");
  const Words bench = {"bench", tiny({.context = 4096}), "-p", "0", "-n", "4000", "-r", "2", "-t", "1", "--rival"};
  auto told = [&](const std::string& rival) {
    Words w = bench;
    w.push_back(rival);
    const Outcome r = ridgeline(w);
    EXPECT_EQ(r.code, 0) << r.err;
    return r.err;
  };
  EXPECT_THAT(told(spins), HasSubstr("of a core while ours ran tg4000"));
  EXPECT_EQ(told(answers()), "");
}

}  // namespace
}  // namespace ridge
