// Pre-tokenizers, UTF-8 repair and NFC: cut where the `tokenizers` library and PCRE2 cut, repaired as Python repairs, linear on a megabyte.
#include "io/pretokenizer.h"

#include <gtest/gtest.h>

#include "io/pretokenizer_regex.h"
#include "io/tokenizer_load.h"
#include "io/tokenizer_testing.h"
#include "io/unicode.h"

namespace ridge {
namespace {

// ---- pre-tokenizers

std::vector<uint32_t> piece_sizes(const std::vector<SplitRule>& rules, std::string_view text) {
  Result<Pretokenizer> made = Pretokenizer::make(rules);
  EXPECT_TRUE(made) << made.status().sentence();
  std::vector<uint32_t> sizes;
  if (made) made->split(text, [&](std::string_view piece) { sizes.push_back(uint32_t(piece.size())); });
  return sizes;
}

std::string every_code_point(uint32_t plane) {
  std::string out;
  for (uint32_t c = plane << 16; c < (plane + 1) << 16; ++c) {
    const bool disputed = (c >= 0x11DE0 && c < 0x11DEA) || (c >= 0x16FF4 && c < 0x16FF7);
    if ((c >= 0xD800 && c < 0xE000) || disputed) continue;
    std::string one;
    append_utf8(c, one);
    out += "a" + one + one + "1" + one + " " + one + "'" + one + "\n";
  }
  return out;
}

TEST(Pretokenizer, CutsEveryCodePointAndTheMegabyteAsTheLibrary) {
  using Kind = SplitRule::Kind;
  const std::pair<const char*, Kind> rows[] = {{"gpt2", Kind::gpt2},
                                               {"llama3", Kind::llama3},
                                               {"qwen2", Kind::qwen2},
                                               {"digits", Kind::digits},
                                               {"digit_runs", Kind::digit_runs}};
  for (const auto& [name, kind] : rows) {
    const Json& golden = goldens()["pieces"][name];
    EXPECT_EQ(fnv(piece_sizes({{kind}}, clean_megabyte())), golden.get_string("corpus")) << name;
    EXPECT_EQ(golden["planes"].size(), 5u);
    for (const Json::Member& plane : golden["planes"].members()) {
      EXPECT_EQ(fnv(piece_sizes({{kind}}, every_code_point(uint32_t(std::stoi(plane.key))))), *plane.value.string())
          << name << " " << plane.key;
    }
  }
}

// The parts of a text that PCRE2's Unicode knows; the hand-written matchers know later versions too.
std::string known_to_pcre2(std::string_view text) {
  Result<Pretokenizer> made = Pretokenizer::make({{SplitRule::Kind::regex, "\\p{Cn}+", SplitRule::Keep::gaps}});
  EXPECT_TRUE(made) << made.status().sentence();
  std::string known;
  if (made) made->split(text, [&](std::string_view piece) { known += piece; });
  return known;
}

TEST(Pretokenizer, HandWrittenMatchersEqualPcre2) {
  using Kind = SplitRule::Kind;
  std::vector<std::string> texts = {known_to_pcre2(clean_megabyte()), known_to_pcre2(every_code_point(0)),
                                    known_to_pcre2(every_code_point(1))};
  EXPECT_GT(texts[0].size(), 900'000u);
  EXPECT_GT(texts[1].size(), 900'000u);
  for (uint64_t seed = 100; seed < 600; ++seed) {
    std::string text;
    append_repaired(expand(corpus(), 200, seed), true, text);
    texts.push_back(known_to_pcre2(text));
  }
  for (Kind kind : {Kind::gpt2, Kind::llama3, Kind::qwen2}) {
    const std::string pattern(pattern_of(kind));
    EXPECT_EQ(rule_of_pattern(pattern).kind, kind);
    for (const std::string& text : texts) {
      ASSERT_EQ(piece_sizes({{kind}}, text), piece_sizes({{Kind::regex, pattern}}, text)) << pattern << "\n"
                                                                                          << text.substr(0, 400);
    }
  }
}

std::vector<std::string> cut(const std::vector<SplitRule>& rules, std::string_view text) {
  std::vector<std::string> pieces;
  Result<Pretokenizer> made = Pretokenizer::make(rules);
  EXPECT_TRUE(made) << made.status().sentence();
  if (made) made->split(text, [&](std::string_view piece) { pieces.emplace_back(piece); });
  return pieces;
}

TEST(Pretokenizer, SmollmCutsDigitsBeforeWhiteSpaceIsSeen) {
  const Result<NamedPretokenizer> smollm = named_pretokenizer("smollm");
  ASSERT_TRUE(smollm);
  // With the digits inside the GPT-2 pattern the line breaks would be two pieces: the digit must not count as what follows them.
  EXPECT_EQ(cut(smollm->rules, "DR\n\n1"), (std::vector<std::string>{"DR", "\n\n", "1"}));
  EXPECT_EQ(cut({{SplitRule::Kind::gpt2}}, "DR\n\n1"), (std::vector<std::string>{"DR", "\n", "\n", "1"}));
}

TEST(Pretokenizer, EmptyMatchesCut) {
  EXPECT_EQ(cut({{SplitRule::Kind::regex, "a*"}}, "bcaab"), (std::vector<std::string>{"b", "c", "aa", "b"}));
  EXPECT_EQ(cut({{SplitRule::Kind::regex, "(?=é)"}}, "aébé"), (std::vector<std::string>{"a", "éb", "é"}));
}

TEST(Pretokenizer, CatastrophicPatternEndsAndLosesNothing) {
  const std::string text(100'000, 'a');
  size_t total = 0;
  for (uint32_t size : piece_sizes({{SplitRule::Kind::regex, "(a+)+$(?<=b)"}}, text)) total += size;
  EXPECT_EQ(total, text.size());
}

TEST(Pretokenizer, MegabyteOfOneClassIsLinear) {
  using Kind = SplitRule::Kind;
  for (const char* unit : {"a", " ", "\n", "1", "!", "\xC2\xA0", "\xCC\x81", "\xF0\x9F\x98\x80"}) {
    std::string text;
    while (text.size() < 1 << 20) text += unit;
    for (Kind kind : {Kind::gpt2, Kind::llama3, Kind::qwen2}) {
      EXPECT_EQ(piece_sizes({{kind}}, text), piece_sizes({{Kind::regex, std::string(pattern_of(kind))}}, text)) << unit;
    }
  }
}

TEST(Pretokenizer, RefusesWhatOnigurumaReadsDifferently) {
  const auto sentence = [](const char* pattern) {
    const Result<PretokenizerRegex> made = PretokenizerRegex::compile(pattern);
    return made ? std::string("accepted") : made.status().sentence();
  };
  EXPECT_NE(sentence("[\\p{L}&&[^a]]").find("&&"), std::string::npos);
  EXPECT_NE(sentence("[a[bc]]").find("nests a class"), std::string::npos);
  EXPECT_NE(sentence("\\h+").find("\\h"), std::string::npos);
  EXPECT_NE(sentence("(a").find("does not compile"), std::string::npos);
  EXPECT_NE(sentence("a\\").find("backslash"), std::string::npos);
  EXPECT_NE(sentence("\xFF").find("UTF-8"), std::string::npos);
  EXPECT_EQ(sentence("[]a]|[^]b]|\\[\\]"), "accepted");
}

TEST(Pretokenizer, LiteralPatternsAreNotRead) {
  const Json split = *parse_json(
      R"j({"type": "Sequence", "pretokenizers": [{"type": "Split", "pattern": {"String": "(.*"}, "behavior": "Isolated",
      "invert": false}, {"type": "ByteLevel", "add_prefix_space": false, "use_regex": false}]})j",
      "x", kModelFileJson);
  Json tokenizer = golden_tokenizer_json("llama3");
  tokenizer.set("pre_tokenizer", split);
  const Result<TokenizerData> data = tokenizer_data_from_hf(tokenizer, Json(), Json());
  ASSERT_TRUE(data) << data.status().sentence();
  EXPECT_EQ(cut(data->rules, "a(.*b(.x"), (std::vector<std::string>{"a", "(.*", "b(.x"}));
}

TEST(Pretokenizer, UnknownNamesAreSentences) {
  EXPECT_NE(named_pretokenizer("made-up").status().sentence().find("'made-up' is not known"), std::string::npos);
  EXPECT_NE(named_pretokenizer("").status().sentence().find("tokenizer.ggml.pre"), std::string::npos);
}

// ---- UTF-8

TEST(Utf8, BrokenBytesBecomeWhatPythonMakesOfThem) {
  const Json::Array& repaired = goldens()["repaired"].items();
  const Json::Array& nasty = goldens()["nasty"].items();
  ASSERT_GE(repaired.size(), 12u);
  for (size_t i = 0; i < repaired.size(); ++i) {
    const std::string bytes = unhex(*nasty[nasty.size() - repaired.size() + i].string());
    std::string text;
    EXPECT_EQ(append_repaired(bytes, true, text), bytes.size());
    EXPECT_EQ(text, *repaired[i].string());
    EXPECT_TRUE(is_valid_utf8(text));
  }
}

TEST(Utf8, AnyCutOfTheInputRepairsAlike) {
  std::string whole;
  append_repaired(corpus(), true, whole);
  for (size_t step : {1, 2, 3, 7, 64}) {
    std::string pending, text;
    for (size_t at = 0; at < corpus().size(); at += step) {
      pending += std::string_view(corpus()).substr(at, step);
      pending.erase(0, append_repaired(pending, false, text));
      ASSERT_LE(pending.size(), 3u);
    }
    append_repaired(pending, true, text);
    EXPECT_EQ(text, whole) << step;
  }
}

TEST(Nfc, MillionMarksOutOfOrderDoNotTakeQuadraticTime) {
  std::string marks = "a";
  for (int i = 0; i < 250'000; ++i) marks += "\u0301\u0316";
  std::string expected = "\u00e1";
  for (int i = 0; i < 250'000; ++i) expected += "\u0316";
  for (int i = 1; i < 250'000; ++i) expected += "\u0301";
  EXPECT_TRUE(nfc(marks) == expected);
  EXPECT_EQ(nfc("e\u0301 \u1112\u1161\u11ab \u212b q\u0307\u0323"), "\u00e9 \ud55c \u00c5 q\u0323\u0307");
}

}  // namespace
}  // namespace ridge
