// safetensors files as their enemies write them, each lie with the exact sentence it must yield.
#include <gtest/gtest.h>

#include <limits>

#include "io/safetensors.h"
#include "io/test_files.h"

namespace ridge {
namespace {

std::string with_length(std::string_view header, std::string_view data, int64_t length = -1) {
  std::string out;
  append(out, length < 0 ? uint64_t(header.size()) : uint64_t(length));
  return (out += header) += data;
}
std::string said_of(std::string_view header, size_t data = 0, int64_t length = -1) {
  const std::string bytes = with_length(header, std::string(data, 'x'), length);
  const Result<Safetensors> r = parse_safetensors(bytes, "m");
  return r ? "accepted" : r.status().sentence();
}
std::string entry_of(std::string_view dtype, std::string_view shape, std::string_view offsets) {
  return "{\"a\":{\"dtype\":\"" + std::string(dtype) + "\",\"shape\":" + std::string(shape) +
         ",\"data_offsets\":" + std::string(offsets) + "}}";
}

TEST(Safetensors, ReadsWhatTheWriterWrote) {
  std::vector<double> d = {1, -2};
  std::vector<float> f = {3, 4, 5, 6, 7, 8};
  std::vector<uint16_t> h = {f16_from_f32(0.5f)}, b = {bf16_from_f32(-3)};
  std::vector<int64_t> l = {int64_t(1) << 40};
  std::vector<int32_t> i = {-7};
  std::vector<uint8_t> u = {1, 2, 3};
  SafetensorsWriter w;
  w.metadata("format", "pt");
  w.tensor("u", view_of(u.data(), DType::u8, {3}));
  w.tensor("f", view_of(f.data(), DType::f32, {2, 3}));
  w.tensor("h", view_of(h.data(), DType::f16, {1}));
  w.tensor("d", view_of(d.data(), DType::f64, {2, 1, 1, 1}));
  w.tensor("b", view_of(b.data(), DType::bf16, {1, 1}));
  w.tensor("l", view_of(l.data(), DType::i64, {1}));
  w.tensor("i", view_of(i.data(), DType::i32, {1}));
  w.tensor("none", view_of(nullptr, DType::f32, {0, 5}));
  const std::string bytes = w.bytes();
  const Result<Safetensors> r = parse_safetensors(bytes, "m");
  ASSERT_TRUE(r) << r.status().sentence();
  EXPECT_EQ(to_text(r->metadata), R"({"format":"pt"})");
  EXPECT_EQ(r->tensors.all().size(), 8u);
  EXPECT_EQ(r->find("u")->get(2), 3);
  EXPECT_EQ(to_string(*r->find("f")), "f32 [2, 3]");
  EXPECT_EQ(r->find("f")->get(1, 2), 8);
  EXPECT_EQ(r->find("h")->get(), 0.5);
  EXPECT_EQ(to_string(*r->find("d")), "f64 [2, 1, 1, 1]");
  EXPECT_EQ(r->find("d")->get(1), -2);
  EXPECT_EQ(r->find("b")->get(), -3);
  EXPECT_EQ(r->find("l")->get(), 0x1p40);
  EXPECT_EQ(r->find("i")->get(), -7);
  EXPECT_EQ(r->find("none")->count(), 0);
  for (const NamedTensor& t : r->tensors.all())  // in place, nothing was copied
    EXPECT_TRUE(t.view.data >= bytes.data() && t.view.data <= bytes.data() + bytes.size()) << t.name;
}

TEST(Safetensors, UnalignedTensorsAreCopied) {
  std::string header =
      R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"b":{"dtype":"F32","shape":[],"data_offsets":[1,5]}})";
  std::string data = "x";
  append(data, 2.5f);
  const std::string bytes = with_length(header, data);
  const Result<Safetensors> r = parse_safetensors(bytes, "m");
  ASSERT_TRUE(r) << r.status().sentence();
  const View& b = *r->find("b");
  EXPECT_EQ(to_string(b), "f32 [1]");  // a scalar is one element
  EXPECT_EQ(b.get(), 2.5);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(b.data) % 4, 0u);
}

TEST(Safetensors, HeadersThatLie) {
  const std::string damaged = "; the file is damaged, fetch it again", incomplete = "; it is incomplete, fetch it again";
  EXPECT_EQ(said_of("{}"), "accepted");
  EXPECT_EQ(said_of("{}      "), "accepted");
  EXPECT_EQ(parse_safetensors("1234567", "m").status().sentence(), "m: the file is too short for a header" + damaged);
  EXPECT_EQ(said_of("{}", 0, 100000001), "m: the header claims 100000001 bytes, more than the 100000000 allowed" + damaged);
  EXPECT_EQ(said_of("{}", 0, std::numeric_limits<int64_t>::max()),
            "m: the header claims 9223372036854775807 bytes, more than the 100000000 allowed" + damaged);
  EXPECT_EQ(said_of("{}", 5, 8), "m: the header claims 8 bytes but the file ends after 7" + incomplete);
  EXPECT_EQ(said_of("[1]"), "m: the header is an array and not an object" + damaged);
  EXPECT_EQ(said_of("{\"a\":"), "m (header): line 1, column 6: this is no JSON value");
  EXPECT_EQ(said_of(""), "m (header): line 1, column 1: there is no JSON value");
  EXPECT_EQ(said_of("{\"a\":1,\"a\":1}"), "m (header): line 1, column 13: the key \"a\" stands twice in one object");
  EXPECT_EQ(said_of(std::string(70, '[')), "m (header): line 1, column 65: arrays and objects are nested more than 64 deep");
  EXPECT_EQ(said_of(R"({"__metadata__":[]})"), "m: \"__metadata__\" is an array and not an object" + damaged);
  EXPECT_EQ(said_of(R"({"__metadata__":{"k":1}})"), "m: the metadata \"k\" is an integer and not a string" + damaged);
  EXPECT_EQ(parse_safetensors("GGUF\3\0\0\0\0\0\0\0", "m").status().sentence(),
            "m: this is a GGUF file and not safetensors; give it the ending .gguf");
  EXPECT_EQ(parse_safetensors("<html><body>", "m").status().sentence(), "m: this is a web page; download the file itself");
  EXPECT_EQ(said_of("{").find("accepted"), std::string::npos);
}

TEST(Safetensors, TensorsThatLie) {
  const std::string damaged = "; the file is damaged, fetch it again";
  const std::string past = " bytes of data; the file is incomplete, fetch it again";
  EXPECT_EQ(said_of(entry_of("F32", "[2]", "[0,8]"), 8), "accepted");
  EXPECT_EQ(said_of(R"({"a":{}})"), "m: tensor \"a\" has no dtype" + damaged);
  EXPECT_EQ(said_of(R"({"a":7})"), "m: tensor \"a\" has no dtype" + damaged);
  EXPECT_EQ(said_of(R"({"a":{"dtype":"F32"}})"), "m: tensor \"a\" has no shape" + damaged);
  EXPECT_EQ(said_of(R"({"a":{"dtype":"F32","shape":[]}})"), "m: tensor \"a\" has no pair of data_offsets" + damaged);
  EXPECT_EQ(
      said_of(entry_of("F8_E4M3", "[8]", "[0,8]"), 8),
      "m: tensor \"a\" is stored as \"F8_E4M3\", which is not supported; use a file made of F64, F32, F16, BF16, I64, I32, U8");
  EXPECT_EQ(said_of(entry_of("F32", "[1,1,1,1,2]", "[0,8]"), 8), "m: tensor \"a\" has 5 dimensions, at most 4 are supported");
  EXPECT_EQ(said_of(entry_of("F32", "[-2]", "[0,8]"), 8), "m: tensor \"a\" has a dimension that is no count: -2" + damaged);
  EXPECT_EQ(said_of(entry_of("F32", "[2.0]", "[0,8]"), 8), "m: tensor \"a\" has a dimension that is no count: 2.0" + damaged);
  EXPECT_EQ(said_of(entry_of("F32", "[18446744073709551615]", "[0,8]"), 8),
            "m: tensor \"a\" has a dimension that is no count: 18446744073709551616.0" + damaged);
  EXPECT_EQ(said_of(entry_of("F32", "[9223372036854775807]", "[0,8]"), 8), "m: tensor \"a\" is larger than any memory" + damaged);
  EXPECT_EQ(said_of(entry_of("F32", "[4294967296,4294967296]", "[0,0]"), 0),
            "m: tensor \"a\" is larger than any memory" + damaged);
  EXPECT_EQ(said_of(entry_of("F64", "[2305843009213693952]", "[0,0]"), 0), "m: tensor \"a\" is larger than any memory" + damaged);
  EXPECT_EQ(said_of(entry_of("F32", "[2]", "[0,8,8]"), 8), "m: tensor \"a\" has no pair of data_offsets" + damaged);
  EXPECT_EQ(said_of(entry_of("F32", "[2]", "[-8,0]"), 8), "m: tensor \"a\" has the impossible data_offsets -8 to 0" + damaged);
  EXPECT_EQ(said_of(entry_of("F32", "[2]", "[8,0]"), 8), "m: tensor \"a\" has the impossible data_offsets 8 to 0" + damaged);
  EXPECT_EQ(said_of(entry_of("F32", "[2]", "[0,8]"), 7), "m: tensor \"a\" takes bytes 0 to 8, past the end of the 7" + past);
  EXPECT_EQ(said_of(entry_of("F32", "[2]", "[9223372036854775799,9223372036854775807]"), 8),
            "m: tensor \"a\" takes bytes 9223372036854775799 to 9223372036854775807, past the end of the 8" + past);
  EXPECT_EQ(said_of(entry_of("F32", "[2, 3]", "[0,8]"), 8),
            "m: tensor \"a\" is F32 [2, 3], which takes 24 bytes, but its data_offsets span 8" + damaged);
}

TEST(Safetensors, DataIsCoveredExactly) {
  const std::string damaged = "; the file is damaged, fetch it again";
  const auto two = [](std::string_view a, std::string_view b) {
    return "{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":" + std::string(a) +
           "},\"b\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":" + std::string(b) + "}}";
  };
  EXPECT_EQ(said_of(two("[0,4]", "[4,8]"), 8), "accepted");
  EXPECT_EQ(said_of(two("[4,8]", "[0,4]"), 8), "accepted");
  EXPECT_EQ(said_of(two("[0,4]", "[3,7]"), 8), "m: tensors \"a\" and \"b\" share bytes" + damaged);
  EXPECT_EQ(said_of(two("[0,4]", "[0,4]"), 4), "m: tensors \"a\" and \"b\" share bytes" + damaged);
  EXPECT_EQ(said_of(two("[0,4]", "[5,9]"), 9), "m: bytes 4 to 5 before tensor \"b\" belong to no tensor" + damaged);
  EXPECT_EQ(said_of(two("[1,5]", "[5,9]"), 9), "m: bytes 0 to 1 before tensor \"a\" belong to no tensor" + damaged);
  EXPECT_EQ(said_of(two("[0,4]", "[4,8]"), 10), "m: the last 2 bytes belong to no tensor" + damaged);
  EXPECT_EQ(said_of("{}", 3), "m: the last 3 bytes belong to no tensor" + damaged);
}

TEST(Safetensors, EveryTruncationIsRefused) {
  SafetensorsWriter w;
  const float x[4] = {};
  w.tensor("x", view_of(const_cast<float*>(x), DType::f32, {4}));
  const std::string bytes = w.bytes();
  for (size_t n = 0; n < bytes.size(); ++n) {
    const std::string cut = bytes.substr(0, n);
    const Result<Safetensors> r = parse_safetensors(cut, "m");
    ASSERT_FALSE(r) << n;
    EXPECT_NE(r.status().sentence().find("fetch it again"), std::string::npos) << n;
  }
}

class ShardFiles : public Files {
 protected:
  void shard(const std::string& name, std::vector<std::string> tensors) {
    SafetensorsWriter w;
    w.metadata("from", name);
    for (const std::string& t : tensors) w.tensor(t, view_of(&value_, DType::f32, {1}));
    ASSERT_TRUE(w.write(at(name)));
    value_ += 1;
  }
  void index(std::string_view map) { put("model.safetensors.index.json", "{\"weight_map\":" + std::string(map) + "}"); }
  std::string said() const { return open_safetensors(folder_).status().sentence(); }
  float value_ = 1;
};

TEST_F(ShardFiles, FoldersOpenByTheirFileOrIndex) {
  EXPECT_EQ(
      said(),
      folder_ +
          ": there is neither model.safetensors nor model.safetensors.index.json in this folder; fetch the model's weights");
  put("pytorch_model.bin", "PK");
  EXPECT_EQ(said(), folder_ +
                        ": there is neither model.safetensors nor model.safetensors.index.json in this folder; "
                        "convert its pytorch_model.bin to safetensors");
  shard("s1.safetensors", {"a", "b"});
  shard("s2.safetensors", {"c", "unlisted"});
  index(R"({"a":"s1.safetensors","c":"s2.safetensors","b":"s1.safetensors"})");
  for (const std::string& path : {folder_, folder_ + "/", at("model.safetensors.index.json")}) {
    const Result<Safetensors> r = open_safetensors(path);
    ASSERT_TRUE(r) << r.status().sentence();
    EXPECT_EQ(r->tensors.all().size(), 3u);
    EXPECT_EQ(r->find("b")->get(), 1);
    EXPECT_EQ(r->find("c")->get(), 2);
    EXPECT_EQ(r->find("unlisted"), nullptr);
    EXPECT_EQ(r->metadata.get_string("from"), "s1.safetensors");
  }
  shard("model.safetensors", {"whole"});
  EXPECT_EQ(open_safetensors(folder_)->find("whole")->get(), 3);
  EXPECT_EQ(open_safetensors(at("s2.safetensors"))->tensors.all().size(), 2u);
}

TEST_F(ShardFiles, IndexesThatLie) {
  const std::string name = at("model.safetensors.index.json");
  shard("s1.safetensors", {"a"});
  index("{}");
  EXPECT_EQ(said(), name + ": \"weight_map\" names no tensors; fetch the index again");
  index(R"({"a":"s1.safetensors","b":"s1.safetensors"})");
  EXPECT_EQ(said(), at("s1.safetensors") +
                        ": tensor \"b\" is not in this file although the index says so; fetch the index and its shards again");
  index(R"({"a":"s2.safetensors"})");
  EXPECT_EQ(said(), at("s2.safetensors") + ": there is no such file; check the path (" + name + " names it)");
  index(R"({"a":"s1.safetensors","a":"s2.safetensors"})");
  EXPECT_EQ(said(), name + ": line 1, column 57: the key \"a\" stands twice in one object");
  for (const char* outside : {"../s1.safetensors", "/etc/passwd", "..", ".", "", "x/y"}) {
    index(std::string("{\"a\":\"") + outside + "\"}");
    EXPECT_EQ(said(), name + ": tensor \"a\" is said to be in \"" + outside +
                          "\", which is no file name of this folder; fetch the index again");
  }
  index(R"({"a":3})");
  EXPECT_EQ(said(), name + ": tensor \"a\" is said to be in \"3\", which is no file name of this folder; fetch the index again");
  put("model.safetensors.index.json", "{");
  EXPECT_EQ(said(), name + ": line 1, column 2: a quoted member name is missing");
}

}  // namespace
}  // namespace ridge
