// A model once it is loaded: two functions over a context and a batch, the views of its weights, and the few facts that those who
// run it need (how much state a token takes, how long a context is). What is inside a family stays in its file.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "model/batch.h"
#include "model/source.h"
#include "ops/ctx.h"

namespace ridge {

struct NamedWeight {
  std::string name;  // as in an HF checkpoint: "model.layers.0.mlp.up_proj.weight"
  View view;
};

struct Model {
  std::string family;  // "llama"
  std::string label;   // "llama 134.5M Q4_1": family, parameters, the type most weights have
  int64_t vocab = 0, context = 0;
  KvShape kv;
  DType activations = DType::f32;
  std::vector<NamedWeight> weights;
  int64_t parameters = 0, weight_bytes = 0;        // a tied head is counted once
  std::function<View(Ctx&, const Batch&)> logits;  // f32 [sample rows, or all tokens; vocab]
  std::function<View(Ctx&, const Batch&)> loss;    // [1]: sum over tokens of weight * -log p(target)
  std::shared_ptr<void> storage;                   // what the views point into
  Arena* arena = nullptr;                          // of the weights, where they can be trained
};

struct LoadOptions {
  // stored: as in the file, read-only. measured: views without memory, for a plan. copied and random: in an arena of their own, of
  // type `type`, so that they can be trained; random ones are drawn from `seed`.
  enum class Weights : uint8_t { stored, measured, copied, random } weights = Weights::stored;
  DType type = DType::f32;             // of copied and random weights and of the activations that go with them
  std::optional<DType> stored_type{};  // what measured weights of a shape are stored as; its config's type
  uint64_t seed = 0;
  bool recompute = false;  // training keeps a layer's output only
  // Stored and measured matrices woven (base/format.h) where their format and shape allow: what gemm reads fastest. A copy takes the place
  // of the file's pages, so memory stays that of the file.
  bool woven = false;
  const Pool* pool = nullptr;                                 // that weaves; null: the caller alone
  std::function<void(int64_t done, int64_t all)> progress{};  // bytes woven
};

// A family of models: one file in this folder, one line in list.h (docs/adding_a_model.md).
struct Family {
  const char* name;
  const char* gguf_architecture;  // general.architecture
  const char* hf_architecture;    // config.json's architectures[0] or model_type, as HF writes them
  Result<Model> (*load)(const Source&, const LoadOptions&);
};

// Finds the family that claims the source and loads it. A shape (config.json alone) is always `measured` or `random`.
Result<Model> load_model(const Source& source, LoadOptions options = {});

}  // namespace ridge
