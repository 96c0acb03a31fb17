// What the tests of the binary share: a program that is started, fed, signalled and waited for, within a time limit; and a tiny
// random llama with a byte-level vocabulary, as a GGUF file and as an HF folder of the same weights. For tests only.
#pragma once
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <map>

#include "base/arena.h"
#include "base/rng.h"
#include "device/isa.h"
#include "device/topology.h"
#include "io/gguf_writer.h"
#include "io/json.h"
#include "io/safetensors.h"
#include "io/test_files.h"
#include "meter/measure.h"

namespace ridge {

using Words = std::vector<std::string>;

// ---- a program

struct Outcome {
  int code = -1;  // 128 + signal as a shell says it; -1: it did not end in time
  std::string out, err;
};

class Program {
 public:
  struct Options {
    std::map<std::string, std::string> environment;  // set beside the test's own
    std::string out_file;                            // stdout goes there
    bool ask = false;                                // stdin stays open for say(); otherwise it is empty
    bool ignore_pipe = false;                        // started by a parent that ignores SIGPIPE
    bool closed = false;                             // stdout is closed
    bool terminal = false;                           // stdin and stdout are a terminal of its own; say() types
  };
  static constexpr double kLimit = 100;  // seconds: sanitizer builds on busy machines are slow

  Program(Words words, const Options& o) {
    int in[2], out[2], err[2];
    if (pipe2(in, O_CLOEXEC) || pipe2(out, O_CLOEXEC) || pipe2(err, O_CLOEXEC)) abort();
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_adddup2(&files, in[0], 0);
    if (o.closed)
      posix_spawn_file_actions_addclose(&files, 1);
    else if (o.terminal)
      open_terminal(files);
    else if (o.out_file.empty())
      posix_spawn_file_actions_adddup2(&files, out[1], 1);
    else
      posix_spawn_file_actions_addopen(&files, 1, o.out_file.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
    posix_spawn_file_actions_adddup2(&files, err[1], 2);
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    signal(SIGPIPE, SIG_IGN);  // for say(); the program gets the default back
    sigset_t pipe_signal;
    sigemptyset(&pipe_signal);
    if (!o.ignore_pipe) sigaddset(&pipe_signal, SIGPIPE);
    posix_spawnattr_setsigdefault(&attributes, &pipe_signal);
    posix_spawnattr_setflags(&attributes, short(POSIX_SPAWN_SETSIGDEF | (o.terminal ? POSIX_SPAWN_SETSID : 0)));
    words.insert(words.begin(), RIDGE_BINARY);
    Words variables;
    for (char** e = environ; *e; ++e)
      if (const std::string v = *e; !o.environment.contains(v.substr(0, v.find('=')))) variables.push_back(v);
    for (const auto& [name, value] : o.environment) variables.push_back(name + "=" + value);
    if (posix_spawn(&pid_, RIDGE_BINARY, &files, &attributes, pointers(words).data(), pointers(variables).data()) != 0) abort();
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attributes);
    close(in[0]), close(out[1]), close(err[1]);
    err_ = err[0];
    if (o.terminal)
      close(in[1]), close(out[0]);
    else
      in_ = in[1], out_ = out[0];
    if (!o.ask) end_input();
  }
  Program(const Program&) = delete;
  ~Program() { wait(); }

  void say(const std::string& text) const { EXPECT_EQ(write(in_, text.data(), text.size()), ssize_t(text.size())); }
  void end_input() { shut(in_); }
  void close_output() { shut(out_); }  // as `head` does when it has seen enough
  void send(int signal) const { kill(pid_, signal); }

  // Waits until stdout holds the text, or so many bytes; false when the program ends or the limit is reached before.
  bool printed(const std::string& text) {
    return read_until([&] { return r_.out.find(text) != std::string::npos; });
  }
  bool printed(size_t bytes) {
    return read_until([&] { return r_.out.size() >= bytes; });
  }
  // Waits until the program has taken all that was said: then it is past its start, and what it does with it comes next.
  bool taken() const {
    for (int unread = 1; seconds() < kLimit; usleep(500))
      if (ioctl(in_, FIONREAD, &unread) == 0 && unread == 0) return true;
    return false;
  }

  const Outcome& wait() {
    if (pid_ == 0) return r_;
    end_input();
    read_until([] { return false; });
    int status = 0;
    while (waitpid(pid_, &status, WNOHANG) == 0) {
      if (seconds() > kLimit) send(SIGKILL);
      usleep(500);
    }
    if (seconds() < kLimit) r_.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    shut(out_), shut(err_);
    pid_ = 0;
    return r_;
  }

 private:
  static std::vector<char*> pointers(Words& words) {
    std::vector<char*> list;
    for (std::string& w : words) list.push_back(w.data());
    list.push_back(nullptr);
    return list;
  }
  // The leader of a session that opens a terminal is its owner: Ctrl-C reaches it.
  void open_terminal(posix_spawn_file_actions_t& files) {
    in_ = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (in_ < 0 || grantpt(in_) || unlockpt(in_)) abort();
    out_ = fcntl(in_, F_DUPFD_CLOEXEC, 0);
    posix_spawn_file_actions_addopen(&files, 0, ptsname(in_), O_RDWR, 0);
    posix_spawn_file_actions_adddup2(&files, 0, 1);
  }
  static void shut(int& fd) {
    if (fd >= 0) close(fd);
    fd = -1;
  }
  double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - started_).count(); }

  template <class F>
  bool read_until(F&& enough) {
    while (!enough() && (out_ >= 0 || err_ >= 0) && seconds() < kLimit) {
      pollfd files[2] = {{out_, POLLIN, 0}, {err_, POLLIN, 0}};
      if (poll(files, 2, 100) <= 0) continue;
      take(files[0], out_, r_.out);
      take(files[1], err_, r_.err);
    }
    return enough();
  }
  static void take(const pollfd& ready, int& fd, std::string& to) {
    if (fd < 0 || !ready.revents) return;
    char buffer[1 << 16];
    const ssize_t n = read(fd, buffer, sizeof buffer);
    if (n > 0)
      to.append(buffer, size_t(n));
    else
      shut(fd);
  }

  pid_t pid_ = 0;
  int in_ = -1, out_ = -1, err_ = -1;
  Outcome r_;
  std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
};

inline Outcome ridgeline(const Words& words, const Program::Options& options = {}) { return Program(words, options).wait(); }

// The one document on stdout of a verb that must succeed.
inline Json json_of(Words words, const Program::Options& options = {}) {
  words.push_back("--json");
  const Outcome r = ridgeline(words, options);
  EXPECT_EQ(r.code, 0) << r.err;
  Result<Json> json = parse_json(r.out, "stdout", kRequestJson);
  EXPECT_TRUE(json.ok()) << json.status().sentence() << r.out;
  return json.ok() ? std::move(*json) : Json();
}

inline Words keys_of(const Json& object) {
  Words keys;
  for (const Json::Member& m : object.members()) keys.push_back(m.key);
  return keys;
}

// ---- a tiny model

struct TinyOptions {
  int64_t vocab = 266;  // rows of the embedding; the tokenizer has 266 tokens
  int64_t dim = 32, layers = 2, heads = 2, kv_heads = 1, head_dim = 16, ffn = 64;
  int64_t context = 256;
  bool tokenizer = true;
  std::string architecture = "llama", chat_template = "{% for m in messages %}{{ m.content }}{% endfor %}";
  int32_t eos = 265;  // <|end|>
};

class TinyModel {
 public:
  explicit TinyModel(TinyOptions options = {}) : o(std::move(options)), memory_(16 << 20) {
    auto add = [&](const std::string& gguf, const std::string& hf, std::initializer_list<int64_t> dims, bool pairs = false) {
      const View v = memory_.alloc(dims, DType::f32);
      const bool norm = v.rank == 1;
      const double width = norm ? 0.3 : 1.7 / std::sqrt(double(v.dims[1]));
      for (int64_t i = 0; i < v.count(); ++i)
        v.as<float>()[i] =
            float((norm ? 1 : 0) + width * (2 * uniform({.seed = 3, .op = uint32_t(weights_.size())}, uint64_t(i)) - 1));
      weights_.push_back({gguf, hf, v, pairs ? adjacent_pairs(v) : v});
    };
    add("token_embd.weight", "model.embed_tokens.weight", {o.vocab, o.dim});
    for (int64_t i = 0; i < o.layers; ++i) {
      const std::string g = "blk." + std::to_string(i) + ".", h = "model.layers." + std::to_string(i) + ".";
      add(g + "attn_norm.weight", h + "input_layernorm.weight", {o.dim});
      add(g + "attn_q.weight", h + "self_attn.q_proj.weight", {o.heads * o.head_dim, o.dim}, true);
      add(g + "attn_k.weight", h + "self_attn.k_proj.weight", {o.kv_heads * o.head_dim, o.dim}, true);
      add(g + "attn_v.weight", h + "self_attn.v_proj.weight", {o.kv_heads * o.head_dim, o.dim});
      add(g + "attn_output.weight", h + "self_attn.o_proj.weight", {o.dim, o.heads * o.head_dim});
      add(g + "ffn_norm.weight", h + "post_attention_layernorm.weight", {o.dim});
      add(g + "ffn_gate.weight", h + "mlp.gate_proj.weight", {o.ffn, o.dim});
      add(g + "ffn_up.weight", h + "mlp.up_proj.weight", {o.ffn, o.dim});
      add(g + "ffn_down.weight", h + "mlp.down_proj.weight", {o.dim, o.ffn});
    }
    add("output_norm.weight", "model.norm.weight", {o.dim});
    make_vocabulary();
  }

  std::string gguf() const {
    GgufWriter w;
    const std::string a = o.architecture + ".";
    w.set("general.architecture", o.architecture);
    w.set(a + "embedding_length", uint32_t(o.dim));
    w.set(a + "block_count", uint32_t(o.layers));
    w.set(a + "attention.head_count", uint32_t(o.heads));
    w.set(a + "attention.head_count_kv", uint32_t(o.kv_heads));
    w.set(a + "attention.key_length", uint32_t(o.head_dim));
    w.set(a + "attention.value_length", uint32_t(o.head_dim));
    w.set(a + "feed_forward_length", uint32_t(o.ffn));
    w.set(a + "context_length", uint32_t(o.context));
    w.set(a + "attention.layer_norm_rms_epsilon", 1e-5f);
    if (o.tokenizer) {
      w.set("tokenizer.ggml.model", "gpt2");
      w.set("tokenizer.ggml.pre", "gpt-2");
      w.set("tokenizer.ggml.tokens", tokens_);
      w.set("tokenizer.ggml.merges", merges_);
      std::vector<int32_t> types(tokens_.size(), 1);
      types.back() = 3;
      w.set("tokenizer.ggml.token_type", types);
      w.set("tokenizer.ggml.eos_token_id", uint32_t(o.eos));
      w.set("tokenizer.ggml.add_bos_token", false);
      w.set("tokenizer.chat_template", o.chat_template);
    }
    for (const Weight& t : weights_) w.tensor(t.gguf, t.permuted);
    return w.bytes();
  }

  Json config() const {
    Json c = Json::object({{"architectures", Json(Json::Array{"LlamaForCausalLM"})},
                           {"model_type", "llama"},
                           {"vocab_size", o.vocab},
                           {"hidden_size", o.dim},
                           {"num_hidden_layers", o.layers},
                           {"num_attention_heads", o.heads},
                           {"num_key_value_heads", o.kv_heads},
                           {"intermediate_size", o.ffn},
                           {"max_position_embeddings", o.context},
                           {"rms_norm_eps", 1e-5},
                           {"hidden_act", "silu"},
                           {"tie_word_embeddings", true},
                           {"torch_dtype", "float32"}});
    if (o.head_dim * o.heads != o.dim) c.set("head_dim", o.head_dim);
    return c;
  }

  Json tokenizer_json() const {
    Json vocab = Json::object();
    for (size_t i = 0; i + 1 < tokens_.size(); ++i) vocab.append(tokens_[i], int64_t(i));
    const Json end = Json::object({{"id", int64_t(tokens_.size() - 1)}, {"content", tokens_.back()}, {"special", true}});
    return Json::object(
        {{"added_tokens", Json(Json::Array{end})},
         {"normalizer", nullptr},
         {"pre_tokenizer", Json::object({{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", true}})},
         {"model", Json::object({{"type", "BPE"}, {"vocab", std::move(vocab)}, {"merges", Json(merges_)}})}});
  }

  std::string safetensors() const {
    SafetensorsWriter w;
    for (const Weight& t : weights_) w.tensor(t.hf, t.view);
    return w.bytes();
  }

  const TinyOptions o;

 private:
  struct Weight {
    std::string gguf, hf;
    View view, permuted;  // HF turns halves of a head, GGUF adjacent pairs
  };

  View adjacent_pairs(const View& v) {  // [heads * head_dim, dim]
    const View p = memory_.alloc({v.dims[0], v.dims[1]}, v.type);
    for (int64_t row = 0; row < v.dims[0]; ++row) {
      const int64_t head = row / o.head_dim * o.head_dim, i = row % o.head_dim;
      for (int64_t j = 0; j < v.dims[1]; ++j) p.set(v.get(head + i % 2 * (o.head_dim / 2) + i / 2, j), row, j);
    }
    return p;
  }

  // 256 bytes in GPT-2's alphabet, nine merges, <|end|>.
  void make_vocabulary() {
    uint32_t next = 256;
    for (uint32_t byte = 0; byte < 256; ++byte) {
      const bool plain = (byte >= 33 && byte <= 126) || (byte >= 161 && byte != 173);
      const uint32_t c = plain ? byte : next++;
      tokens_.push_back(c < 128 ? std::string(1, char(c)) : std::string{char(0xC0 | c >> 6), char(0x80 | (c & 63))});
    }
    for (const char* pair : {"h e", "l l", "t h", "th e", "Ġ t", "i n", "e r", "o n", "a n"}) {
      merges_.push_back(pair);
      std::string joined = pair;
      joined.erase(joined.find(' '), 1);
      tokens_.push_back(joined);
    }
    tokens_.push_back("<|end|>");
  }

  Arena memory_;
  std::vector<Weight> weights_;
  Words tokens_, merges_;
};

// ---- tests

// A folder for the files of a test. The ceilings of this machine lie in a cache, so that no program measures them (three seconds).
class Cli : public Files {
 protected:
  static void SetUpTestSuite() {
    std::string folder = testing::TempDir() + "ridge_cache_XXXXXX";
    ASSERT_NE(mkdtemp(folder.data()), nullptr);
    cache() = folder;
    setenv("XDG_CACHE_HOME", folder.c_str(), 1);
    for (int isa = 0; isa <= int(detect_isa()); ++isa)
      for (int threads : {1, 2, default_threads()}) {
        Machine m = nominal_machine(cpu_model(), isa_name(Isa(isa)), threads);
        m.measured = true;
        ASSERT_TRUE(write_machine(m, machine_path(Isa(isa), threads)).ok());
      }
  }
  static void TearDownTestSuite() { ASSERT_EQ(system(("rm -rf '" + cache() + "'").c_str()), 0); }
  void SetUp() override {
    Files::SetUp();
    setenv("XDG_STATE_HOME", at("state").c_str(), 1);
    unsetenv("RIDGE_LOG");
  }
  static std::string& cache() {
    static std::string folder;
    return folder;
  }
  std::string tiny(const TinyOptions& options = {}) const { return put("tiny.gguf", TinyModel(options).gguf()); }
  std::string hf(const TinyOptions& options = {}) const {
    const TinyModel m(options);
    mkdir(at("hf").c_str(), 0755);
    put("hf/config.json", to_text(m.config(), 2));
    put("hf/tokenizer.json", to_text(m.tokenizer_json()));
    put("hf/model.safetensors", m.safetensors());
    return at("hf");
  }

  // Bad input: the code, nothing on stdout, and one sentence on stderr that holds the words.
  static void refused(const Outcome& r, int code, const Words& says) {
    EXPECT_EQ(r.code, code) << r.err;
    EXPECT_EQ(r.out, "") << "nothing may look like a result";
    EXPECT_EQ(std::count(r.err.begin(), r.err.end(), '\n'), 1) << r.err;
    EXPECT_TRUE(r.err.starts_with("ridgeline: ")) << r.err;
    for (const std::string& words : says) EXPECT_THAT(r.err, testing::HasSubstr(words));
  }
};

}  // namespace ridge
