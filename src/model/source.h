// Where a model comes from: a GGUF file, an HF folder, or a config.json alone (a shape without weights, for plans).
#pragma once
#include <optional>
#include <string>

#include "io/gguf.h"
#include "io/json.h"
#include "io/tensors.h"

namespace ridge {

struct Source {
  enum class Kind : uint8_t { gguf, hf, shape };
  std::string path;
  Kind kind = Kind::shape;
  Json config;              // config.json, or the GGUF's metadata under its own keys
  std::string config_name;  // opens sentences about it
  std::optional<Gguf> gguf;
  Tensors tensors;  // empty for a shape
};

// Sentences say what is wrong with the path or the file; the code is `unloadable`.
Result<Source> open_source(const std::string& path);

}  // namespace ridge
