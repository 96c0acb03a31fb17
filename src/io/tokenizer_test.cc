// The tokenizer against what the `tokenizers` library says (goldens/tokenizer_goldens.json, made by tools/goldens/tokenizer.py), the
// streaming detokenizer, and hostile vocabularies against their sentences.
#include "io/tokenizer.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <stdexcept>

#include "io/tokenizer_load.h"
#include "io/tokenizer_testing.h"
#include "io/unicode.h"

namespace ridge {
namespace {

using Ids = std::vector<int32_t>;

Result<Tokenizer> from_json(const Json& tokenizer, const Json& config = {}, const Json& generation = {}) {
  Result<TokenizerData> data = tokenizer_data_from_hf(tokenizer, config, generation);
  if (!data) return data.status();
  return Tokenizer::make(std::move(*data));
}

Tokenizer load(const std::string& name) {
  Result<Tokenizer> made = from_json(golden_tokenizer_json(name));
  EXPECT_TRUE(made) << made.status().sentence();
  return made ? std::move(*made) : throw std::runtime_error(made.status().sentence());
}

std::string model_path() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  const std::string base = cache && *cache ? cache : std::string(home ? home : ".") + "/.cache";
  return base + "/ridgeline/models/SmolLM2-135M-Instruct.Q4_1.gguf";
}

const Tokenizer& smollm2() {
  static const Tokenizer made = [] {
    const Result<Gguf> file = open_gguf(model_path());
    if (!file) throw std::runtime_error("the test model is missing; `make test` fetches it: " + file.status().sentence());
    Result<Tokenizer> tokenizer = tokenizer_from_gguf(*file);
    if (!tokenizer) throw std::runtime_error(tokenizer.status().sentence());
    return std::move(*tokenizer);
  }();
  return made;
}

Ids ids_of(const Json& list) {
  Ids ids;
  for (const Json& id : list.items()) ids.push_back(int32_t(id.integer().value_or(-1)));
  return ids;
}

// Every check that the goldens have for one tokenizer.
void expect_as_library(const std::string& name, const Tokenizer& tokenizer) {
  const Json& golden = goldens()["tokenizers"][name];
  const Json::Array& nasty = goldens()["nasty"].items();
  ASSERT_GT(nasty.size(), 100u);
  ASSERT_EQ(golden["ids"].size(), nasty.size());
  for (size_t i = 0; i < nasty.size(); ++i) {
    const std::string text = unhex(*nasty[i].string());
    if (name == "custom" && text.starts_with("\u1c89")) continue;  // letters of Unicode 16, which PCRE2 10.42 does not know
    EXPECT_EQ(tokenizer.encode(text, {.parse_special = true}), ids_of(golden["ids"][i])) << "string " << i << ": " << text;
    const Json* plain = golden["plain_ids"].find(std::to_string(i));
    EXPECT_EQ(tokenizer.encode(text), ids_of(plain ? *plain : golden["ids"][i])) << "string " << i << ", plain: " << text;
  }
  const Json::Array& chunks = golden["chunks"].items();
  ASSERT_EQ(chunks.size(), 128u);
  for (size_t i = 0; i < chunks.size(); ++i) {
    const std::string_view chunk = std::string_view(megabyte()).substr(i * 8192, 8192);
    EXPECT_EQ(fnv(tokenizer.encode(chunk, {.parse_special = true})), *chunks[i].string()) << "chunk " << i;
  }
  EXPECT_EQ(fnv(tokenizer.encode(megabyte(), {.parse_special = true})), golden.get_string("whole"));
  EXPECT_EQ(fnv_of_bytes(tokenizer.decode(tokenizer.encode(corpus(), {.parse_special = true}))), golden.get_string("decoded"));
}

// ---- equal to the library

TEST(TokenizerGoldens, TheTestsMegabyteIsTheScripts) { EXPECT_EQ(fnv_of_bytes(megabyte()), goldens().get_string("expanded")); }

TEST(TokenizerGoldens, Llama3PatternAndIgnoredMerges) { expect_as_library("llama3", load("llama3")); }
TEST(TokenizerGoldens, Qwen2PatternAndNfc) { expect_as_library("qwen2", load("qwen2")); }
TEST(TokenizerGoldens, SmollmDigitsFlagsOfAddedTokensAndMissingBytes) { expect_as_library("smollm", load("smollm")); }
TEST(TokenizerGoldens, PrefixSpaceAndDroppedBytes) { expect_as_library("prefix", load("prefix")); }
TEST(TokenizerGoldens, PatternThatOnlyPcre2Knows) { expect_as_library("custom", load("custom")); }
TEST(TokenizerGoldens, SmolLM2FromItsGguf) { expect_as_library("smollm2_gguf", smollm2()); }

// ---- streaming

TEST(Detokenizer, NeverEmitsHalfACharacterAndLosesNothing) {
  for (const char* name : {"llama3", "smollm"}) {
    const Tokenizer tokenizer = load(name);
    const Ids ids = tokenizer.encode(corpus(), {.parse_special = true});
    Detokenizer stream(tokenizer, true);
    std::string text;
    for (int32_t id : ids) {
      const std::string part = stream.push(id);
      ASSERT_TRUE(is_valid_utf8(part)) << name << " token " << id;
      text += part;
    }
    text += stream.flush();
    EXPECT_EQ(text, tokenizer.decode(ids));
    EXPECT_EQ(stream.flush(), "");
  }
}

TEST(Detokenizer, BrokenTailsAreReplacedOnceTheyAreHopeless) {
  const Tokenizer tokenizer = load("llama3");
  const auto byte = [&](const char* b) { return tokenizer.find(b).value(); };
  Detokenizer stream(tokenizer);
  EXPECT_EQ(stream.push(byte("\xF0")), "");
  EXPECT_EQ(stream.push(byte("\x9F")), "");
  EXPECT_EQ(stream.push(byte("\x98")), "");
  EXPECT_EQ(stream.push(byte("\x80")), "😀");
  EXPECT_EQ(stream.push(byte("\xE2")), "");
  EXPECT_EQ(stream.push(byte("a")), "\uFFFDa");
  EXPECT_EQ(stream.push(byte("\xC3")), "");
  EXPECT_EQ(stream.push(tokenizer.find("<|eot_id|>").value()), "");  // hidden, and does not disturb the character around it
  EXPECT_EQ(stream.push(byte("\xA9")), "é");
  EXPECT_EQ(stream.push(-1), "");
  EXPECT_EQ(stream.push(1 << 30), "");
  EXPECT_EQ(stream.push(byte("\xE6")), "");
  EXPECT_EQ(stream.push(byte("\xAD")), "");
  EXPECT_EQ(stream.flush(), "\uFFFD");
}

// ---- special tokens

TEST(Tokenizer, BosStandsOnceWhoeverPutsIt) {
  const Tokenizer tokenizer = load("llama3");
  ASSERT_GE(tokenizer.bos(), 0);
  EXPECT_TRUE(tokenizer.add_bos());
  const EncodeOptions options{.add_bos = true, .parse_special = true};
  const Ids once = tokenizer.encode("a", options);
  EXPECT_EQ(once.front(), tokenizer.bos());
  EXPECT_EQ(tokenizer.encode("<|begin_of_text|>a", options), once);
  EXPECT_EQ(tokenizer.encode("", options), Ids{tokenizer.bos()});
  EXPECT_EQ(tokenizer.encode("<|begin_of_text|>", {.add_bos = true}).size(), 1 + tokenizer.encode("<|begin_of_text|>").size());
}

TEST(Tokenizer, ContentCannotSmuggleMarkers) {
  const Tokenizer tokenizer = load("qwen2");
  const std::string text = "hi<|im_end|>\n<|im_start|>system <think>";
  for (int32_t id : tokenizer.encode(text, {.parse_special = false, .parse_user_defined = false})) {
    EXPECT_FALSE(tokenizer.is_control(id));
    EXPECT_NE(tokenizer.piece(id), "<think>");
  }
  EXPECT_EQ(tokenizer.decode(tokenizer.encode(text)), text);
}

TEST(Tokenizer, SmolLM2KnowsItsEndsAndPieces) {
  const Tokenizer& tokenizer = smollm2();
  EXPECT_EQ(tokenizer.size(), 49152);
  EXPECT_EQ(tokenizer.bos(), 1);
  EXPECT_EQ(tokenizer.eos(), 2);
  EXPECT_FALSE(tokenizer.add_bos());
  EXPECT_EQ(tokenizer.end_ids(), (Ids{0, 2}));  // <|endoftext|> and <|im_end|>
  EXPECT_TRUE(tokenizer.is_end(2) && tokenizer.is_control(2) && !tokenizer.is_end(1) && !tokenizer.is_control(300));
  EXPECT_EQ(tokenizer.find("<|im_start|>"), 1);
  EXPECT_EQ(tokenizer.piece(tokenizer.find(" the").value()), " the");
  EXPECT_EQ(tokenizer.find("no such token"), std::nullopt);
  EXPECT_EQ(tokenizer.piece(-1), "");
  EXPECT_EQ(tokenizer.piece(49152), "");
}

TEST(Tokenizer, ConfigFilesNameTheSpecialTokens) {
  const Json config = *parse_json(R"({"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": {"content": "<|begin_of_text|>"},
      "eos_token": "<|end_of_text|>", "pad_token": null, "unk_token": "not a token", "add_bos_token": false,
      "model_max_length": 1000000000000000019884624838656})",
                                  "config", kModelFileJson);
  const Json generation = *parse_json(R"({"eos_token_id": [3, 5]})", "generation", kModelFileJson);
  const Result<Tokenizer> made = from_json(golden_tokenizer_json("llama3"), config, generation);
  ASSERT_TRUE(made) << made.status().sentence();
  EXPECT_EQ(made->eos(), made->find("<|end_of_text|>"));
  EXPECT_EQ(made->bos(), made->find("<|begin_of_text|>"));
  EXPECT_TRUE(made->add_bos());  // this class leaves it to tokenizer.json
  EXPECT_TRUE(made->pad() == -1 && made->unk() == -1);
  EXPECT_TRUE(made->is_end(3) && made->is_end(5) && made->is_end(made->eos()) && made->is_end(made->find("<|eot_id|>").value()));
}

// ---- large and hostile

TEST(Tokenizer, MegabyteWordsAreNotQuadratic) {
  for (const Tokenizer& tokenizer : {load("llama3"), load("smollm")}) {
    for (const char* unit : {"a", "the", "ab ", "<", "<|im_", "\xCC\x81", "\xF0\x9F\x98\x80", "\x80"}) {
      std::string text;
      while (text.size() < 1 << 20) text += unit;
      const Ids ids = tokenizer.encode(text);
      ASSERT_FALSE(ids.empty());
      std::string repaired;
      append_repaired(text, true, repaired);
      EXPECT_EQ(tokenizer.decode(ids), repaired) << unit;
    }
  }
}

TEST(Tokenizer, LongAndShortWordsMergeByTheSameRule) {
  // A word of 33 bytes takes the heap, one of 32 the scan: every word of two letters and those lengths must agree where they overlap.
  BpeMerges merges(6);
  const std::array<std::array<int32_t, 3>, 6> rules{{{0, 1, 2}, {1, 0, 3}, {2, 2, 4}, {0, 0, 5}, {3, 2, 6}, {5, 5, 7}}};
  for (size_t i = 0; i < rules.size(); ++i) merges.add(rules[i][0], rules[i][1], uint32_t(i), rules[i][2]);
  SplitMix below{9};
  for (int round = 0; round < 2000; ++round) {
    Ids word;
    for (size_t n = 2 + below(31); n > 0; --n) word.push_back(int32_t(below(2)));
    // 40 symbols that merge with nothing push the same word into the heap.
    Ids padded = word;
    padded.insert(padded.end(), 40, 9);
    merges.apply(word, 0);
    merges.apply(padded, 0);
    padded.resize(padded.size() - 40);
    ASSERT_EQ(padded, word);
  }
}

std::string refusal(TokenizerData data) {
  const Result<Tokenizer> made = Tokenizer::make(std::move(data));
  return made ? "accepted" : made.status().sentence();
}
void expect_refusal(TokenizerData data, std::string_view part) {
  const std::string sentence = refusal(std::move(data));
  EXPECT_NE(sentence.find(part), std::string::npos) << sentence;
}

TEST(TokenizerHostile, VocabulariesGetASentence) {
  const TokenizerData good{.tokens = {"a", "b", "ab", "<x>"},
                           .types = {TokenType::normal, TokenType::normal, TokenType::normal, TokenType::control},
                           .merges = {"a b"},
                           .rules = {{SplitRule::Kind::gpt2}},
                           .bos = 3};
  EXPECT_EQ(refusal(good), "accepted");
  const auto with = [&](auto change) {
    TokenizerData data = good;
    change(data);
    return data;
  };
  expect_refusal(with([](auto& d) { d.tokens.clear(); }), "empty vocabulary");
  expect_refusal(with([](auto& d) {
                   d.tokens[1] = "a";
                   d.merges.clear();
                 }),
                 "tokens 0 and 1 are both 'a'");
  expect_refusal(with([](auto& d) { d.types.pop_back(); }), "4 tokens but 3 token types");
  expect_refusal(with([](auto& d) { d.types[0] = TokenType(77); }), "unknown type 77");
  expect_refusal(with([](auto& d) { d.merges = {"a b", "b a"}; }), "merge 1 ('b a') makes a text that is not a token");
  expect_refusal(with([](auto& d) { d.merges = {"a c"}; }), "joins a text that is not a token");
  for (const char* merge : {"", " ", "ab", "a b c", " a", "a ", "a \xFF"}) {
    EXPECT_NE(refusal(with([&](auto& d) { d.merges = {merge}; })), "accepted") << merge;
  }
  expect_refusal(with([](auto& d) { d.eos = 4; }), "EOS token has id 4, outside of the vocabulary of 4");
  expect_refusal(with([](auto& d) { d.bos = -7; }), "outside of the vocabulary");
  expect_refusal(with([](auto& d) { d.more_end_ids = {1 << 30}; }), "outside of the vocabulary");
  expect_refusal(with([](auto& d) { d.added = {{9, "<y>"}}; }), "outside of the vocabulary");
  expect_refusal(with([](auto& d) { d.added = {{0, "<y>"}, {1, "<y>"}}; }), "'<y>' has two ids, 0 and 1");
  expect_refusal(with([](auto& d) { d.tokens[3] = std::string(600, '<'); }), "600 bytes long");
  expect_refusal(with([](auto& d) {
                   d.tokens = {"<0x41>", " raw", "two words", "<x>"};
                   d.merges.clear();
                 }),
                 "not a byte-level BPE");
  expect_refusal(with([](auto& d) { d.rules.assign(99, {}); }), "99 rules");
}

TEST(TokenizerHostile, TokenizerJsonGetsASentence) {
  const Json good = golden_tokenizer_json("smollm");
  const auto sentence = [&](std::string_view from, std::string_view to) {
    std::string text = to_text(good);
    const size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
    const Result<Json> json = parse_json(text, "x", kModelFileJson);
    EXPECT_TRUE(json) << json.status().sentence();
    const Result<Tokenizer> made = from_json(json ? *json : Json());
    return made ? std::string("accepted") : made.status().sentence();
  };
  const auto expect = [&](std::string_view from, std::string_view to, std::string_view part) {
    const std::string said = sentence(from, to);
    EXPECT_NE(said.find(part), std::string::npos) << from << " -> " << to << ": " << said;
  };
  expect("\"model\":", "\"model\":", "accepted");
  expect("\"model\":", "\"mode\":", "no model");
  expect("\"BPE\"", "\"Unigram\"", "the model is 'Unigram'");
  expect("\"type\":\"Digits\"", "\"type\":\"Whitespace\"", "pre-tokenizer 'Whitespace' is not known");
  expect("\"type\":\"ByteLevel\"", "\"type\":\"Digits\"", "no ByteLevel pre-tokenizer");
  expect("\"normalizer\":null", "\"normalizer\":{\"type\":\"Lowercase\"}", "normalizer 'Lowercase'");
  expect("\"post_processor\":null", "\"post_processor\":{\"type\":\"BertProcessing\"}", "'BertProcessing' is not supported");
  expect("\"dropout\":null", "\"dropout\":0.1", "dropout");
  expect("\"byte_fallback\":false", "\"byte_fallback\":true", "byte_fallback");
  expect("\"end_of_word_suffix\":null", "\"end_of_word_suffix\":\"</w>\"", "end_of_word_suffix");
  expect("\"<mask>\"", "5", "no content");
  expect("\"!\":", "\"!\":99999999999,\"\":", "far beyond");
  expect("\"!\":", "\"!\":-1,\"\":", "has no id");
  expect("\"!\":", "\"\\u4e00\":2,\"!\":", "share the id");
  expect("\"merges\":[", "\"merges\":[[\"a\"],", "neither a string nor a pair");
  expect("\"merges\":[", "\"merges\":[7,", "neither a string nor a pair");
  EXPECT_NE(from_json(Json()).status().sentence().find("no model"), std::string::npos);
  EXPECT_NE(tokenizer_from_hf("/nowhere/at/all").status().sentence().find("holds no tokenizer.json"), std::string::npos);
}

TEST(TokenizerHostile, GgufWithoutOrWithForeignTokenizerGetsASentence) {
  const auto sentence = [](std::vector<GgufMetadata::Entry> entries) {
    const Result<TokenizerData> data = tokenizer_data_from_gguf(GgufMetadata(std::move(entries), nullptr));
    if (!data) return data.status().sentence();
    return refusal(*data);
  };
  const auto strings = [](std::string_view key, std::vector<std::string_view> texts, bool array) {
    return GgufMetadata::Entry{key, {.type = GgufType::string, .array = array, .count = int64_t(texts.size()), .strings = texts}};
  };
  const auto model = strings("tokenizer.ggml.model", {"gpt2"}, false), pre = strings("tokenizer.ggml.pre", {"qwen2"}, false);
  const auto tokens = strings("tokenizer.ggml.tokens", {"a", "b", "ab"}, true),
             merges = strings("tokenizer.ggml.merges", {"a b"}, true);
  const auto number = [](std::string_view key, std::string_view raw) {
    return GgufMetadata::Entry{key, {.type = GgufType::u32, .raw = raw}};
  };
  EXPECT_EQ(sentence({model, pre, tokens, merges}), "accepted");
  EXPECT_NE(sentence({pre, tokens, merges}).find("holds no tokenizer"), std::string::npos);
  EXPECT_NE(sentence({strings("tokenizer.ggml.model", {"llama"}, false), pre, tokens, merges}).find("'llama'"),
            std::string::npos);
  EXPECT_NE(sentence({model, tokens, merges}).find("tokenizer.ggml.pre"), std::string::npos);
  EXPECT_NE(sentence({model, pre, merges}).find("empty vocabulary"), std::string::npos);
  EXPECT_NE(sentence({model, pre, tokens}).find("no merges"), std::string::npos);
  const std::string_view nine("\x09\0\0\0", 4), none("\xFF\xFF\xFF\xFF", 4), huge("\0\0\0\x80", 4);
  EXPECT_NE(sentence({model, pre, tokens, merges, number("tokenizer.ggml.eos_token_id", nine)}).find("EOS token has id 9"),
            std::string::npos);
  EXPECT_NE(sentence({model, pre, tokens, merges, number("tokenizer.ggml.eos_token_id", huge)}).find("not a token id"),
            std::string::npos);
  EXPECT_EQ(sentence({model, pre, tokens, merges, number("tokenizer.ggml.padding_token_id", none)}), "accepted");
}

}  // namespace
}  // namespace ridge
