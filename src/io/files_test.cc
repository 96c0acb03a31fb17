// The weight files as their enemies write them: every field damaged in turn, each with the exact sentence it must yield.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <limits>
#include <numeric>

#include "base/format.h"
#include "io/gguf.h"
#include "io/gguf_writer.h"
#include "io/mapping.h"
#include "io/new_file.h"
#include "io/test_files.h"

namespace ridge {
namespace {

using Mappings = Files;
using NewFiles = Files;
using GgufFiles = Files;

// root may read and write everything: where tests run as root, permissions are tried as "nobody".
struct WithoutRoot {
  WithoutRoot() {
    if (root && seteuid(65534) != 0) ADD_FAILURE() << "the user cannot be changed";
  }
  ~WithoutRoot() {
    if (root && seteuid(0) != 0) ADD_FAILURE() << "the user cannot be changed back";
  }
  const bool root = geteuid() == 0;
};

// ---- mapping and writing

TEST_F(Mappings, SeeTheBytesOfAFile) {
  Result<Mapping> m = Mapping::open(put("a", "weights"));
  ASSERT_TRUE(m) << m.status().sentence();
  EXPECT_EQ(m->bytes(), "weights");
  Mapping moved = std::move(*m);
  EXPECT_EQ(moved.bytes(), "weights");
  EXPECT_EQ(m->data(), nullptr);
  moved = Mapping();
}

TEST_F(Mappings, SayWhatIsWrongWithAPath) {
  const auto said = [](const std::string& path) { return Mapping::open(path).status().sentence(); };
  EXPECT_EQ(said(at("no")), at("no") + ": there is no such file; check the path");
  EXPECT_EQ(said(put("empty", "")), at("empty") + ": the file is empty; fetch it again");
  EXPECT_EQ(said(put("a", "x") + "/b"), at("a/b") + ": there is no such file; check the path");
  EXPECT_EQ(said(folder_), folder_ + ": this is a folder; name a file");
  ASSERT_EQ(mkfifo(at("pipe").c_str(), 0600), 0);
  EXPECT_EQ(said(at("pipe")), at("pipe") + ": this is not a regular file; name a file on disk");
  EXPECT_EQ(said("/dev/null"), "/dev/null: this is not a regular file; name a file on disk");
  ASSERT_EQ(chmod(at("a").c_str(), 0), 0);
  const WithoutRoot user;
  EXPECT_EQ(said(at("a")), at("a") + ": the file cannot be read; give yourself read permission on it");
}

TEST_F(NewFiles, ReplaceTheOldOneWhole) {
  put("a", "old");
  {
    Result<NewFile> f = NewFile::create(at("a"));
    ASSERT_TRUE(f);
    ASSERT_TRUE(f->write("half of the new"));
  }
  EXPECT_EQ(Mapping::open(at("a"))->bytes(), "old");  // abandoned: nothing changed, nothing left behind
  EXPECT_EQ(count_files(), 1);
  Result<NewFile> f = NewFile::create(at("a"));
  ASSERT_TRUE(f->write("new ") && f->write("text") && f->commit());
  EXPECT_EQ(Mapping::open(at("a"))->bytes(), "new text");
  EXPECT_EQ(count_files(), 1);
}

TEST_F(NewFiles, SayWhyTheyCannotBeWritten) {
  EXPECT_EQ(NewFile::create(at("no/a")).status().sentence(),
            at("no/a") + ": the file cannot be created: its folder does not exist; create it first");
  ASSERT_EQ(chmod(folder_.c_str(), 0500), 0);
  const WithoutRoot user;
  EXPECT_EQ(NewFile::create(at("a")).status().sentence(),
            at("a") + ": the file cannot be created: its folder is not writable; choose another one");
}

TEST_F(NewFiles, SurviveADiskThatTakesNoMore) {
  put("a", "old");
  const auto old_handler = signal(SIGXFSZ, SIG_IGN);
  rlimit old_limit;
  getrlimit(RLIMIT_FSIZE, &old_limit);
  const rlimit small{4096, old_limit.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  Status s;
  {
    Result<NewFile> f = NewFile::create(at("a"));
    ASSERT_TRUE(f);
    s = f->write(std::string(10000, 'x'));
  }
  setrlimit(RLIMIT_FSIZE, &old_limit);
  signal(SIGXFSZ, old_handler);
  EXPECT_EQ(s.sentence(), at("a") + ": the file cannot be written: File too large");
  EXPECT_EQ(Mapping::open(at("a"))->bytes(), "old");
  EXPECT_EQ(count_files(), 1);
}

// ---- GGUF

// Bytes of a file field by field, so that each can lie. Defaults make a valid file of one entry and two tensors.
struct RawTensor {
  std::string name;
  std::vector<uint64_t> extents = {8, 2};  // fastest first
  uint32_t type = 0;
  uint64_t offset = 0;
  int64_t name_length = -1, rank = -1;  // -1: the truth
};
struct RawGguf {
  std::string magic = "GGUF";
  uint32_t version = 3;
  int64_t tensor_count = -1, entry_count = -1;
  std::vector<std::string> entries;
  std::vector<RawTensor> tensors = {{"a"}, {.name = "b", .offset = 64}};
  size_t data = 128;

  static std::string entry(std::string_view key, uint32_t type, std::string_view value) {
    std::string out;
    append(out, uint64_t(key.size()));
    out += key;
    append(out, type);
    return out += value;
  }
  template <class T>
  static std::string number(T x) {
    std::string out;
    append(out, x);
    return out;
  }

  std::string header() const {
    std::string out = magic;
    append(out, version);
    append(out, uint64_t(tensor_count < 0 ? int64_t(tensors.size()) : tensor_count));
    append(out, uint64_t(entry_count < 0 ? int64_t(entries.size()) : entry_count));
    for (const std::string& e : entries) out += e;
    for (const RawTensor& t : tensors) {
      append(out, t.name_length < 0 ? uint64_t(t.name.size()) : uint64_t(t.name_length));
      out += t.name;
      append(out, uint32_t(t.rank < 0 ? int64_t(t.extents.size()) : t.rank));
      for (uint64_t e : t.extents) append(out, e);
      append(out, t.type);
      append(out, t.offset);
    }
    return out;
  }
  std::string bytes() const {
    std::string out = header();
    out.resize((out.size() + 31) / 32 * 32 + data);
    return out;
  }
  std::string said() const {
    const std::string b = bytes();
    const Result<Gguf> r = parse_gguf(b, "m");
    return r ? "accepted" : r.status().sentence();
  }
};

std::string said_with(std::vector<RawTensor> tensors, size_t data = 128) {
  RawGguf g;
  g.tensors = std::move(tensors);
  g.data = data;
  return g.said();
}
std::string said_with_entries(std::vector<std::string> entries, int64_t count = -1) {
  RawGguf g;
  g.entries = std::move(entries);
  g.entry_count = count;
  g.tensors.clear();
  g.data = 0;
  std::string b = g.header();
  const Result<Gguf> r = parse_gguf(b, "m");
  return r ? "accepted" : r.status().sentence();
}

TEST(Gguf, ReadsWhatTheWriterWrote) {
  std::vector<float> x(6);
  std::iota(x.begin(), x.end(), 1.0f);
  const Format& q8 = *format_of(DType::q8_0);
  std::vector<float> rows(2 * 64);
  for (size_t i = 0; i < rows.size(); ++i) rows[i] = float(i) - 60;
  std::vector<char> blocks(size_t(q8.bytes) * 4);
  q8.encode(rows.data(), blocks.data(), int64_t(rows.size()));

  for (uint32_t alignment : {8u, 32u, 4096u}) {
    GgufWriter w(alignment);
    w.set("general.architecture", "llama");
    w.set("u8", uint8_t(200));
    w.set("i8", int8_t(-100));
    w.set("u16", uint16_t(60000));
    w.set("i16", int16_t(-30000));
    w.set("u32", uint32_t(4000000000));
    w.set("i32", int32_t(-2000000000));
    w.set("u64", ~uint64_t(0));
    w.set("i64", int64_t(-5000000000));
    w.set("f32", 0.25f);
    w.set("f64", 0.1);
    w.set("yes", true);
    w.set("tokens", std::vector<std::string>{"a", "", "\xff", "é"});
    w.set("scores", std::vector<float>{0.5f, -1});
    w.set("none", std::vector<int32_t>{});
    w.tensor("x", view_of(x.data(), DType::f32, {3, 2}));
    w.tensor("q", view_of(blocks.data(), DType::q8_0, {2, 64}));
    w.tensor("deep", view_of(x.data(), DType::f32, {1, 2, 3, 1}));
    const std::string bytes = w.bytes();
    const Result<Gguf> g = parse_gguf(bytes, "m");
    ASSERT_TRUE(g) << g.status().sentence();
    const GgufMetadata& m = g->metadata;
    EXPECT_EQ(g->version, 3u);
    EXPECT_EQ(m.get_string("general.architecture"), "llama");
    EXPECT_EQ(m.get_int("u8", 0), 200);
    EXPECT_EQ(m.get_int("i8", 0), -100);
    EXPECT_EQ(m.get_int("u16", 0), 60000);
    EXPECT_EQ(m.get_int("i16", 0), -30000);
    EXPECT_EQ(m.get_int("u32", 0), 4000000000);
    EXPECT_EQ(m.get_int("i32", 0), -2000000000);
    EXPECT_EQ(m.get_int("u64", 7), 7);  // does not fit: the default and not a negative number
    EXPECT_EQ(m.get_number("u64", 7), 0x1p64);
    EXPECT_EQ(m.get_int("i64", 0), -5000000000);
    EXPECT_EQ(m.get_number("f32", 0), 0.25);
    EXPECT_EQ(m.get_number("f64", 0), 0.1);
    EXPECT_TRUE(m.get_bool("yes", false));
    EXPECT_EQ(m.get_int("yes", 3), 3);  // wrong kinds yield the default
    EXPECT_EQ(m.get_int("general.architecture", 3), 3);
    EXPECT_EQ(m.get_int("scores", 3), 3);
    EXPECT_EQ(m.get_strings("tokens"), (std::vector<std::string_view>{"a", "", "\xff", "é"}));
    EXPECT_TRUE(m.get_strings("scores").empty());
    EXPECT_EQ(m.find("scores")->number(1), -1);
    EXPECT_EQ(m.find("scores")->number(2), std::nullopt);
    EXPECT_EQ(m.find("none")->count, 0);
    EXPECT_EQ(m.find("absent"), nullptr);
    const Json json = m.to_json(3);
    EXPECT_EQ(json.get_int("i64", 0), -5000000000);
    EXPECT_EQ(json.find("tokens"), nullptr);
    EXPECT_EQ(to_text(json["scores"]), "[0.5,-1.0]");

    ASSERT_EQ(g->tensors.all().size(), 3u);
    EXPECT_EQ(to_string(*g->find("x")), "f32 [3, 2]");
    EXPECT_EQ(to_string(*g->find("deep")), "f32 [1, 2, 3, 1]");
    EXPECT_EQ(g->find("x")->get(2, 1), 6);
    EXPECT_EQ(g->find("deep")->get(0, 1, 2), 6);
    EXPECT_EQ(memcmp(g->find("q")->data, blocks.data(), blocks.size()), 0);
    EXPECT_EQ((g->find("q")->data - bytes.data()) % alignment, 0);
    EXPECT_EQ(g->find("y"), nullptr);
  }
}

TEST(Gguf, EveryTruncationIsRefused) {
  GgufWriter w;
  const float x[8] = {};
  w.set("general.architecture", "llama");
  w.set("tokens", std::vector<std::string>{"a", "bc"});
  w.set("n", std::vector<int16_t>{1, 2});
  w.tensor("x", view_of(const_cast<float*>(x), DType::f32, {8}));
  w.tensor("y", view_of(const_cast<float*>(x), DType::f32, {8}));
  const std::string bytes = w.bytes();
  ASSERT_TRUE(parse_gguf(bytes, "m"));
  for (size_t n = 0; n < bytes.size(); ++n) {
    const std::string cut = bytes.substr(0, n);  // its own allocation: a sanitizer sees a read behind it
    const Result<Gguf> r = parse_gguf(cut, "m");
    ASSERT_FALSE(r) << n;
    const std::string s = r.status().sentence();
    EXPECT_TRUE(n < 4 || s.find("fetch it again") != s.npos) << n << ": " << s;
  }
  EXPECT_EQ(parse_gguf(bytes.substr(0, 40), "m").status().sentence(),
            "m: the file ends inside the metadata (3 entries are promised); it is incomplete, fetch it again");
}

TEST(Gguf, OtherFilesAreNamed) {
  const auto said = [](std::string_view bytes) { return parse_gguf(bytes, "m").status().sentence(); };
  EXPECT_EQ(said("GGUX...."), "m: this is not a GGUF file (its first bytes are not \"GGUF\")");
  EXPECT_EQ(said("version https://git-lfs.github.com/spec/v1\n"),
            "m: this is a Git LFS pointer and not the file itself; run `git lfs pull`");
  EXPECT_EQ(said("<!doctype html>"), "m: this is a web page; download the file itself");
  EXPECT_EQ(said("PK\3\4"), "m: this is a PyTorch or ZIP archive; convert it to GGUF or safetensors");
  EXPECT_EQ(said("tjgg...."), "m: this is a GGML file from before GGUF; convert the original model again");
  EXPECT_EQ(RawGguf{.version = 1}.said(), "m: GGUF version 1 is not read, versions 2 and 3 are; convert the model again");
  EXPECT_EQ(RawGguf{.version = 4}.said(), "m: GGUF version 4 is not read, versions 2 and 3 are; convert the model again");
  EXPECT_EQ(RawGguf{.version = 0}.said(), "m: GGUF version 0 is not read, versions 2 and 3 are; convert the model again");
  EXPECT_EQ(RawGguf{.version = 3u << 24}.said(), "m: this GGUF file is big-endian; convert it to little-endian first");
  EXPECT_EQ(RawGguf{.version = 2}.said(), "accepted");
  EXPECT_EQ(parse_gguf("GGUX", "m").status().code(), Code::unloadable);
}

TEST(Gguf, CountsThatCannotBe) {
  constexpr int64_t most = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(
      RawGguf{.tensor_count = most}.said(),
      "m: the file ends inside the tensor descriptions (9223372036854775807 are promised); it is incomplete, fetch it again");
  EXPECT_EQ(RawGguf{.tensor_count = 3}.said().substr(0, 9), "m: tensor");  // reads the padding: no name
  EXPECT_EQ(RawGguf{.entry_count = most}.said(),
            "m: the header promises 9223372036854775807 metadata entries, more than the 65536 that are read; the file is "
            "damaged, fetch it again");
  EXPECT_EQ(RawGguf{.entry_count = 60000}.said(),
            "m: the file ends inside the metadata (60000 entries are promised); it is incomplete, fetch it again");
}

TEST(Gguf, MetadataThatLies) {
  const auto u64 = [](uint64_t x) { return RawGguf::number(x); };
  const auto u32 = [](uint32_t x) { return RawGguf::number(x); };
  EXPECT_EQ(said_with_entries({RawGguf::entry("k", 8, u64(5) + "hello")}), "accepted");
  EXPECT_EQ(said_with_entries({RawGguf::entry("k", 8, u64(6) + "hello")}),
            "m: the file ends inside the metadata value \"k\"; it is incomplete, fetch it again");
  EXPECT_EQ(said_with_entries({RawGguf::entry("k", 8, u64(~uint64_t(0)) + "hello")}),
            "m: the file ends inside the metadata value \"k\"; it is incomplete, fetch it again");
  EXPECT_EQ(said_with_entries({u64(~uint64_t(7)) + "key and more"}),
            "m: the file ends inside the key of metadata entry 0; it is incomplete, fetch it again");
  EXPECT_EQ(said_with_entries({RawGguf::entry("", 4, u32(1) + "....")}),
            "m: metadata entry 0 has no key; the file is damaged, fetch it again");
  EXPECT_EQ(said_with_entries({RawGguf::entry("k", 13, "........")}),
            "m: the metadata value \"k\" has the unknown type 13; the file is damaged, fetch it again");
  EXPECT_EQ(said_with_entries({RawGguf::entry("k", 9, u32(99) + u64(1) + ".")}),
            "m: the metadata value \"k\" has the unknown type 99; the file is damaged, fetch it again");
  EXPECT_EQ(said_with_entries({RawGguf::entry("k", 9, u32(9) + u64(1) + u32(4) + u64(0))}),
            "m: the metadata value \"k\" is an array of arrays, which is not read; convert the model again");
  EXPECT_EQ(said_with_entries({RawGguf::entry("k", 9, u32(4) + u64(uint64_t(1) << 62) + u32(1))}),
            "m: the file ends inside the metadata value \"k\" of 4611686018427387904 elements; it is incomplete, fetch it again");
  EXPECT_EQ(said_with_entries({RawGguf::entry("k", 9, u32(8) + u64(3) + u64(0) + u64(0))}),
            "m: the file ends inside the metadata value \"k\" of 3 elements; it is incomplete, fetch it again");
  EXPECT_EQ(said_with_entries({RawGguf::entry("k", 9, u32(8) + u64(2) + u64(0) + u64(9))}),
            "m: the file ends inside the metadata value \"k\"; it is incomplete, fetch it again");
  EXPECT_EQ(said_with_entries({RawGguf::entry("k", 4, u32(1)), RawGguf::entry("l", 4, u32(1)), RawGguf::entry("k", 8, u64(0))}),
            "m: the metadata key \"k\" stands twice; the file is damaged, fetch it again");
  EXPECT_EQ(said_with_entries({RawGguf::entry("\x1b[31m\xff", 13, "........")}),
            "m: the metadata value \"\\u001b[31m\uFFFD\" has the unknown type 13; the file is damaged, fetch it again");
  EXPECT_EQ(said_with_entries({RawGguf::entry(std::string(5000, 'k'), 13, "........")}),
            std::string("m: the metadata value \"") + std::string(80, 'k') +
                "...\" has the unknown type 13; the file is damaged, fetch it again");
}

TEST(Gguf, AlignmentsThatCannotBe) {
  const auto with = [](uint32_t type, std::string value) {
    return said_with_entries({RawGguf::entry("general.alignment", type, value)});
  };
  const std::string must = "m: \"general.alignment\" must be a power of two from 8 to 65536";
  const std::string fix = "; the file is damaged, fetch it again";
  EXPECT_EQ(with(4, RawGguf::number(uint32_t(64))), "accepted");
  EXPECT_EQ(with(4, RawGguf::number(uint32_t(48))), must + " and not 48" + fix);
  EXPECT_EQ(with(4, RawGguf::number(uint32_t(0))), must + " and not 0" + fix);
  EXPECT_EQ(with(4, RawGguf::number(uint32_t(4))), must + " and not 4" + fix);
  EXPECT_EQ(with(4, RawGguf::number(uint32_t(1) << 31)), must + " and not 2147483648" + fix);
  EXPECT_EQ(with(5, RawGguf::number(int32_t(-32))), must + " and not -32" + fix);
  EXPECT_EQ(with(8, RawGguf::number(uint64_t(2)) + "32"), must + fix);
  EXPECT_EQ(with(9, RawGguf::number(uint32_t(4)) + RawGguf::number(uint64_t(1)) + RawGguf::number(uint32_t(32))), must + fix);
}

TEST(Gguf, TensorsThatLie) {
  const std::string damaged = "; the file is damaged, fetch it again", incomplete = "; it is incomplete, fetch it again";
  EXPECT_EQ(said_with({{"a"}, {.name = "b", .offset = 64}}), "accepted");
  EXPECT_EQ(said_with({{.name = "a", .name_length = int64_t(1) << 60}}),
            "m: the file ends inside the name of tensor 0" + incomplete);
  EXPECT_EQ(said_with({{""}}), "m: tensor 0 has no name" + damaged);
  EXPECT_EQ(said_with({{.name = "a", .rank = 5}}), "m: tensor \"a\" has 5 dimensions, 1 to 4 are possible" + damaged);
  EXPECT_EQ(said_with({{.name = "a", .rank = 0}}), "m: tensor \"a\" has 0 dimensions, 1 to 4 are possible" + damaged);
  EXPECT_EQ(said_with({{.name = "a", .rank = 0xffffffff}}),
            "m: tensor \"a\" has 4294967295 dimensions, 1 to 4 are possible" + damaged);
  EXPECT_EQ(said_with({{"a", {8, 0}}}), "m: tensor \"a\" has a dimension of 0" + damaged);
  EXPECT_EQ(said_with({{"a", {0}}}), "m: tensor \"a\" has a dimension of 0" + damaged);
  EXPECT_EQ(said_with({{"a", {~uint64_t(0), 2}}}), "m: tensor \"a\" has an absurd dimension of 18446744073709551615" + damaged);
  EXPECT_EQ(said_with({{"a", {uint64_t(1) << 61, uint64_t(1) << 61, 16}}}),
            "m: tensor \"a\" is larger than any memory" + damaged);
  EXPECT_EQ(said_with({{"a", {uint64_t(1) << 33, uint64_t(1) << 31}}}), "m: tensor \"a\" is larger than any memory" + damaged);
  EXPECT_EQ(said_with({{"a", {uint64_t(1) << 32, uint64_t(1) << 32}, 2}}), "m: tensor \"a\" is larger than any memory" + damaged);
  EXPECT_EQ(said_with({{"a", {48, 2}, 2}}),
            "m: tensor \"a\" has rows of 48 values, which is no whole number of Q4_0 blocks of 32" + damaged);
  EXPECT_EQ(said_with({{"a", {128}, 12}}),
            "m: tensor \"a\" has rows of 128 values, which is no whole number of Q4_K blocks of 256" + damaged);
  EXPECT_EQ(said_with({{.name = "a", .offset = 4}}),
            "m: tensor \"a\" starts at offset 4, which is no multiple of the alignment 32" + damaged);
  EXPECT_EQ(said_with({{"a"}}, 63),
            "m: tensor \"a\" takes 64 bytes from offset 0, past the end of the 63 bytes of tensor data; "
            "the file is incomplete, fetch it again");
  EXPECT_EQ(said_with({{.name = "a", .offset = 96}}),
            "m: tensor \"a\" takes 64 bytes from offset 96, past the end of the 128 bytes of tensor data; "
            "the file is incomplete, fetch it again");
  EXPECT_EQ(said_with({{.name = "a", .offset = ~uint64_t(31)}}),
            "m: tensor \"a\" takes 64 bytes from offset 18446744073709551584, past the end of the 128 bytes of tensor data; "
            "the file is incomplete, fetch it again");
  EXPECT_EQ(said_with({{.name = "b", .offset = 32}, {"a"}}), "m: tensors \"a\" and \"b\" share bytes" + damaged);
  EXPECT_EQ(said_with({{"a"}, {"b"}}).substr(0, 12), "m: tensors \"");
  EXPECT_EQ(said_with({{"a"}, {.name = "a", .offset = 64}}), "m: two tensors are named \"a\"" + damaged);
}

TEST(Gguf, UnknownQuantisationIsNamedWithWhatIsRead) {
  std::string fix = ", which is not supported; use a file made of F32, F16, BF16, F64, I32, I64";
  for (DType t : block_types()) fix += std::string(", ") + name_of(t);
  EXPECT_EQ(said_with({{"blk.0.ffn_up.weight", {256}, 23}}), "m: tensor \"blk.0.ffn_up.weight\" is stored as IQ4_XS" + fix);
  EXPECT_EQ(said_with({{"a", {256}, 39}}), "m: tensor \"a\" is stored as MXFP4" + fix);
  EXPECT_EQ(said_with({{"a", {256}, 4}}), "m: tensor \"a\" is stored as type 4" + fix);
  EXPECT_EQ(said_with({{"a", {256}, 4000000000}}), "m: tensor \"a\" is stored as type 4000000000" + fix);
  for (int t = 0; t < int(DType::count); ++t)  // the numbers of both directions agree
    if (const auto number = gguf_of_dtype(DType(t))) {
      EXPECT_EQ(dtype_of_gguf(*number), DType(t));
      EXPECT_STRCASEEQ(gguf_type_name(*number).c_str(), name_of(DType(t)));
    }
}

TEST_F(GgufFiles, MappedTensorsOutliveTheResult) {
  std::vector<float> x(1024, 2.5f);
  GgufWriter w;
  w.set("general.name", "tiny");
  w.tensor("x", view_of(x.data(), DType::f32, {1024}));
  ASSERT_TRUE(w.write(at("m.gguf")));
  EXPECT_EQ(Mapping::open(at("m.gguf"))->bytes(), w.bytes());
  EXPECT_EQ(count_files(), 1);
  Tensors tensors;
  GgufMetadata metadata;
  {
    Result<Gguf> g = open_gguf(at("m.gguf"));
    ASSERT_TRUE(g) << g.status().sentence();
    tensors = g->tensors;
    metadata = g->metadata;
  }
  EXPECT_EQ(tensors.find("x")->get(1023), 2.5);
  EXPECT_EQ(tensors.bytes(), 4096);
  EXPECT_EQ(metadata.get_string("general.name"), "tiny");
  EXPECT_EQ(open_gguf(put("z.gguf", "")).status().sentence(), at("z.gguf") + ": the file is empty; fetch it again");
}

class SplitFiles : public Files {
 protected:
  // Part `no` of `of`, one tensor each, as a splitting tool writes them: model metadata in the first part only.
  void part(const std::string& name, uint16_t no, uint16_t of, int32_t total, const std::string& tensor) {
    GgufWriter w;
    if (no == 0) w.set("general.architecture", "llama");
    w.set("split.no", no);
    w.set("split.count", of);
    w.set("split.tensors.count", total);
    values_[no] = 10.0f + float(no);
    w.tensor(tensor, view_of(&values_[no], DType::f32, {1}));
    ASSERT_TRUE(w.write(at(name)));
  }
  std::string said(const std::string& name) const { return open_gguf(at(name)).status().sentence(); }
  float values_[8];
};

TEST_F(SplitFiles, OpenFromAnyPart) {
  for (uint16_t i = 0; i < 3; ++i)
    part(std::string("m-0000") + char('1' + i) + "-of-00003.gguf", i, 3, 3, std::string("t") + char('0' + i));
  for (const char* name : {"m-00001-of-00003.gguf", "m-00002-of-00003.gguf", "m-00003-of-00003.gguf"}) {
    const Result<Gguf> g = open_gguf(at(name));
    ASSERT_TRUE(g) << g.status().sentence();
    EXPECT_EQ(g->metadata.get_string("general.architecture"), "llama");
    EXPECT_EQ(g->tensors.all().size(), 3u);
    for (int i = 0; i < 3; ++i) EXPECT_EQ(g->find(std::string("t") + char('0' + i))->get(0), 10 + i);
  }
}

TEST_F(SplitFiles, PartsThatDoNotFitAreNamed) {
  part("m-00001-of-00002.gguf", 0, 2, 2, "t");
  EXPECT_EQ(said("m-00001-of-00002.gguf"), at("m-00002-of-00002.gguf") +
                                               ": there is no such file; check the path "
                                               "(all 2 parts must be there, in one folder)");
  part("m-00002-of-00002.gguf", 1, 2, 2, "t");
  EXPECT_EQ(said("m-00001-of-00002.gguf"),
            at("m-00001-of-00002.gguf") + ": two tensors are named \"t\"; the file is damaged, fetch it again");
  part("m-00002-of-00002.gguf", 0, 2, 2, "u");
  EXPECT_EQ(said("m-00001-of-00002.gguf"), at("m-00002-of-00002.gguf") +
                                               ": its metadata says split.no 0 and split.count 2, "
                                               "which does not fit its name; fetch the parts again");
  part("m-00001-of-00002.gguf", 0, 2, 9, "t");
  part("m-00002-of-00002.gguf", 1, 2, 9, "u");
  EXPECT_EQ(said("m-00001-of-00002.gguf"),
            at("m-00001-of-00002.gguf") + ": the parts hold 2 tensors but 9 are promised; fetch the parts again");
  part("renamed.gguf", 0, 2, 2, "t");
  EXPECT_EQ(said("renamed.gguf"), at("renamed.gguf") +
                                      ": this is one of 2 parts, but it is not named like MODEL-00001-of-00002.gguf; "
                                      "give the parts their names back");
  part("m-00001-of-00003.gguf", 0, 2, 2, "t");
  EXPECT_EQ(said("m-00001-of-00003.gguf").find("it is not named like MODEL-00001-of-00002.gguf") != std::string::npos, true);
}

}  // namespace
}  // namespace ridge
