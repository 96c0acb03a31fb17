// A real model against PyTorch in fp32: SmolLM2-135M-Instruct (Q4_1) over the 16 texts of model/goldens/texts.txt, 2,306 positions.
// The file is the one that `make test` fetches.
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <new>

#include "io/safetensors.h"
#include "io/tokenizer_load.h"
#include "model/plan.h"
#include "serve/generator.h"
#include "serve/score.h"

// Counts what this program takes from the heap.
namespace {
std::atomic<int64_t> heap_allocations{0};
}
[[gnu::noinline]] void* operator new(size_t n) {
  ++heap_allocations;
  if (void* p = malloc(n)) return p;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* p) noexcept { free(p); }
[[gnu::noinline]] void operator delete(void* p, size_t) noexcept { free(p); }

namespace ridge {
namespace {

std::string model_path() {
  const char* cache = getenv("XDG_CACHE_HOME");
  const std::string folder = cache && *cache ? cache : std::string(getenv("HOME")) + "/.cache";
  return folder + "/ridgeline/models/SmolLM2-135M-Instruct.Q4_1.gguf";
}

struct SmolLm2 {
  Source source;
  Model model, woven;  // as in the file; as it is loaded to be run
  SmolLm2() {
    Result<Source> s = open_source(model_path());
    if (!s) {
      ADD_FAILURE() << s.status().sentence() << " `make test` fetches it.";
      exit(1);
    }
    source = *s;
    model = *load_model(source);
    woven = *load_model(source, {.woven = true});
  }
};

SmolLm2& smollm2() {
  static SmolLm2 m;
  return m;
}

struct Difference {
  int64_t positions = 0, top1_equal = 0;
  double kl = 0, worst_logit = 0;  // mean, over the golden's 16 largest and the rest as one outcome; absolute
};

Difference compare(const Model& model, Isa isa, DType kv_type, bool fast = false) {
  const Safetensors golden = *open_safetensors(std::string(RIDGE_SOURCE_DIR) + "/src/model/goldens/smollm2.safetensors");
  const View ids = *golden.find("ids"), lengths = *golden.find("lengths"), lse = *golden.find("lse");
  const View top_ids = *golden.find("top_ids"), top_logits = *golden.find("top_logits");
  const View probe_ids = *golden.find("probe_ids"), probe_logits = *golden.find("probe_logits");
  Runtime runtime(2, isa);
  runtime.fast_activations = fast;
  auto runner = *Runner::make(model, runtime, {.context = 256, .step_tokens = 128, .step_rows = 128, .kv_type = kv_type});
  Difference d;
  int64_t from = 0;
  for (int64_t text = 0; text < lengths.count(); ++text) {
    const int64_t n = int64_t(lengths.get(text));
    Result<Score> s = score(*runner, {ids.as<int32_t>(from), size_t(n)}, [&](int64_t position, std::span<const float> logits) {
      const int64_t row = from + position;
      double top = -INFINITY, sum = 0;
      for (float l : logits) top = std::max(top, double(l));
      for (float l : logits) sum += std::exp(l - top);
      const double ours = top + std::log(sum), theirs = lse.get(row);
      double p_rest = 1, q_rest = 1, kl = 0;
      for (int64_t k = 0; k < top_ids.dims[1]; ++k) {
        const double logit = logits[int64_t(top_ids.get(row, k))], expected = top_logits.get(row, k);
        const double log_p = expected - theirs, log_q = logit - ours, p = std::exp(log_p);
        kl += p * (log_p - log_q);
        p_rest -= p, q_rest -= std::exp(log_q);
        d.worst_logit = std::max(d.worst_logit, std::abs(logit - expected));
      }
      if (p_rest > 1e-9 && q_rest > 1e-9) kl += p_rest * std::log(p_rest / q_rest);
      for (int64_t k = 0; k < probe_ids.count(); ++k)
        d.worst_logit = std::max(d.worst_logit, std::abs(logits[int64_t(probe_ids.get(k))] - probe_logits.get(row, k)));
      d.kl += kl;
      d.top1_equal += logits[int64_t(top_ids.get(row, 0))] == top;
      ++d.positions;
    });
    EXPECT_TRUE(s.ok());
    from += n;
  }
  d.kl /= double(d.positions);
  printf("%s%s, cache %s: worst logit %.2e, top-1 equal %.2f %%, mean KL %.2e over %ld positions\n", isa_name(isa),
         fast ? " fast" : "", name_of(kv_type), d.worst_logit, 100.0 * double(d.top1_equal) / double(d.positions), d.kl,
         long(d.positions));
  return d;
}

TEST(SmolLm2, TheFp32PathEqualsPyTorch) {
  const Difference d = compare(smollm2().model, std::min(active_isa(), Isa::avx512), DType::f32);
  EXPECT_GE(d.positions, 2000);
  EXPECT_LE(d.worst_logit, 1e-3);
  EXPECT_GE(double(d.top1_equal) / double(d.positions), 0.999);
}

TEST(SmolLm2, TheDefaultRowsStayWithinTheirBudget) {
  const Difference d = compare(smollm2().woven, active_isa(), DType::f16);
  EXPECT_GE(double(d.top1_equal) / double(d.positions), 0.99);
  EXPECT_LE(d.kl, 5e-5);  // a quarter of the budget of 2e-4
}

// The rows of a machine without AMX are exact whole-number products: closer still.
TEST(SmolLm2, RowsWithoutTilesAreNearlyF32) {
  const Difference d = compare(smollm2().woven, std::min(active_isa(), Isa::vnni), DType::f16);
  EXPECT_GE(double(d.top1_equal) / double(d.positions), 0.998);
  EXPECT_LE(d.kl, 2e-6);
}

// 8-bit activations: a few parts in a thousand, the price that --activations fast states.
TEST(SmolLm2, FastActivationsCostWhatTheySay) {
  if (active_isa() < Isa::vnni) GTEST_SKIP() << "this machine has no vnni";
  const Difference d = compare(smollm2().woven, Isa::vnni, DType::f16, true);
  EXPECT_GE(double(d.top1_equal) / double(d.positions), 0.93);
  EXPECT_LE(d.kl, 1e-2);
  EXPECT_GE(d.kl, 1e-4) << "fast rows did not run";
}

TEST(SmolLm2, AnInt8CacheCostsWhatItsDocumentationSays) {
  const Difference d = compare(smollm2().woven, active_isa(), DType::q8_0);
  EXPECT_GE(double(d.top1_equal) / double(d.positions), 0.98);
  EXPECT_LE(d.kl, 1e-3);
}

TEST(SmolLm2, SeveralSequencesAnswerAsEachDoesAlone) {
  SmolLm2& m = smollm2();
  Tokenizer t = *tokenizer_from_gguf(*m.source.gguf);
  const char* prompts[] = {"<|im_start|>user\nWhat is the capital of France?<|im_end|>\n<|im_start|>assistant\n",
                           "<|im_start|>user\nName three colours.<|im_end|>\n<|im_start|>assistant\n", "Once upon a time"};
  Runtime runtime(2);
  auto run = [&](std::vector<std::string> texts) {
    auto runner = *Runner::make(m.woven, runtime, {.context = 128, .sequences = 3, .step_tokens = 16});
    Generator g(*runner, t.end_ids());
    std::vector<std::vector<int32_t>> answers(texts.size());
    for (const std::string& text : texts)
      EXPECT_TRUE(g.submit({.ids = t.encode(text, {.parse_special = true}), .max_tokens = 24}).ok());
    while (!g.idle())
      for (const Generated& s : g.step()) answers[s.request].push_back(s.id);
    EXPECT_EQ(runner->pool().free_pages(), 3 * 4);
    return answers;
  };
  const auto together = run({prompts[0], prompts[1], prompts[2]});
  for (int i = 0; i < 3; ++i) EXPECT_EQ(together[i], run({prompts[i]})[0]) << prompts[i];
  EXPECT_NE(t.decode(together[0]).find("Paris"), std::string::npos) << t.decode(together[0]);
}

TEST(SmolLm2, AStepAllocatesNothingOnceItIsWarm) {
  SmolLm2& m = smollm2();
  Runtime runtime(2);
  auto runner = *Runner::make(m.woven, runtime, {.context = 64});
  SequenceState s;
  runner->pool().grow(s, 64);
  const std::vector<int32_t> ids(64, 17);
  auto step = [&] {
    const Runner::Input in{&s, std::span(ids).first(1)};
    runner->step({&in, 1});
  };
  step();
  const int64_t before = heap_allocations;
  for (int i = 0; i < 8; ++i) step();
  EXPECT_EQ(heap_allocations, before);
}

}  // namespace
}  // namespace ridge
