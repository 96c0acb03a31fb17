// The binary as its users meet it, on a tiny random model: every verb, the names in its JSON, and what must agree with what.
#include <fmt/format.h>

#include <fstream>
#include <set>
#include <sstream>

#include "app/cli_testing.h"
#include "meter/ledger_file.h"

namespace ridge {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAreArray;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

std::vector<double> numbers(const Json& list) {
  std::vector<double> all;
  for (const Json& j : list.items()) all.push_back(j.number().value_or(NAN));
  return all;
}

std::string text_of(const Json& run, size_t i = 0) { return run["answers"][i].get_string("text"); }

double sum_of(const Json& rows, const char* key) {
  double sum = 0;
  for (const Json& row : rows.items()) sum += row.get_number(key, NAN);
  return sum;
}

const std::string kText = "the thin hen then hid in the barn; 42 tests later: \xc3\xa9t\xc3\xa9, \xe6\xbc\xa2\xe5\xad\x97.\n";

// ---- run

TEST_F(Cli, RunStreamsItsAnswerAndEndsWithOneLineOfWhatItCost) {
  const std::string model = tiny();
  const Outcome r = ridgeline({"run", model, "-p", "the hen", "-n", "12", "-s", "7", "-t", "2"});
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_GT(r.out.size(), 1u);
  EXPECT_THAT(r.err, HasSubstr("llama 0.0M f32"));
  EXPECT_THAT(r.err, HasSubstr("prompt 5 tokens"));
  EXPECT_THAT(r.err, HasSubstr("decode 11 tokens"));
  EXPECT_THAT(r.err, HasSubstr("% of the bound"));
  EXPECT_THAT(r.err, HasSubstr("peak memory"));
  EXPECT_THAT(r.err, HasSubstr(describe_isa()));
  const Json j = json_of({"run", model, "-p", "the hen", "-n", "12", "-s", "7", "-t", "2"});
  EXPECT_EQ(text_of(j) + "\n", r.out) << "streamed text and JSON are one";
}

TEST_F(Cli, RunJsonHasTheDocumentedNames) {
  const Json j = json_of({"run", tiny(), "-p", "the hen", "-n", "6", "-s", "7", "-t", "1"});
  EXPECT_THAT(keys_of(j), ElementsAreArray({"model", "isa", "threads", "seed", "raw", "answers", "prompt_tok_s", "decode_tok_s",
                                            "bound_tok_s", "fraction", "peak_rss_bytes"}));
  const Json& a = j["answers"][size_t(0)];
  EXPECT_THAT(keys_of(a), ElementsAreArray({"text", "ids", "logprobs", "finish", "prompt_tokens"}));
  EXPECT_EQ(a["ids"].size(), 6u);
  EXPECT_EQ(a["logprobs"].size(), 6u);
  EXPECT_EQ(a.get_string("finish"), "length");
  EXPECT_EQ(a.get_int("prompt_tokens", 0), 5);
  EXPECT_EQ(j.get_int("seed", 0), 7);
  EXPECT_EQ(j.get_int("threads", 0), 1);
  EXPECT_EQ(j.get_string("isa"), isa_name(active_isa()));
  EXPECT_GT(j.get_number("decode_tok_s", 0), 0);
  EXPECT_GT(j.get_int("peak_rss_bytes", 0), 1 << 20);
}

TEST_F(Cli, NumbersThatDoNotExistAreNull) {
  const std::string model = tiny();
  const Json one = json_of({"run", model, "-p", "the", "-n", "1", "-t", "1"});
  EXPECT_TRUE(one["decode_tok_s"].is_null() && one["fraction"].is_null());
  EXPECT_GT(one.get_number("bound_tok_s", 0), 0);
  const Json two = json_of({"run", model, "-p", "the", "-p", "hen", "-n", "4", "-t", "1"});
  EXPECT_GT(two.get_number("decode_tok_s", 0), 0);
  EXPECT_TRUE(two["bound_tok_s"].is_null() && two["fraction"].is_null()) << "the bound is that of one sequence";
}

TEST_F(Cli, ChatJsonIsTheConversation) {
  Program p({"chat", tiny(), "-n", "5", "-s", "1", "-t", "1", "--system", "be kind", "--json"}, {.ask = true});
  p.say("the hen\n/set temperature 0.5\n/show\n");
  const Outcome r = p.wait();
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_THAT(r.err, HasSubstr("temperature         0.5")) << "what is said goes to stderr";
  Result<Json> j = parse_json(r.out, "stdout", kRequestJson);
  ASSERT_TRUE(j.ok()) << r.out;
  EXPECT_THAT(keys_of(*j), ElementsAreArray({"model", "system", "messages", "settings"}));
  EXPECT_EQ(j->get_string("system"), "be kind");
  ASSERT_EQ((*j)["messages"].size(), 2u);
  EXPECT_THAT(keys_of((*j)["messages"][size_t(1)]), ElementsAreArray({"role", "content"}));
  EXPECT_EQ((*j)["messages"][size_t(0)].get_string("content"), "the hen");
  EXPECT_EQ((*j)["settings"].get_number("temperature", 0), 0.5);
}

TEST_F(Cli, SameSeedSameTextOnAnyNumberOfThreads) {
  const std::string model = tiny();
  std::vector<std::string> texts;
  for (const char* threads : {"1", "2", "1"})
    texts.push_back(text_of(json_of({"run", model, "-p", "then in the barn", "-n", "40", "-s", "5", "-t", threads})));
  EXPECT_EQ(texts[0], texts[1]);
  EXPECT_EQ(texts[0], texts[2]);
  EXPECT_NE(texts[0], text_of(json_of({"run", model, "-p", "then in the barn", "-n", "40", "-s", "6", "-t", "1"})))
      << "the seed is used";
}

// On rows of f32: tiles round by how many rows there are, and a random model's near ties would tip.
TEST_F(Cli, PromptsOfOneBatchAreAnsweredAsAlone) {
  setenv("RIDGE_ISA", isa_name(std::min(detect_isa(), Isa::avx512)), 1);
  const std::string model = tiny(), prompts[] = {"the", "a longer prompt than the others", "in on an er"};
  Words together = {"run", model, "-n", "24", "-s", "9", "-t", "2"};
  for (const std::string& p : prompts) together.insert(together.end(), {"-p", p});
  const Json batch = json_of(together);
  ASSERT_EQ(batch["answers"].size(), 3u);
  for (size_t i = 0; i < 3; ++i)
    EXPECT_EQ(text_of(batch, i), text_of(json_of({"run", model, "-n", "24", "-s", "9", "-t", "2", "-p", prompts[i]}))) << i;
  const Outcome r = ridgeline(together);
  EXPECT_THAT(r.out, StartsWith("[0] "));
  EXPECT_THAT(r.out, HasSubstr("\n[2] "));
  unsetenv("RIDGE_ISA");
}

TEST_F(Cli, APromptIsOneTextWhateverItLooksLike) {
  const std::string model = tiny();
  for (const char* prompt : {"[the, hen]", "-n", "--help", "a,b", "{}", "%s", " ", "\n"}) {
    const Json j = json_of({"run", "-p", prompt, model, "-n", "1", "-t", "1"});
    ASSERT_EQ(j["answers"].size(), 1u) << prompt;
    EXPECT_EQ(j["answers"][size_t(0)].get_int("prompt_tokens", 0),
              int64_t(json_of({"tokenize", model, std::string("-p") + prompt})["ids"].size()))
        << prompt;
  }
}

TEST_F(Cli, RunReadsItsPromptFromAFileOrStandardInput) {
  const std::string model = tiny(), file = put("prompt.txt", "the hen");
  const std::string expected = text_of(json_of({"run", model, "-p", "the hen", "-n", "8", "-s", "1", "-t", "1"}));
  EXPECT_EQ(text_of(json_of({"run", model, "-f", file, "-n", "8", "-s", "1", "-t", "1"})), expected);
  for (const Words& more : {Words{}, Words{"-f", "-"}}) {
    Words words = {"run", model, "-n", "8", "-s", "1", "-t", "1"};
    words.insert(words.end(), more.begin(), more.end());
    Program p(words, {.ask = true});
    p.say("the hen");
    EXPECT_EQ(p.wait().out, expected + "\n");
  }
}

TEST_F(Cli, TheChatTemplateIsUsedUnlessRaw) {
  const std::string model = tiny({.chat_template = "{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}<|end|>"});
  const Words rest = {"-n", "8", "-s", "1", "-t", "1"};
  auto run = [&](Words words) {
    words.insert(words.begin(), {"run", model});
    words.insert(words.end(), rest.begin(), rest.end());
    return text_of(json_of(words));
  };
  EXPECT_EQ(run({"-p", "hi", "--system", "be"}), run({"--raw", "-p", "[system]be[user]hi<|end|>"}));
  EXPECT_NE(run({"-p", "hi"}), run({"--raw", "-p", "hi"}));
}

TEST_F(Cli, AFoldersChatTemplateIsItsFileOrTheDefaultOfItsConfig) {
  const std::string folder = hf();
  auto run = [&](Words words) {
    words.insert(words.begin(), {"run", folder, "-n", "8", "-s", "1", "-t", "1"});
    return text_of(json_of(words));
  };
  const std::string named = run({"--raw", "-p", "<hi>"}), file = run({"--raw", "-p", "[hi]"}), bare = run({"--raw", "-p", "hi"});
  EXPECT_EQ(run({"-p", "hi"}), bare) << "no template";
  put("hf/tokenizer_config.json", R"({"chat_template": [{"name": "tool_use", "template": "no"},
      {"name": "default", "template": "<{{ messages[0].content }}>"}]})");
  EXPECT_EQ(run({"-p", "hi"}), named);
  put("hf/chat_template.jinja", "[{{ messages[0].content }}]\n");
  EXPECT_EQ(run({"-p", "hi"}), file);
  EXPECT_TRUE(json_of({"info", folder}).get_bool("chat_template", false));
  unlink((folder + "/chat_template.jinja").c_str());
  put("hf/tokenizer_config.json", R"({"chat_template": [{"name": "rag", "template": "x"}]})");
  for (const Words& words : {Words{"run", folder, "-p", "hi", "-t", "1"}, Words{"chat", folder, "-t", "1"}})
    refused(ridgeline(words), 3, {folder + "/tokenizer_config.json", "\"default\", only rag"});
  EXPECT_EQ(run({"--raw", "-p", "hi"}), bare) << "--raw needs none";
  EXPECT_FALSE(json_of({"info", folder}).get_bool("chat_template", true));
}

TEST_F(Cli, TheModelsEndTokenEndsAnAnswer) {
  const Json free = json_of({"run", tiny(), "-p", "the", "-n", "4", "--temp", "0", "-t", "1"})["answers"][size_t(0)];
  const int32_t first = int32_t(free["ids"][size_t(0)].integer().value_or(-1));
  const Json ended =
      json_of({"run", tiny({.eos = first}), "-p", "the", "-n", "4", "--temp", "0", "-t", "1"})["answers"][size_t(0)];
  EXPECT_EQ(ended.get_string("finish"), "end");
  EXPECT_EQ(ended.get_string("text"), "");
  EXPECT_EQ(ended["ids"].size(), 1u);
}

TEST_F(Cli, AnswersEndAtTheContext) {
  const Json a = json_of({"run", tiny(), "-p", "the hen", "-n", "1000", "-c", "16", "-t", "1", "-s", "1"})["answers"][size_t(0)];
  EXPECT_EQ(a["ids"].size() + 5, 16u);
  EXPECT_EQ(a.get_string("finish"), "length");
  const Outcome none = ridgeline({"run", tiny(), "-p", "the hen", "-n", "0", "-t", "1"});
  EXPECT_EQ(none.code, 0) << none.err;
  EXPECT_EQ(none.out, "\n");
}

// ---- score, tokenize

TEST_F(Cli, ScoreAgreesWithItselfAndWithTokenizeAndRun) {
  const std::string model = tiny();
  const Json s = json_of({"score", model, "-p", kText, "-t", "2"});
  EXPECT_THAT(keys_of(s), ElementsAreArray({"ids", "logprobs", "top1", "perplexity"}));
  const std::vector<double> logprobs = numbers(s["logprobs"]);
  ASSERT_EQ(logprobs.size() + 1, s["ids"].size());
  ASSERT_EQ(s["top1"].size(), s["ids"].size());
  double sum = 0;
  for (double l : logprobs) {
    EXPECT_LT(l, 0);
    sum += l;
  }
  EXPECT_NEAR(s.get_number("perplexity", 0), std::exp(-sum / double(logprobs.size())),
              1e-9 * std::exp(-sum / double(logprobs.size())));

  const Json t = json_of({"tokenize", model, "-p", kText});
  EXPECT_THAT(keys_of(t), ElementsAreArray({"ids", "pieces"}));
  EXPECT_EQ(t["ids"], s["ids"]);
  EXPECT_EQ(t["pieces"].size(), t["ids"].size());

  // What a greedy run says next is the arg-max after the last position, with the log-probability that score gives it.
  const Json a = json_of({"run", model, "--raw", "-p", kText, "-n", "2", "--temp", "0", "-t", "1"})["answers"][size_t(0)];
  EXPECT_EQ(a["ids"][size_t(0)], s["top1"][s["ids"].size() - 1]);
}

TEST_F(Cli, ScoreTakesTextFromWhereverItIs) {
  const std::string model = tiny(), file = put("text.txt", kText);
  const Json expected = json_of({"score", model, "-p", kText, "-t", "1"});
  EXPECT_EQ(json_of({"score", model, file, "-t", "1"}), expected);
  EXPECT_EQ(json_of({"score", model, "-f", file, "-t", "1"}), expected);
  EXPECT_EQ(json_of({"score", model, kText, "-t", "1"}), expected);
  Program p({"score", model, "-", "-t", "1", "--json"}, {.ask = true});
  p.say(kText);
  Result<Json> piped = parse_json(p.wait().out, "stdout", kRequestJson);
  ASSERT_TRUE(piped.ok());
  EXPECT_EQ(*piped, expected);
}

TEST_F(Cli, TokensAreRowsWithoutJson) {
  const std::string model = tiny();
  EXPECT_EQ(ridgeline({"tokenize", model, "-p", "the then"}).out,
            "    116  \"t\"\n    256  \"he\"\n    260  \" t\"\n    256  \"he\"\n    110  \"n\"\n");
  const Outcome s = ridgeline({"score", model, "-p", "the then", "-t", "1"});
  EXPECT_EQ(std::count(s.out.begin(), s.out.end(), '\n'), 1 + 5 + 2) << s.out;
  EXPECT_THAT(s.out, HasSubstr("5 tokens, perplexity "));
}

TEST_F(Cli, SpecialTokensAreTextUnlessAskedFor) {
  const std::string model = tiny();
  EXPECT_EQ(json_of({"tokenize", model, "-p", "<|end|>"})["ids"].size(), 7u);
  EXPECT_EQ(json_of({"tokenize", model, "-p", "<|end|>", "--special"})["ids"], Json(std::vector<int>{265}));
}

TEST_F(Cli, AFolderGivesWhatTheGgufOfTheSameWeightsGives) {
  const std::string file = tiny(), folder = hf();
  const Json a = json_of({"score", file, "-p", kText, "-t", "1"}), b = json_of({"score", folder, "-p", kText, "-t", "1"});
  EXPECT_EQ(a["ids"], b["ids"]);
  EXPECT_EQ(a["top1"], b["top1"]);
  const std::vector<double> la = numbers(a["logprobs"]), lb = numbers(b["logprobs"]);
  ASSERT_EQ(la.size(), lb.size());
  for (size_t i = 0; i < la.size(); ++i) EXPECT_NEAR(la[i], lb[i], 1e-4) << i;
  auto raw = [&](const std::string& model) {
    return text_of(json_of({"run", model, "--raw", "-p", "the hen", "-n", "16", "--temp", "0", "-t", "1"}));
  };
  EXPECT_EQ(raw(file), raw(folder));
}

TEST_F(Cli, BrokenUtf8IsReplacedAndNeverLeavesAgain) {
  const std::string model = tiny(), broken = "the \xff\xfe hen \xe6\xbc", file = put("broken.txt", broken);
  const Json t = json_of({"tokenize", model, "-f", file});
  EXPECT_EQ(t["ids"], json_of({"tokenize", model, "-p", "the \xef\xbf\xbd\xef\xbf\xbd hen \xef\xbf\xbd"})["ids"]);
  EXPECT_EQ(json_of({"score", model, "-f", file, "-t", "1"})["ids"], t["ids"]);
  EXPECT_EQ(json_of({"run", model, "-p", broken, "-n", "4", "-t", "1"})["answers"][size_t(0)]["ids"].size(), 4u);
}

// ---- plan, bench, info

TEST_F(Cli, PlanAddsUp) {
  for (const Words& shape : {Words{"-d", "31"}, Words{"-p", "64"}, Words{"-p", "7", "-b", "3", "-d", "9"}}) {
    Words words = {"plan", tiny(), "-t", "2"};
    words.insert(words.end(), shape.begin(), shape.end());
    const Json p = json_of(words);
    EXPECT_THAT(keys_of(p), ElementsAreArray({"model", "machine", "measured", "tokens", "depth", "bound_s", "predicted_s",
                                              "weight_bytes_read", "peak_bytes", "weight_bytes", "kv_bytes", "activation_bytes",
                                              "batch_bytes", "ops"}));
    const Json& ops = p["ops"];
    ASSERT_GT(ops.size(), 4u);
    for (const Json& op : ops.items()) {
      EXPECT_THAT(keys_of(op), ElementsAreArray({"op", "shape", "row", "count", "flops", "bytes_read", "bytes_written", "bound_s",
                                                 "predicted_s", "bound_by", "refused"}));
      for (const Json& r : op["refused"].items()) EXPECT_THAT(keys_of(r), ElementsAreArray({"row", "reason"}));
    }
    EXPECT_NEAR(sum_of(ops, "bound_s"), p.get_number("bound_s", 0), 1e-9 * p.get_number("bound_s", 0));
    EXPECT_NEAR(sum_of(ops, "predicted_s"), p.get_number("predicted_s", 0), 1e-9 * p.get_number("predicted_s", 0));
    EXPECT_EQ(p.get_int("peak_bytes", -1), p.get_int("weight_bytes", 0) + p.get_int("kv_bytes", 0) +
                                               p.get_int("activation_bytes", 0) + p.get_int("batch_bytes", 0));
    EXPECT_LE(p.get_int("weight_bytes_read", 0), p.get_int("weight_bytes", 0));
    EXPECT_GT(p.get_int("weight_bytes_read", 0), 0);
  }
}

TEST_F(Cli, PlanOfAConfigAloneEqualsThatOfItsModel) {
  const std::string folder = hf();
  Json shape = json_of({"plan", folder + "/config.json", "--type", "f32", "-t", "1"}),
       model = json_of({"plan", folder, "-t", "1"});
  EXPECT_EQ(shape["ops"], model["ops"]);
  EXPECT_EQ(shape["peak_bytes"], model["peak_bytes"]);
  const Json h200 = json_of({"plan", folder, "--machine", std::string(RIDGE_SOURCE_DIR) + "/machines/h200.json"});
  EXPECT_EQ(h200.get_string("machine"), "H200");
}

// What --activations says is what plan shows: rows of 8 bits only where they are allowed, no woven weights on the f32 path or on a GPU.
TEST_F(Cli, PlanFollowsActivationsAndMachine) {
  Json config = *read_json(hf() + "/config.json");
  config.set("hidden_size", 64), config.set("intermediate_size", 128), config.set("num_attention_heads", 4);
  config.set("num_key_value_heads", 2), config.set("head_dim", 16);
  const std::string path = at("wide.json");
  std::ofstream(path) << to_text(config);
  const auto rows = [&](Words more) {
    Words words = {"plan", path, "--type", "Q4_0"};
    words.insert(words.end(), more.begin(), more.end());
    std::set<std::string> names;
    const Json plan = json_of(words);
    for (const Json& op : plan["ops"].items())
      if (op.get_string("op") == "gemm") names.insert(op.get_string("row"));
    return names;
  };
  if (detect_isa() >= Isa::vnni) {
    EXPECT_THAT(rows({}), AllOf(Contains("woven_vnni"), Not(Contains("woven_vnni_fast"))));
    EXPECT_THAT(rows({"--activations", "fast"}), AllOf(Contains("woven_vnni_fast"), Not(Contains("woven_vnni"))));
  }
  for (const std::string& row : rows({"--activations", "f32"})) EXPECT_THAT(row, Not(HasSubstr("woven")));
  const std::string h200 = std::string(RIDGE_SOURCE_DIR) + "/machines/h200.json";
  const Json on_gpu = json_of({"plan", path, "--type", "Q4_0", "--machine", h200});
  for (const Json& op : on_gpu["ops"].items()) EXPECT_THAT(op.get_string("shape"), Not(HasSubstr("Q4_0x16")));
}

// The f32 path beside itself differs in nothing; other rows differ a little, and the perplexities are what each alone has.
TEST_F(Cli, ScoreBesideTheF32Path) {
  const std::string model = tiny();
  const auto beside = [&](Words more) {
    Words words = {"score", model, "-p", kText, "--reference", "-t", "1"};
    words.insert(words.end(), more.begin(), more.end());
    return json_of(words);
  };
  const Json same = beside({"--activations", "f32", "--kv-type", "f32"}), other = beside({"--kv-type", "bf16"});
  EXPECT_THAT(keys_of(same["reference"]), ElementsAreArray({"perplexity", "mean_kl", "max_kl", "top1_equal"}));
  EXPECT_NEAR(same["reference"].get_number("mean_kl", 1), 0, 1e-12);
  EXPECT_EQ(same["reference"].get_number("top1_equal", 0), 1);
  EXPECT_NEAR(same["reference"].get_number("perplexity", 0) / same.get_number("perplexity", 1), 1, 1e-12);
  EXPECT_GT(other["reference"].get_number("mean_kl", 0), 1e-9);
  EXPECT_GE(other["reference"].get_number("max_kl", 0), other["reference"].get_number("mean_kl", 1));
  EXPECT_NEAR(other["reference"].get_number("perplexity", 0) / same.get_number("perplexity", 1), 1, 1e-12);
}

TEST_F(Cli, BenchNamesItsRowsAsTheFieldDoes) {
  const Json b = json_of({"bench", tiny(), "-p", "16", "-n", "8", "-d", "0,32", "-r", "3", "-t", "2"});
  EXPECT_THAT(keys_of(b), ElementsAreArray({"machine", "rows"}));
  Words tests;
  for (const Json& row : b["rows"].items()) {
    EXPECT_THAT(keys_of(row), ElementsAreArray({"model", "test", "threads", "tok_s", "bound_tok_s", "predicted_tok_s", "fraction",
                                                "peak_rss_bytes", "rivals"}));
    EXPECT_THAT(keys_of(row["tok_s"]), ElementsAreArray({"median", "min", "max"}));
    const double median = row["tok_s"].get_number("median", 0);
    EXPECT_LE(row["tok_s"].get_number("min", 1e9), median);
    EXPECT_GE(row["tok_s"].get_number("max", 0), median);
    EXPECT_NEAR(row.get_number("fraction", 0), median / row.get_number("bound_tok_s", 1), 1e-9);
    EXPECT_EQ(row.get_int("threads", 0), 2);
    tests.push_back(row.get_string("test"));
  }
  EXPECT_THAT(tests, ElementsAreArray({"pp16", "tg8", "pp16@d32", "tg8@d32"}));
}

TEST_F(Cli, BenchTakesListsAndLeavesOutWhatIsZero) {
  const auto tests = [&](Words words) {
    words.insert(words.begin(), {"bench", tiny(), "-t", "1", "-r", "1"});
    Words names;
    const Json b = json_of(words);
    for (const Json& row : b["rows"].items()) {
      names.push_back(row.get_string("test"));
      EXPECT_EQ(row["tok_s"]["min"], row["tok_s"]["max"]) << "one repeat";
    }
    return names;
  };
  EXPECT_EQ(tests({"-p", "16,8", "-n", "4,2", "-d", "0,32"}),
            (Words{"pp16", "pp8", "tg4", "tg2", "pp16@d32", "pp8@d32", "tg4@d32", "tg2@d32"}));
  EXPECT_EQ(tests({"-p", "0", "-n", "3"}), Words{"tg3"});
  EXPECT_EQ(tests({"-p", "8,0,4", "-n", "0"}), (Words{"pp8", "pp4"}));
  EXPECT_EQ(tests({"-p", "8", "-p", "4", "-n", "0"}), (Words{"pp8", "pp4"}));
  EXPECT_EQ(tests({"-n", "2", "-p", "0", "-d", "200"}), Words{"tg2@d200"});
}

TEST_F(Cli, BenchTablesHaveAsManyColumnsInEveryLine) {
  for (const auto& [format, separator, rows] : {std::tuple("md", '|', 4), std::tuple("csv", ',', 3)}) {
    const Outcome r = ridgeline({"bench", tiny(), "-p", "16", "-n", "8", "-r", "1", "-t", "1", "-o", format});
    EXPECT_EQ(r.code, 0) << r.err;
    std::istringstream lines(r.out);
    std::vector<int64_t> columns;
    for (std::string line; std::getline(lines, line);)
      if (const int64_t n = std::count(line.begin(), line.end(), separator); n > 1 || columns.size()) columns.push_back(n);
    ASSERT_EQ(int(columns.size()), rows) << r.out;
    for (int64_t n : columns) EXPECT_EQ(n, columns[0]) << r.out;
  }
}

TEST_F(Cli, BenchKeepsItsRowsInALedger) {
  const std::string file = at("ledger.jsonl");
  for (int i = 0; i < 2; ++i) {  // the newest replaces the older
    const Outcome r = ridgeline({"bench", tiny(), "-p", "16", "-n", "8", "-r", "1", "-t", "1", "--ledger", file});
    EXPECT_EQ(r.code, 0) << r.err;
  }
  const auto rows = read_ledger(file);
  ASSERT_TRUE(rows.ok()) << rows.status().sentence();
  ASSERT_EQ(rows->size(), 2u);
  EXPECT_EQ((*rows)[0].test, "pp16");
  EXPECT_EQ((*rows)[1].test, "tg8");
  EXPECT_EQ((*rows)[0].dtype, "f32");
  EXPECT_NEAR((*rows)[0].fraction, (*rows)[0].bound_s / (*rows)[0].time_s, 1e-9);
  // What makes it faster or slower has a row of its own.
  EXPECT_EQ(ridgeline({"bench", tiny(), "-p", "16", "-n", "0", "-r", "1", "-t", "1", "--kv-type", "bf16", "--ledger", file}).code,
            0);
  EXPECT_EQ(
      ridgeline({"bench", tiny(), "-p", "16", "-n", "0", "-r", "1", "-t", "1", "--activations", "fast", "--ledger", file}).code,
      0);
  const auto more = read_ledger(file);
  ASSERT_TRUE(more.ok()) << more.status().sentence();
  EXPECT_EQ(more->size(), 4u);
}

TEST_F(Cli, InfoSaysWhatTheFileHolds) {
  const std::string model = tiny();
  const Json i = json_of({"info", model});
  EXPECT_THAT(keys_of(i), ElementsAreArray({"path", "family", "label", "parameters", "weight_bytes", "vocab", "context",
                                            "kv_bytes_per_token", "chat_template", "config"}));
  EXPECT_EQ(i.get_int("vocab", 0), 266);
  EXPECT_EQ(i.get_int("context", 0), 256);
  EXPECT_EQ(i.get_int("weight_bytes", 0), 4 * i.get_int("parameters", 0));
  EXPECT_EQ(i.get_int("kv_bytes_per_token", 0), 2 * 2 * 16 * 2);
  EXPECT_TRUE(i.get_bool("chat_template", false));
  const Json t = json_of({"info", model, "--tensors"});
  double bytes = 0;
  for (const Json& tensor : t["tensors"].items()) {
    EXPECT_THAT(keys_of(tensor), ElementsAreArray({"name", "type", "dims", "bytes"}));
    bytes += tensor.get_number("bytes", 0);
  }
  EXPECT_EQ(bytes, i.get_number("weight_bytes", 0));
  const Outcome plain = ridgeline({"info", model, "--tensors"});
  EXPECT_THAT(plain.out, HasSubstr("blk.1.ffn_down.weight"));
}

// ---- doctor, version, help

TEST_F(Cli, DoctorWithoutMeasuringReadsWhatIsKept) {
  const Json d = json_of({"doctor", "--no-measure", "-t", "2"});
  EXPECT_THAT(keys_of(d), ElementsAreArray({"machine", "kept", "checks"}));
  EXPECT_TRUE(d["machine"].get_bool("measured", false));
  for (const Json& c : d["checks"].items()) EXPECT_THAT(keys_of(c), ElementsAreArray({"what", "value", "advice"}));
  EXPECT_GT(d["checks"].size(), 3u);
}

TEST_F(Cli, VersionNamesTheInstructionSetThatIsUsed) {
  const Json v = json_of({"version"});
  EXPECT_THAT(keys_of(v), ElementsAreArray({"version", "commit", "compiler", "isa", "cpu", "ops", "models"}));
  EXPECT_EQ(v.get_string("isa"), isa_name(active_isa()));
  EXPECT_EQ(ridgeline({"--version"}).out, ridgeline({"version"}).out);
  const Outcome forced = ridgeline({"version"}, {.environment = {{"RIDGE_ISA", "portable"}}});
  EXPECT_EQ(forced.code, 0);
  EXPECT_THAT(forced.out, HasSubstr("portable"));
}

TEST_F(Cli, EveryVerbHasHelp) {
  const Outcome all = ridgeline({"--help"});
  EXPECT_EQ(all.code, 0);
  EXPECT_THAT(all.out, HasSubstr("130 interrupted"));
  for (const char* verb : {"run", "chat", "plan", "bench", "score", "tokenize", "info", "op", "doctor", "version"}) {
    EXPECT_THAT(all.out, HasSubstr(verb));
    const Outcome one = ridgeline({verb, "--help"});
    EXPECT_EQ(one.code, 0);
    EXPECT_EQ(one.err, "");
    EXPECT_THAT(one.out, HasSubstr("Usage: ridgeline " + std::string(verb)));
  }
}

// Shapes that fast rows refuse run all the same, on whatever row takes them, and say so.
TEST_F(Cli, ShapesThatNoFastRowTakesPlanAndRun) {
  const TinyOptions shapes[] = {{.heads = 3, .kv_heads = 3, .head_dim = 2},    // the smallest head
                                {.heads = 2, .kv_heads = 1, .head_dim = 20},   // no multiple of 8
                                {.heads = 1, .kv_heads = 1, .head_dim = 320},  // more than the fast rows hold
                                {.vocab = 267, .dim = 30, .heads = 5, .kv_heads = 5, .head_dim = 6, .ffn = 50},  // nothing even
                                {.vocab = 271, .dim = 1, .layers = 1, .heads = 1, .kv_heads = 1, .head_dim = 8, .ffn = 1}};
  for (const TinyOptions& shape : shapes)
    for (const std::string& model : {tiny(shape), hf(shape)}) {
      SCOPED_TRACE(fmt::format("dim {} head_dim {} {}", shape.dim, shape.head_dim, model));
      const Json plan = json_of({"plan", model, "-p", "7", "-t", "2"});
      bool falls_back = false;
      for (const Json& op : plan["ops"].items()) {
        EXPECT_NE(op.get_string("row"), "none");
        falls_back = falls_back || (op.get_string("op") == "attention" && op.get_string("row") == "reference");
      }
      EXPECT_EQ(falls_back, shape.head_dim % 8 != 0 || shape.head_dim > 256);
      const std::vector<double> fast = numbers(json_of({"score", model, "-p", kText, "-t", "2"})["logprobs"]);
      const std::vector<double> portable =
          numbers(json_of({"score", model, "-p", kText, "-t", "1"}, {.environment = {{"RIDGE_ISA", "portable"}}})["logprobs"]);
      ASSERT_EQ(fast.size(), portable.size());
      ASSERT_GT(fast.size(), 30u);
      for (size_t i = 0; i < fast.size(); ++i) EXPECT_NEAR(fast[i], portable[i], 1e-2) << i;
      const Outcome run = ridgeline({"run", model, "-p", "the hen", "-n", "4", "-s", "1", "-t", "2"});
      EXPECT_EQ(run.code, 0) << run.err;
      EXPECT_EQ(run.err.find("fallback: attention ran reference") != std::string::npos, falls_back) << run.err;
      const Outcome strict = ridgeline({"run", model, "-p", "the hen", "-n", "4", "-s", "1", "-t", "2", "--strict"});
      EXPECT_EQ(strict.code, falls_back ? 1 : 0) << strict.err;
      EXPECT_EQ(strict.err.find("--strict: attention would run reference") != std::string::npos, falls_back) << strict.err;
    }
}

TEST_F(Cli, EveryInstructionSetOfThisCpuGivesTheSameScore) {
  const std::string model = tiny();
  const std::vector<double> expected =
      numbers(json_of({"score", model, "-p", kText, "-t", "1"}, {.environment = {{"RIDGE_ISA", "portable"}}})["logprobs"]);
  for (int isa = 1; isa <= int(detect_isa()); ++isa) {
    const char* name = isa_name(Isa(isa));
    const std::vector<double> l =
        numbers(json_of({"score", model, "-p", kText, "-t", "1"}, {.environment = {{"RIDGE_ISA", name}}})["logprobs"]);
    ASSERT_EQ(l.size(), expected.size());
    const double most = Isa(isa) == Isa::amx ? 0x1p-6 : 2e-3;  // attention's weights are rounded to bf16 there
    for (size_t i = 0; i < l.size(); ++i) EXPECT_NEAR(l[i], expected[i], most) << name << " " << i;
  }
}

}  // namespace
}  // namespace ridge
