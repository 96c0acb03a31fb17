// Bad input as its users meet it: the exit code, one sentence on stderr that names the thing and the fix, and nothing on stdout.
#include "app/cli_testing.h"
#include "meter/ledger_file.h"

namespace ridge {
namespace {

using testing::HasSubstr;

// Where a tensor is described in a GGUF's bytes: behind its name come rank (u32), dims (u64 each), type (u32), offset (u64).
template <class T>
void patch(std::string& bytes, const std::string& tensor, int64_t field, T value) {
  std::string name;
  append(name, uint64_t(tensor.size()));
  const size_t at = bytes.find(name + tensor);
  ASSERT_NE(at, std::string::npos);
  bytes.replace(at + name.size() + tensor.size() + size_t(field), sizeof value,
                std::string(reinterpret_cast<const char*>(&value), sizeof value));
}
constexpr int64_t kRank = 0, kFastDim = 4, kSlowDim = 12, kType = 20, kOffset = 24;  // of a matrix

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

class BadInput : public Cli {
 protected:
  static Outcome run(const std::string& model, const Words& more = {"-p", "the", "-n", "2"}) {
    Words words = {"run", model, "-t", "1"};
    words.insert(words.end(), more.begin(), more.end());
    return ridgeline(words);
  }
  void gguf_refused(const std::string& bytes, const Words& says) const {
    const std::string path = put("bad.gguf", bytes);
    Words all = says;
    all.push_back(path);
    refused(run(path), 3, all);
  }
  void damaged(const std::string& tensor, int64_t field, auto value, const Words& says) const {
    std::string bytes = TinyModel().gguf();
    patch(bytes, tensor, field, value);
    gguf_refused(bytes, says);
  }
  // An HF folder with one file replaced; an empty text removes it.
  std::string folder_with(const std::string& name, const std::string& text) const {
    const std::string folder = hf();
    if (text.empty())
      unlink((folder + "/" + name).c_str());
    else
      put("hf/" + name, text);
    return folder;
  }
  void config_refused(const char* key, Json value, const Words& says) const {
    Json config = TinyModel().config();
    config.set(key, std::move(value));
    const std::string folder = folder_with("config.json", to_text(config));
    for (const Outcome& r : {run(folder), ridgeline({"plan", folder + "/config.json"})}) {
      refused(r, 3, {"config.json"});
      for (const std::string& words : says) EXPECT_THAT(r.err, HasSubstr(words)) << key;
    }
  }
};

// ---- a path that is no model

TEST_F(BadInput, EveryVerbSaysThatThereIsNoModel) {
  const std::string path = at("none.gguf");
  for (const char* verb : {"run", "score", "tokenize", "bench", "info", "plan", "chat"}) {
    Words words = {verb, path};
    if (std::string(verb) == "run" || std::string(verb) == "score" || std::string(verb) == "tokenize")
      words.insert(words.end(), {"-p", "x"});
    refused(ridgeline(words), 3, {path, "there is no such file"});
    words.push_back("--json");
    refused(ridgeline(words), 3, {path, "there is no such file"});
  }
}

TEST_F(BadInput, WhatPeopleHandOverInsteadOfAModel) {
  refused(run(put("empty.gguf", "")), 3, {"empty.gguf", "the file is empty"});
  refused(run(put("notes.txt", "Dear diary, ...\n")), 3, {"notes.txt", "not a GGUF file"});
  refused(run(put("page.gguf", "<!DOCTYPE html>\n<html><body>404 Not Found</body></html>")), 3, {"page.gguf", "web page"});
  refused(run(put("lfs.gguf", "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n")), 3, {"lfs.gguf", "LFS"});
  refused(run("/dev/null"), 3, {"/dev/null", "not a regular file"});
  refused(run(folder_), 3, {folder_, "config.json"});
  refused(run(put("a.gguf", "x") + "/b"), 3, {"there is no such file"});
}

// ---- GGUF

TEST_F(BadInput, TruncatedAnywhere) {
  const std::string whole = TinyModel().gguf();
  for (size_t n : {size_t(5), size_t(10), size_t(30), size_t(200), whole.size() / 4, whole.size() / 2, whole.size() - 1})
    gguf_refused(whole.substr(0, n), {"incomplete, fetch it again"});
}

TEST_F(BadInput, WrongMagicAndVersion) {
  std::string bytes = TinyModel().gguf();
  gguf_refused("GGML" + bytes.substr(4), {"not a GGUF file"});
  bytes[4] = 9;
  gguf_refused(bytes, {"GGUF version 9 is not read"});
  bytes[4] = 0, bytes[7] = 3;
  gguf_refused(bytes, {"big-endian"});
}

TEST_F(BadInput, TensorsThatLie) {
  damaged("blk.0.ffn_up.weight", kOffset, uint64_t(1) << 40, {"blk.0.ffn_up.weight", "past the end"});
  damaged("blk.0.ffn_up.weight", kOffset, uint64_t(0), {"blk.0.ffn_up.weight", "share"});
  damaged("blk.0.ffn_up.weight", kOffset, uint64_t(4), {"blk.0.ffn_up.weight", "alignment"});
  damaged("blk.0.ffn_up.weight", kFastDim, UINT64_MAX, {"blk.0.ffn_up.weight", "absurd dimension"});
  damaged("blk.0.ffn_up.weight", kSlowDim, uint64_t(1) << 61, {"blk.0.ffn_up.weight", "larger than any memory"});
  damaged("blk.0.ffn_up.weight", kFastDim, uint64_t(0), {"blk.0.ffn_up.weight", "dimension of 0"});
  damaged("blk.0.ffn_up.weight", kSlowDim, uint64_t(63), {"blk.0.ffn_up.weight", "the config asks for [64, 32]"});
  damaged("blk.0.ffn_up.weight", kRank, uint32_t(77), {"blk.0.ffn_up.weight", "77 dimensions"});
}

TEST_F(BadInput, UnknownQuantisation) {
  damaged("blk.0.ffn_up.weight", kType, uint32_t(23), {"blk.0.ffn_up.weight", "IQ4_XS", "not supported", "Q4_K"});
  damaged("blk.0.ffn_up.weight", kType, uint32_t(999), {"blk.0.ffn_up.weight", "type 999"});
  damaged("blk.0.attn_norm.weight", kType - 8, uint32_t(26), {"blk.0.attn_norm.weight", "i32", "no type for it"});
}

TEST_F(BadInput, UnknownArchitecture) {
  const std::string path = tiny({.architecture = "mammoth"});
  for (const Outcome& r : {run(path), ridgeline({"info", path}), ridgeline({"plan", path})})
    refused(r, 3, {path, "\"mammoth\"", "llama"});
}

TEST_F(BadInput, MissingTokenizer) {
  const std::string path = tiny({.tokenizer = false});
  refused(run(path), 3, {path, "tokenizer"});
  refused(ridgeline({"tokenize", path, "-p", "x"}), 3, {path, "tokenizer"});
  EXPECT_EQ(ridgeline({"plan", path}).code, 0) << "a plan needs none";
  refused(run(folder_with("tokenizer.json", "")), 3, {at("hf"), "tokenizer.json"});
}

TEST_F(BadInput, ATokenizerOfAnotherModel) {
  const std::string path = tiny({.vocab = 200});
  refused(run(path), 3, {path, "266 tokens", "200"});
}

TEST_F(BadInput, MissingTensorsAndFields) {
  std::string bytes = TinyModel().gguf();
  gguf_refused(replaced(bytes, "blk.1.ffn_up.weight", "blk.1.ffn_xx.weight"), {"blk.1.ffn_up.weight is missing"});
  gguf_refused(replaced(bytes, "llama.block_count", "llama.block_xxxxx"), {"llama.block_count"});
  gguf_refused(replaced(bytes, "token_embd.weight", "token_xxxx.weight"), {"token_embd.weight"});
}

TEST_F(BadInput, ABrokenChatTemplateIsNamed) {
  const Outcome r = run(tiny({.chat_template = "{% for m in messages %}{{ m.content }"}));
  EXPECT_NE(r.code, 0);
  EXPECT_EQ(r.out, "");
  EXPECT_THAT(r.err, HasSubstr("template"));
  EXPECT_EQ(run(tiny({.chat_template = "{% bad"}), {"--raw", "-p", "the", "-n", "2"}).code, 0) << "--raw needs none";
}

// ---- HF folders

TEST_F(BadInput, ConfigsThatAreNone) {
  refused(run(folder_with("config.json", "")), 3, {"config.json", "no such file"});
  refused(run(folder_with("config.json", "{\"architectures\": [")), 3, {"config.json: line 1"});
  refused(run(folder_with("config.json", "[]")), 3, {"config.json"});
  refused(run(folder_with("config.json", "{}")), 3, {"config.json", "architecture"});
  refused(run(folder_with("config.json", "{\"architectures\": [\"LlamaForCausalLM\"]}")), 3, {"config.json", "vocab_size"});
}

TEST_F(BadInput, ConfigFieldsOfTheWrongKindOrSize) {
  config_refused("architectures", Json(Json::Array{"MammothForCausalLM"}), {"\"MammothForCausalLM\""});
  config_refused("hidden_size", "32", {"hidden_size"});
  config_refused("num_hidden_layers", -1, {"num_hidden_layers"});
  config_refused("num_hidden_layers", 1e30, {"num_hidden_layers"});
  config_refused("num_attention_heads", 0, {"num_attention_heads"});
  config_refused("num_attention_heads", 3, {"num_attention_heads"});
  config_refused("num_attention_heads", 64, {"num_attention_heads"});
  config_refused("num_key_value_heads", 3, {"num_attention_heads"});
  config_refused("head_dim", 15, {"head"});
  config_refused("head_dim", 4096, {"head_dim"});
  config_refused("vocab_size", 0, {"vocab_size"});
  config_refused("rms_norm_eps", Json::array(), {"rms_norm_eps"});
  config_refused("rms_norm_eps", -1, {"epsilon"});
  config_refused("rope_theta", 0, {"rope"});
  config_refused("rope_theta", "big", {"rope_theta"});
  config_refused("partial_rotary_factor", 2, {"partial_rotary_factor"});
  config_refused("partial_rotary_factor", -0.5, {"partial_rotary_factor"});
  config_refused("rope_parameters", Json::object({{"rope_theta", "big"}}), {"rope_parameters", "rope_theta"});
  config_refused("rope_scaling", Json::object({{"type", "cubic"}}), {"rope_scaling", "\"cubic\""});
  config_refused("rope_scaling", "linear", {"rope_scaling"});
  config_refused("rope_scaling", Json::object({{"type", "linear"}, {"factor", 0}}), {"rope"});
  config_refused("hidden_act", "gelu", {"hidden_act"});
  config_refused("quantization_config", Json::object({{"quant_method", "gptq"}}), {"gptq"});
}

TEST_F(BadInput, WeightsOfAFolder) {
  refused(run(folder_with("model.safetensors", "")), 3, {at("hf"), "model.safetensors"});
  const std::string whole = TinyModel().safetensors();
  refused(run(folder_with("model.safetensors", whole.substr(0, whole.size() / 2))), 3, {"model.safetensors", "incomplete"});
  std::string longer;
  append(longer, uint64_t(1) << 62);
  refused(run(folder_with("model.safetensors", longer + whole.substr(8))), 3, {"model.safetensors", "header"});
  refused(run(folder_with("model.safetensors", replaced(whole, "\"data_offsets\":[0,", "\"data_offsets\":[8,"))), 3,
          {"model.safetensors"});
  refused(run(folder_with("model.safetensors", replaced(whole, "\"F32\"", "\"F99\""))), 3, {"model.safetensors", "F99"});
  refused(run(folder_with("model.safetensors", "<html>404</html>")), 3, {"model.safetensors"});
  refused(run(folder_with("tokenizer.json", "{\"model\": {\"type\": \"WordPiece\"}}")), 3, {"tokenizer.json", "WordPiece"});
}

TEST_F(BadInput, AShardThatIsNotThere) {
  const std::string folder = folder_with("model.safetensors", "");
  put("hf/model.safetensors.index.json", "{\"weight_map\": {\"model.norm.weight\": \"model-00001-of-00002.safetensors\"}}");
  refused(run(folder), 3, {"model-00001-of-00002.safetensors", "no such file"});
}

// ---- texts

TEST_F(BadInput, LongerThanTheContext) {
  const std::string path = tiny(), text(300, 'x'), file = put("long.txt", text);
  refused(run(path, {"-p", text, "-n", "2"}), 1, {"300 tokens", "256", "shorter"});
  refused(run(path, {"-p", "the hen in the barn", "-c", "8"}), 1, {"--context"});
  refused(run(path, {"-p", "fine", "-p", text, "-n", "2"}), 1, {"300 tokens"});
  refused(ridgeline({"score", path, file, "-t", "1"}), 1, {"300 tokens", "256"});
  refused(run(path, {"-p", "the", "-c", "512"}), 2, {"512", "256", "ask for less"});
  refused(ridgeline({"plan", path, "-d", "1000"}), 2, {"1000", "256"});
  const Outcome bench = ridgeline({"bench", path, "-p", "512", "-n", "0", "-r", "1", "-t", "1"});
  refused(bench, 2, {"512", "256"});
}

TEST_F(BadInput, NoText) {
  const std::string path = tiny(), empty = put("empty.txt", "");
  refused(run(path, {"-p", ""}), 2, {"prompt is empty"});
  refused(run(path, {"-p", "the", "-p", ""}), 2, {"prompt is empty"});
  refused(run(path, {"-p", "", "--raw"}), 1, {"prompt is empty"});
  refused(run(path, {"-f", empty}), 2, {"prompt is empty"});
  refused(ridgeline({"run", path}), 2, {"prompt is empty"});
  refused(ridgeline({"score", path, "", "-t", "1"}), 1, {"empty"});
  refused(ridgeline({"score", path, empty, "-t", "1"}), 1, {"empty"});
  EXPECT_EQ(json_of({"tokenize", path, "-p", ""})["ids"].size(), 0u);
  refused(run(path, {"-f", at("none.txt")}), 1, {"none.txt", "cannot be opened"});
  refused(run(path, {"-f", folder_}), 1, {folder_, "could not be read"});
}

TEST_F(BadInput, OneTokenHasNoPerplexity) {
  const Json s = json_of({"score", tiny(), "-p", "x", "-t", "1"});
  EXPECT_EQ(s["logprobs"].size(), 0u);
  EXPECT_EQ(s["top1"].size(), 1u);
  EXPECT_TRUE(s["perplexity"].is_null());
}

// ---- the command line

TEST_F(BadInput, UsageIsCodeTwoAndSaysWhereHelpIs) {
  const std::string path = tiny();
  const std::pair<Words, const char*> wrong[] = {
      {{}, "name a verb"},
      {{"--loud"}, "no option --loud"},
      {{"sing"}, "no verb \"sing\""},
      {{"run"}, "model is required"},
      {{"run", "--loud"}, "no option --loud"},
      {{"run", path, "--loud"}, "no option --loud"},
      {{"run", path, "-p", "x", "extra"}, "no use for extra"},
      {{"run", path, "-p"}, "--prompt takes a value"},
      {{"run", path, "-p", "x", "-n"}, "--tokens takes a value"},
      {{"run", path, "-p", "x", "-n", "many"}, "many"},
      {{"run", path, "-p", "x", "-n", "-5"}, "-5"},
      {{"run", path, "-p", "x", "-n", "1.5"}, "1.5"},
      {{"run", path, "-p", "x", "-t", "0"}, "0"},
      {{"run", path, "-p", "x", "-t", "1", "-t", "2"}, "--threads takes one value"},
      {{"run", path, "-p", "x", "--temp", "hot"}, "hot"},
      {{"run", path, "-p", "x", "--temp", "nan"}, "nan"},
      {{"run", path, "-p", "x", "--temp", "inf"}, "inf"},
      {{"run", path, "-p", "x", "--top-p", "1.5"}, "1.5"},
      {{"run", path, "-p", "x", "-f", "y"}, "excludes"},
      {{"run", path, "-p", "x", "--raw", "--system", "y"}, "--system excludes --raw"},
      {{"run", path, "-p", "x", "--kv-type", "q4"}, "q4"},
      {{"score", path, "x", "-p", "y"}, "input excludes --prompt"},
      {{"tokenize", path, "x", "-f", "y"}, "input excludes --file"},
      {{"bench", path, "-p", "16,x"}, "x"},
      {{"bench", path, "-p", ","}, "-p takes a value"},
      {{"bench", path, "-p", "-1"}, "-1"},
      {{"bench", path, "-r", "0"}, "-r"},
      {{"bench", path, "-o", "xml"}, "xml"},
      {{"bench", path, "-o", "csv", "--json"}, "excludes"},
      {{"plan", path, "-c", "100"}, "no option -c"},
      {{"plan", path, "-b", "0"}, "--batch"},
      {{"plan", path, "-d", "99999999999999999999"}, "99999999999999999999"},
      {{"op"}, "action is required"},
      {{"op", "sing"}, "sing"},
      {{"doctor", "-t", "-1"}, "-1"},
      {{"version", "extra"}, "no use for extra"},
  };
  for (const auto& [words, says] : wrong) refused(ridgeline(words), 2, {says, "--help"});
  refused(ridgeline({"bench", path, "-p", "0", "-n", "0"}), 2, {"-p 0 and -n 0 leave nothing to measure"});
}

TEST_F(BadInput, ASystemMessageWithoutATemplateIsNotDropped) {
  for (const char* verb : {"run", "chat"})
    refused(ridgeline({verb, tiny({.chat_template = ""}), "--system", "be kind", "-t", "1"}, {}), 2,
            {verb == std::string("run") ? "prompt is empty" : "no chat template"});
  refused(run(tiny({.chat_template = ""}), {"-p", "x", "--system", "be kind"}), 2, {"no chat template", "--system"});
}

TEST_F(BadInput, InstructionSetsThatAreNone) {
  for (const Words& words : {Words{"version"}, Words{"run", "x", "-p", "y"}}) {
    const Outcome r = ridgeline(words, {.environment = {{"RIDGE_ISA", "nonsense"}}});
    refused(r, 2, {"RIDGE_ISA=nonsense", "choose one of", "portable"});
  }
  if (detect_isa() == Isa::amx) return;  // this CPU lacks none
  const char* more = isa_name(Isa(int(detect_isa()) + 1));
  refused(ridgeline({"version"}, {.environment = {{"RIDGE_ISA", more}}}), 2, {more, "more than this CPU can do"});
}

TEST_F(BadInput, MachineFiles) {
  const std::string path = tiny();
  auto plan = [&](const std::string& machine) { return ridgeline({"plan", path, "--machine", machine}); };
  refused(plan(at("none.json")), 3, {"none.json", "no such file"});
  refused(plan(put("m.json", "{\"name\": \"x\", ")), 3, {"m.json: line 1"});
  refused(plan(put("m.json", "{\"name\": \"x\", \"dram_read\": -1, \"launch_s\": 0}")), 3, {"m.json", "dram_read"});
  refused(plan(put("m.json", "{\"name\": \"x\", \"dram_reed\": 1}")), 3, {"m.json", "dram_reed"});
  refused(ridgeline({"plan", path, "--type", "q4_0"}), 2, {"--type"});
  refused(ridgeline({"plan", hf() + "/config.json", "--type", "q3_x"}), 2, {"q3_x", "Q4_K"});
}

// A machine file in the cache that is broken costs a warning and the nominal values, never the answer.
TEST_F(BadInput, ABrokenCacheIsOnlyAWarning) {
  mkdir(at("c").c_str(), 0755);
  const std::string file = machine_path(active_isa(), 1), copy = at("c") + file.substr(cache().size());
  ASSERT_EQ(system(("mkdir -p \"$(dirname '" + copy + "')\" && printf '{' > '" + copy + "'").c_str()), 0);
  const Outcome r = ridgeline({"plan", tiny(), "-t", "1"}, {.environment = {{"XDG_CACHE_HOME", at("c")}}});
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_THAT(r.out, HasSubstr("nominal"));
}

// ---- outputs that cannot be written

TEST_F(BadInput, AFullDiskOrAClosedOutputIsNoSuccess) {
  const std::string path = tiny();
  for (const Words& words :
       {Words{"tokenize", path, "-p", "the"}, Words{"score", path, "-p", "the hen", "-t", "1", "--json"}, Words{"plan", path},
        Words{"plan", path, "--json"}, Words{"info", path, "--tensors"}, Words{"run", path, "-p", "the", "-n", "4", "-t", "1"},
        Words{"run", path, "-p", "the", "-p", "a", "-n", "4", "-t", "1"},
        Words{"bench", path, "-p", "8", "-n", "0", "-r", "1", "-t", "1"}, Words{"doctor", "--no-measure"}, Words{"op", "list"},
        Words{"op", "why", "glu", "--case", "smoke_gelu"}, Words{"version"}, Words{"--version"}, Words{"--help"},
        Words{"run", "--help"}}) {
    SCOPED_TRACE(words[0]);
    for (const Outcome& r : {ridgeline(words, {.out_file = "/dev/full"}), ridgeline(words, {.closed = true})}) {
      EXPECT_EQ(r.code, 1) << r.err;
      EXPECT_THAT(r.err, HasSubstr("standard output could not be written"));
    }
  }
}

// The first file that is opened takes the number of a closed standard output: what is printed must not land in it.
TEST_F(BadInput, AClosedOutputDoesNotWriteIntoFiles) {
  const std::string ledger = at("ledger.jsonl");
  const Outcome r =
      ridgeline({"bench", tiny(), "-p", "8", "-n", "0", "-r", "1", "-t", "1", "--ledger", ledger}, {.closed = true});
  EXPECT_EQ(r.code, 1);
  Result<std::vector<LedgerRow>> rows = read_ledger(ledger);
  ASSERT_TRUE(rows.ok()) << rows.status().sentence();
  EXPECT_EQ(rows->size(), 1u);
}

TEST_F(BadInput, AnUnwritableCacheStopsNobody) {
  const std::string no = put("file", "x");  // permissions do not stop root, a file in the way does
  const Program::Options options{.environment = {{"XDG_CACHE_HOME", no}}};
  const Outcome r = ridgeline({"doctor", "-t", "1", "--json"}, options);
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_THAT(r.err, HasSubstr("XDG_CACHE_HOME"));
  Result<Json> d = parse_json(r.out, "stdout", kRequestJson);
  ASSERT_TRUE(d.ok());
  EXPECT_EQ(d->get_string("kept", "?"), "");
  EXPECT_TRUE((*d)["machine"].get_bool("measured", false));
}

}  // namespace
}  // namespace ridge
