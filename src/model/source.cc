#include "model/source.h"

#include <sys/stat.h>

#include "io/safetensors.h"

namespace ridge {

namespace {

bool is_folder(const std::string& path) {
  struct stat s;
  return stat(path.c_str(), &s) == 0 && S_ISDIR(s.st_mode);
}

Result<Source> open_hf(const std::string& folder) {
  Source s{.path = folder, .kind = Source::Kind::hf, .config_name = folder + "/config.json"};
  Result<Json> config = read_json(s.config_name);
  if (!config) return config.status();
  Result<Safetensors> weights = open_safetensors(folder);
  if (!weights) return weights.status();
  s.config = std::move(*config);
  s.tensors = std::move(weights->tensors);
  return s;
}

Result<Source> open_one_gguf(const std::string& path) {
  Result<Gguf> file = open_gguf(path);
  if (!file) return file.status();
  Source s{.path = path, .kind = Source::Kind::gguf, .config = file->metadata.to_json(), .config_name = path};
  s.tensors = file->tensors;
  s.gguf = std::move(*file);
  return s;
}

}  // namespace

Result<Source> open_source(const std::string& path) {
  if (is_folder(path)) return open_hf(path);
  if (!path.ends_with(".json")) return open_one_gguf(path);
  Result<Json> config = read_json(path);
  if (!config) return config.status();
  return Source{.path = path, .kind = Source::Kind::shape, .config = std::move(*config), .config_name = path};
}

}  // namespace ridge
