// Every family of models. A line here and a file beside it (docs/adding_a_model.md) make a family known to every verb.
#pragma once
#include <span>

#include "model/model.h"

// An entry a line, whatever clang-format thinks.
// clang-format off
#define RIDGE_MODELS(model) \
  model(llama) \
  model(qwen2) \
  model(qwen3) \
  /* end of list */
// clang-format on

namespace ridge {

std::span<const Family> all_families();

}  // namespace ridge
