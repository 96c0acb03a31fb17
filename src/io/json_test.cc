#include "io/json.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <limits>

namespace ridge {
namespace {

std::string complaint(std::string_view text, const JsonRules& rules) {
  const Result<Json> r = parse_json(text, "x", rules);
  return r ? "accepted as " + to_text(*r) : r.status().sentence();
}

Json parsed(std::string_view text, const JsonRules& rules = kModelFileJson) {
  Result<Json> r = parse_json(text, "x", rules);
  EXPECT_TRUE(r) << r.status().sentence();
  return r ? std::move(*r) : Json();
}

TEST(Json, ValuesKeepKindOrderAndText) {
  const Json v = parsed(R"( {"b": [1, -2, 3.5, true, null], "a": {"k": "\u00e9\ud83d\ude00\n"}, "z": {}, "e": []} )");
  EXPECT_EQ(to_text(v), "{\"b\":[1,-2,3.5,true,null],\"a\":{\"k\":\"é😀\\n\"},\"z\":{},\"e\":[]}");
  EXPECT_EQ(v["b"].items().size(), 5u);
  EXPECT_EQ(v["b"][1].integer(), -2);
  EXPECT_EQ(v["b"][2].number(), 3.5);
  EXPECT_EQ(v["b"][3].boolean(), true);
  EXPECT_TRUE(v["b"][4].is_null());
  EXPECT_EQ(v["a"]["k"].string()->size(), 7u);
  EXPECT_EQ(v.members()[1].key, "a");
  EXPECT_EQ(v.find("nothing"), nullptr);
}

TEST(Json, WrongKindsAndAbsentMembersYieldDefaults) {
  const Json v = parsed(R"({"s": "text", "n": 4.0, "half": 0.5, "null": null, "big": 1e300, "list": [1]})");
  EXPECT_EQ(v.get_int("n", 7), 4);
  EXPECT_EQ(v.get_int("half", 7), 7);
  EXPECT_EQ(v.get_int("big", 7), 7);
  EXPECT_EQ(v.get_int("s", 7), 7);
  EXPECT_EQ(v.get_number("n", 0), 4);
  EXPECT_EQ(v.get_string("s"), "text");
  EXPECT_EQ(v.get_string("n", "none"), "none");
  EXPECT_TRUE(v.get_bool("null", true));
  EXPECT_TRUE(v["a"]["b"]["c"].is_null());
  EXPECT_TRUE(v["list"][9].is_null());
  EXPECT_TRUE(v["s"].items().empty());
}

TEST(Json, IntegersKeepSixtyFourBits) {
  EXPECT_EQ(parsed("9223372036854775807").integer(), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(parsed("-9223372036854775808").integer(), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(parsed("18446744073709551615").kind(), Json::Kind::real);
  EXPECT_EQ(parsed("18446744073709551615").number(), 0x1p64);
  EXPECT_EQ(parsed("9223372036854775808").integer(), std::nullopt);
  EXPECT_EQ(Json(uint64_t(1) << 63).kind(), Json::Kind::real);
}

TEST(Json, PythonsDialectIsReadFromModelFilesOnly) {
  const char* config = R"({"model_max_length": 1000000000000000019884624838656, "limit": [0.0, Infinity, -Infinity, NaN]})";
  const Json v = parsed(config);
  EXPECT_EQ(v["model_max_length"].number(), 1e30);
  EXPECT_EQ(v["limit"][1].number(), std::numeric_limits<double>::infinity());
  EXPECT_EQ(v["limit"][2].number(), -std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(*v["limit"][3].number()));
  EXPECT_EQ(complaint(config, kRequestJson), "x: line 1, column 70: this is no JSON value");
  EXPECT_EQ(to_text(v["limit"]), "[0.0,null,null,null]");
}

TEST(Json, RepeatedKeysCountOnceInFilesAndAreRefusedInRequests) {
  EXPECT_EQ(to_text(parsed(R"({"a":1,"b":2,"a":3,"c":4,"a":5})")), R"({"a":5,"b":2,"c":4})");
  EXPECT_EQ(complaint("{\"b\":2,\"a\":1,\n\"a\":3}", kRequestJson),
            "x: line 2, column 6: the key \"a\" stands twice in one object");
  EXPECT_EQ(complaint(R"({"x":{"k":0,"k":0}})", kHeaderJson), "x: line 1, column 18: the key \"k\" stands twice in one object");
  EXPECT_TRUE(parse_json(R"([{"a":1},{"a":1}])", "x", kRequestJson));
}

TEST(Json, DepthIsBoundedByTheRules) {
  const auto nested = [](size_t n) { return std::string(n, '[') + std::string(n, ']'); };
  EXPECT_TRUE(parse_json(nested(64), "x", kRequestJson));
  EXPECT_EQ(complaint(nested(65), kRequestJson), "x: line 1, column 65: arrays and objects are nested more than 64 deep");
  EXPECT_TRUE(parse_json(nested(512), "x", kModelFileJson));
  EXPECT_EQ(complaint(std::string(1000000, '['), kModelFileJson),
            "x: line 1, column 513: arrays and objects are nested more than 512 deep");
  std::string objects;
  for (int i = 0; i < 100000; ++i) objects += "{\"a\":";
  EXPECT_EQ(complaint(objects, kModelFileJson), "x: line 1, column 2561: arrays and objects are nested more than 512 deep");
}

TEST(Json, ValuesAreCounted) {  // twenty bytes of memory and more for each byte of "[0,0,0"
  std::string many = "[0";
  for (int i = 0; i < 1000000; ++i) many += ",0";
  EXPECT_EQ(complaint(many + "]", kRequestJson), "x: line 1, column 2000002: there are more than 1000000 values");
  EXPECT_TRUE(parse_json(many + "]", "x", kModelFileJson));
}

TEST(Json, BrokenTextIsNamedByLineAndColumn) {
  const auto file = [](std::string_view text) { return complaint(text, kModelFileJson); };
  EXPECT_EQ(file(""), "x: line 1, column 1: there is no JSON value");
  EXPECT_EQ(file("{\n  \"a\": 1\n  \"b\": 2}"), "x: line 3, column 3: a comma or '}' is missing after a member");
  EXPECT_EQ(file("[1 2]"), "x: line 1, column 4: a comma or ']' is missing after an array element");
  EXPECT_EQ(file("[1,]"), "x: line 1, column 4: this is no JSON value");
  EXPECT_EQ(file("{1:2}"), "x: line 1, column 2: a quoted member name is missing");
  EXPECT_EQ(file("{\"a\" 2}"), "x: line 1, column 6: a colon is missing after a member name");
  EXPECT_EQ(file("\"abc"), "x: line 1, column 5: a string is not closed");
  EXPECT_EQ(file("\"\\q\""), "x: line 1, column 2: a control character or an unknown escape stands in a string");
  EXPECT_EQ(file("\"\\u12g4\""), "x: line 1, column 2: a \\u escape needs four hexadecimal digits");
  EXPECT_EQ(file("\"\\ud800x\""), "x: line 1, column 2: a \\u surrogate has no partner");
  EXPECT_EQ(file("\"x\\ude00\""), "x: line 1, column 10: a \\u surrogate has no partner");
  EXPECT_EQ(file("{\"\\udfff\":1}"), "x: line 1, column 10: a \\u surrogate has no partner");
  EXPECT_EQ(file("\"\\ud7ff\\ue000\""), "accepted as \"\uD7FF\uE000\"");
  EXPECT_EQ(file("1 2"), "x: line 1, column 3: something follows the end of the value");
  EXPECT_EQ(file("1."), "x: line 1, column 3: digits are missing after a decimal point");
  EXPECT_EQ(file("1e"), "x: line 1, column 3: digits are missing after an exponent");
  EXPECT_EQ(file("[-1.8e308]"), "x: line 1, column 2: a number is too large for a double");
  EXPECT_EQ(file("0.9e309"), "x: line 1, column 1: a number is too large for a double");
  EXPECT_EQ(file("1e400"), "x: line 1, column 1: a number is too large for a double");
  EXPECT_EQ(file(std::string_view("1\0 garbage", 10)), "x: line 1, column 2: a NUL byte stands in the text");
  EXPECT_EQ(file("\xef\xbb\xbf[1]"), "accepted as [1]");
}

TEST(Json, InvalidUtf8IsRefusedOnTheWayIn) {
  for (const char* bad :
       {"\"\xff\"", "\"\xc0\x80\"", "\"\xed\xa0\x80\"", "\"\xf4\x90\x80\x80\"", "\"\xe2\x82\"", "{\"\x80\":1}"}) {
    const std::string said = complaint(bad, kRequestJson);
    EXPECT_NE(said.find("a string is not valid UTF-8"), std::string::npos) << said;
  }
}

TEST(Json, InvalidUtf8IsReplacedOnTheWayOut) {
  EXPECT_EQ(to_text(Json("a\xffz")), "\"a\uFFFDz\"");
  EXPECT_EQ(to_text(Json("\xf0\x9f\x98")), "\"\uFFFD\uFFFD\uFFFD\"");  // half an emoji
  EXPECT_EQ(to_text(Json("\xed\xa0\x80")), "\"\uFFFD\uFFFD\uFFFD\"");  // a lone surrogate
  EXPECT_EQ(to_text(Json("é😀\xe2\x82\xac")), "\"é😀€\"");
  EXPECT_EQ(to_text(Json(std::string("\0\x1f\"\\\n\t\r\x7f", 8))), "\"\\u0000\\u001f\\\"\\\\\\n\\t\\r\\u007f\"");
  for (int c = 0; c < 0x110000; ++c) {  // every code point survives a round trip
    if (c == 0xd800) c = 0xe000;
    std::string s;
    if (c < 0x80)
      s = {char(c)};
    else if (c < 0x800)
      s = {char(0xc0 | c >> 6), char(0x80 | (c & 63))};
    else if (c < 0x10000)
      s = {char(0xe0 | c >> 12), char(0x80 | (c >> 6 & 63)), char(0x80 | (c & 63))};
    else
      s = {char(0xf0 | c >> 18), char(0x80 | (c >> 12 & 63)), char(0x80 | (c >> 6 & 63)), char(0x80 | (c & 63))};
    const Result<Json> back = parse_json(to_text(Json(s)), "x", kRequestJson);
    ASSERT_TRUE(back && *back->string() == s) << c;
  }
}

TEST(Json, DoublesRoundTripAsTheShortestText) {
  const double values[] = {0.1,    1e22, 5e-324, 1.7976931348623157e308, -0.0, 1.0, 123456789012345680.0, 2.2250738585072014e-308,
                           1 / 3.0};
  for (double d : values)
    EXPECT_EQ(std::bit_cast<uint64_t>(*parsed(to_text(Json(d))).number()), std::bit_cast<uint64_t>(d)) << to_text(Json(d));
  EXPECT_EQ(to_text(Json(0.1)), "0.1");
  EXPECT_EQ(to_text(Json(1.0)), "1.0");
  EXPECT_EQ(to_text(Json(1e22)), "1e+22");
  for (const char* tiny : {"1e-400", "2e-324", "1e-99999999999999999999", "0.0000001e-320"})
    EXPECT_EQ(parsed(tiny).number(), 0) << tiny;
  EXPECT_EQ(parsed("0." + std::string(400, '0') + "1").number(), 0);
  EXPECT_TRUE(std::signbit(*parsed("-1e-400").number()));
  EXPECT_EQ(parsed("0." + std::string(400, '0') + "1e401").number(), 1);
  EXPECT_EQ(parsed("1" + std::string(300, '0') + "e-300").number(), 1);
  EXPECT_EQ(parsed("9007199254740993.0").number(), 9007199254740992.0);  // a tie, to even
  EXPECT_EQ(parsed("2.4703282292062328e-324").number(), 5e-324);
  uint64_t bits = 1;
  for (int i = 0; i < 20000; ++i) {
    bits = bits * 6364136223846793005u + 1442695040888963407u;
    const double d = std::bit_cast<double>(bits);
    if (std::isfinite(d)) { ASSERT_EQ(*parsed(to_text(Json(d))).number(), d) << to_text(Json(d)); }
  }
}

TEST(Json, BuildsAndIndents) {
  Json row = Json::object({{"op", "gemm"}, {"count", 3}});
  row.set("refused", Json::array()).push(Json::object({{"row", "amx"}, {"reason", "no AMX"}}));
  row.set("ids", std::vector<int>{1, 2, 3});
  row.set("count", 4u);
  row.set("empty", Json::object());
  EXPECT_EQ(to_text(row), R"({"op":"gemm","count":4,"refused":[{"row":"amx","reason":"no AMX"}],"ids":[1,2,3],"empty":{}})");
  EXPECT_EQ(to_text(row, 2),
            "{\n  \"op\": \"gemm\",\n  \"count\": 4,\n  \"refused\": [\n    {\n      \"row\": \"amx\",\n"
            "      \"reason\": \"no AMX\"\n    }\n  ],\n  \"ids\": [1, 2, 3],\n  \"empty\": {}\n}");
  EXPECT_EQ(parsed(to_text(row, 2)), row);
  const Json copy = row;
  row.set("op", "changed");
  EXPECT_EQ(copy.get_string("op"), "gemm");
}

TEST(JsonFields, FirstComplaintIsKept) {
  const Json v = parsed(R"({"layers": 30, "heads": "nine", "dim": -4, "eps": 1e-5, "tied": 1, "act": "silu", "none": null})");
  JsonFields f(v, "config.json");
  EXPECT_EQ(f.need_int("layers"), 30);
  EXPECT_EQ(f.get_int("none", 5), 5);
  EXPECT_EQ(f.get_number("eps", 0), 1e-5);
  EXPECT_EQ(f.need_string("act"), "silu");
  EXPECT_TRUE(f.status().ok());
  f.need_int("dim");
  f.need_int("heads");
  EXPECT_EQ(f.status().sentence(), "config.json: \"dim\" must be an integer from 0 to 2147483647 and not -4");
  EXPECT_EQ(f.status().code(), Code::unloadable);
  const auto said = [&](auto read) {
    JsonFields g(v, "config.json");
    read(g);
    return g.status().sentence();
  };
  EXPECT_EQ(said([](JsonFields& g) { g.need_int("absent"); }), "config.json: \"absent\" is missing");
  EXPECT_EQ(said([](JsonFields& g) { g.need_int("none"); }), "config.json: \"none\" is missing");
  EXPECT_EQ(said([](JsonFields& g) { g.get_int("heads", 1); }),
            "config.json: \"heads\" must be an integer from 0 to 2147483647 and not a string");
  EXPECT_EQ(said([](JsonFields& g) { g.get_bool("tied", false); }),
            "config.json: \"tied\" must be true or false and not an integer");
  EXPECT_EQ(said([](JsonFields& g) { g.get_string("eps", ""); }), "config.json: \"eps\" must be a string and not a number");
  EXPECT_EQ(said([](JsonFields& g) { g.get_number("act", 0); }), "config.json: \"act\" must be a number and not a string");
  EXPECT_EQ(JsonFields(Json(3), "config.json").status().sentence(), "config.json: an object is needed here and not an integer");
}

TEST(Json, FilesAreReadByPath) {
  const Result<Json> r = read_json("/nowhere/config.json");
  ASSERT_FALSE(r);
  EXPECT_EQ(r.status().sentence(), "/nowhere/config.json: there is no such file; check the path");
  EXPECT_EQ(r.status().code(), Code::unloadable);
}

}  // namespace
}  // namespace ridge
