#include "io/safetensors.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>

#include "base/log.h"
#include "io/mapping.h"

namespace ridge {

namespace {

constexpr uint64_t kLongestHeader = 100'000'000;  // as the format's own library has it; real ones reach 14 MB

struct TypeName {
  DType type;
  const char* name;
};
constexpr TypeName kTypes[] = {{DType::f64, "F64"}, {DType::f32, "F32"}, {DType::f16, "F16"}, {DType::bf16, "BF16"},
                               {DType::i64, "I64"}, {DType::i32, "I32"}, {DType::u8, "U8"}};

std::string shape_text(const View& v) { return to_text(Json(std::vector<int64_t>(v.dims, v.dims + v.rank)), 1); }

// A file's header turned into views of its data, one step after the other; each checks what it takes.
class Shard {
 public:
  Shard(std::string_view bytes, std::string name) : bytes_(bytes), name_(std::move(name)) {}

  Status read() {
    Json header;
    if (Status s = read_header(header); !s) return s;
    for (const Json::Member& m : header.members()) {
      if (Status s = m.key == "__metadata__" ? read_metadata(m.value) : read_tensor(m.key, m.value); !s) return s;
    }
    if (Status s = check_ranges(); !s) return s;
    for (Range& r : ranges_) place(r);
    return {};
  }

  Json metadata = Json::object();
  std::vector<NamedTensor> tensors;
  std::vector<std::shared_ptr<const void>> copies;  // of tensors that are not aligned in the file

 private:
  struct Range {  // of tensors[i], in bytes from data_
    int64_t begin, end;
    size_t i;
  };

  Status refuse(const std::string& what) const { return unloadable(name_ + ": " + what); }
  Status damaged(const std::string& what) const { return refuse(what + "; the file is damaged, fetch it again"); }

  Status read_header(Json& header) {
    if (const std::string other = foreign_file(bytes_); !other.empty()) return refuse(other);
    if (bytes_.starts_with("GGUF")) return refuse("this is a GGUF file and not safetensors; give it the ending .gguf");
    uint64_t length;
    if (bytes_.size() < sizeof length) return damaged("the file is too short for a header");
    memcpy(&length, bytes_.data(), sizeof length);
    if (length > kLongestHeader)
      return damaged("the header claims " + std::to_string(length) + " bytes, more than the " + std::to_string(kLongestHeader) +
                     " allowed");
    data_ = bytes_.substr(sizeof length);
    if (length > data_.size())
      return refuse("the header claims " + std::to_string(length) + " bytes but the file ends after " +
                    std::to_string(data_.size()) + "; it is incomplete, fetch it again");
    Result<Json> parsed = parse_json(data_.substr(0, length), name_ + " (header)", kHeaderJson);
    if (!parsed) return parsed.status();
    if (!parsed->is_object()) return damaged(std::string("the header is ") + parsed->kind_name() + " and not an object");
    data_.remove_prefix(length);
    header = std::move(*parsed);
    return {};
  }

  Status read_metadata(const Json& value) {
    if (!value.is_object()) return damaged(std::string("\"__metadata__\" is ") + value.kind_name() + " and not an object");
    for (const Json::Member& m : value.members())
      if (!m.value.is_string())
        return damaged("the metadata " + quoted(m.key) + " is " + m.value.kind_name() + " and not a string");
    metadata = value;
    return {};
  }

  Status read_tensor(const std::string& name, const Json& entry) {
    const std::string where = "tensor " + quoted(name);
    const std::string* dtype = entry["dtype"].string();
    if (!dtype) return damaged(where + " has no dtype");
    const TypeName* type =
        std::find_if(std::begin(kTypes), std::end(kTypes), [&](const TypeName& t) { return *dtype == t.name; });
    if (type == std::end(kTypes)) {
      std::string list;
      for (const TypeName& t : kTypes) list += (list.empty() ? "" : ", ") + std::string(t.name);
      return refuse(where + " is stored as " + quoted(*dtype) + ", which is not supported; use a file made of " + list);
    }
    NamedTensor& t = tensors.emplace_back(NamedTensor{name, {}});
    if (Status s = read_shape(where, type->type, entry["shape"], t.view); !s) return s;
    return read_range(where, *type, entry["data_offsets"], t.view);
  }

  Status read_shape(const std::string& where, DType type, const Json& shape, View& view) {
    if (!shape.is_array()) return damaged(where + " has no shape");
    if (shape.size() > 4) return refuse(where + " has " + std::to_string(shape.size()) + " dimensions, at most 4 are supported");
    int64_t dims[4] = {1};
    for (size_t d = 0; d < shape.size(); ++d) {
      if (!shape[d].is_integer() || *shape[d].integer() < 0)
        return damaged(where + " has a dimension that is no count: " + to_text(shape[d]));
      dims[d] = *shape[d].integer();
    }
    const std::optional<View> v = checked_view(type, dims, std::max(1, int(shape.size())));  // a scalar is one element
    if (!v) return damaged(where + " is larger than any memory");
    view = *v;
    return {};
  }

  Status read_range(const std::string& where, const TypeName& type, const Json& offsets, const View& view) {
    if (offsets.size() != 2 || !offsets[0].is_integer() || !offsets[1].is_integer())
      return damaged(where + " has no pair of data_offsets");
    const int64_t begin = *offsets[0].integer(), end = *offsets[1].integer();
    const std::string range = std::to_string(begin) + " to " + std::to_string(end);
    if (begin < 0 || end < begin) return damaged(where + " has the impossible data_offsets " + range);
    if (uint64_t(end) > data_.size())
      return refuse(where + " takes bytes " + range + ", past the end of the " + std::to_string(data_.size()) +
                    " bytes of data; the file is incomplete, fetch it again");
    if (end - begin != view.bytes())
      return damaged(where + " is " + type.name + " " + shape_text(view) + ", which takes " + std::to_string(view.bytes()) +
                     " bytes, but its data_offsets span " + std::to_string(end - begin));
    ranges_.push_back({begin, end, tensors.size() - 1});
    return {};
  }

  // The format wants the data covered exactly: nothing shared, nothing unexplained.
  Status check_ranges() {
    std::sort(ranges_.begin(), ranges_.end(), [](const Range& a, const Range& b) {
      return a.begin != b.begin ? a.begin < b.begin : a.end != b.end ? a.end < b.end : a.i < b.i;
    });
    int64_t covered = 0;
    for (size_t k = 0; k < ranges_.size(); ++k) {
      const Range& r = ranges_[k];
      if (r.begin < covered)
        return damaged("tensors " + quoted(tensors[ranges_[k - 1].i].name) + " and " + quoted(tensors[r.i].name) +
                       " share bytes");
      if (r.begin > covered)
        return damaged("bytes " + std::to_string(covered) + " to " + std::to_string(r.begin) + " before tensor " +
                       quoted(tensors[r.i].name) + " belong to no tensor");
      covered = r.end;
    }
    if (uint64_t(covered) == data_.size()) return {};
    return damaged("the last " + std::to_string(data_.size() - uint64_t(covered)) + " bytes belong to no tensor");
  }

  void place(const Range& r) {
    View& v = tensors[r.i].view;
    v.data = const_cast<char*>(data_.data()) + r.begin;
    if (reinterpret_cast<uintptr_t>(v.data) % uint64_t(size_of(v.type)) == 0) return;
    const auto copy = std::make_shared<int64_t[]>(size_t(v.bytes() + 7) / 8);
    memcpy(copy.get(), v.data, size_t(v.bytes()));
    v.data = reinterpret_cast<char*>(copy.get());
    copies.push_back(copy);
  }

  std::string_view bytes_, data_;
  std::string name_;
  std::vector<Range> ranges_;
};

// What is gathered from one file or several.
struct Gathered {
  Json metadata;
  std::vector<NamedTensor> list;
  std::vector<std::shared_ptr<const void>> owners;

  // Takes the tensors of a file for which `wanted(name)` holds; says how many it left.
  template <class F>
  Result<int64_t> add(const std::string& path, F&& wanted) {
    Result<Mapping> mapping = Mapping::open(path);
    if (!mapping) return mapping.status();
    const auto file = std::make_shared<const Mapping>(std::move(*mapping));
    Shard shard(file->bytes(), path);
    if (Status s = shard.read(); !s) return s;
    if (!shard.copies.empty())
      log_info("{}: copied because they are not aligned for their dtype, tensors: {}", path, shard.copies.size());
    if (owners.empty()) metadata = std::move(shard.metadata);
    owners.push_back(file);
    owners.insert(owners.end(), shard.copies.begin(), shard.copies.end());
    int64_t left = 0;
    for (NamedTensor& t : shard.tensors) {
      if (wanted(t.name))
        list.push_back(std::move(t));
      else
        ++left;
    }
    return left;
  }

  Result<Safetensors> finish(const std::string& name) {
    Result<Tensors> tensors = Tensors::of(std::move(list), std::move(owners), name);
    if (!tensors) return tensors.status();
    return Safetensors{std::move(metadata), std::move(*tensors)};
  }
};

Result<Safetensors> open_file(const std::string& path) {
  Gathered all;
  const Result<int64_t> left = all.add(path, [](const std::string&) { return true; });
  if (!left) return left.status();
  return all.finish(path);
}

// ---- shards

bool is_plain_name(std::string_view name) { return !name.empty() && name != "." && name != ".." && name.find('/') == name.npos; }

// Shard -> the tensors it must hold, from the index's "weight_map".
using ShardMap = std::map<std::string, std::vector<std::string>>;

Result<ShardMap> read_index(const std::string& path) {
  const Result<Json> index = read_json(path, kHeaderJson);
  if (!index) return index.status();
  const Json& map = (*index)["weight_map"];
  if (map.members().empty()) return unloadable(path + ": \"weight_map\" names no tensors; fetch the index again");
  ShardMap shards;
  for (const Json::Member& m : map.members()) {
    const std::string* shard = m.value.string();
    if (!shard || !is_plain_name(*shard))
      return unloadable(path + ": tensor " + quoted(m.key) + " is said to be in " + quoted(shard ? *shard : to_text(m.value)) +
                        ", which is no file name of this folder; fetch the index again");
    shards[*shard].push_back(m.key);
  }
  return shards;
}

Result<Safetensors> open_index(const std::string& path) {
  Result<ShardMap> shards = read_index(path);
  if (!shards) return shards.status();
  const std::string folder = path.substr(0, path.rfind('/') + 1);
  Gathered all;
  for (auto& [shard, names] : *shards) {
    std::sort(names.begin(), names.end());
    std::vector<bool> seen(names.size());
    const auto wanted = [&](const std::string& name) {
      const auto at = std::lower_bound(names.begin(), names.end(), name);
      const bool found = at != names.end() && *at == name;
      if (found) seen[size_t(at - names.begin())] = true;
      return found;
    };
    const Result<int64_t> left = all.add(folder + shard, wanted);
    if (!left) return unloadable(left.status().sentence() + " (" + path + " names it)");
    if (const auto missing = std::find(seen.begin(), seen.end(), false); missing != seen.end())
      return unloadable(folder + shard + ": tensor " + quoted(names[size_t(missing - seen.begin())]) +
                        " is not in this file although the index says so; fetch the index and its shards again");
    if (*left) log_warn("{}: left out because the index does not place them here, tensors: {}", folder + shard, *left);
  }
  return all.finish(path);
}

bool exists(const std::string& path) {
  struct stat info;
  return stat(path.c_str(), &info) == 0;
}

}  // namespace

Result<Safetensors> open_safetensors(const std::string& path) {
  struct stat info;
  const bool folder = stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
  if (!folder) return path.ends_with(".index.json") ? open_index(path) : open_file(path);
  const std::string one = path + "/model.safetensors", index = one + ".index.json";
  if (exists(one)) return open_file(one);
  if (exists(index)) return open_index(index);
  const bool torch = exists(path + "/pytorch_model.bin") || exists(path + "/pytorch_model.bin.index.json");
  return unloadable(path + ": there is neither model.safetensors nor model.safetensors.index.json in this folder" +
                    (torch ? "; convert its pytorch_model.bin to safetensors" : "; fetch the model's weights"));
}

Result<Safetensors> parse_safetensors(std::string_view bytes, const std::string& name) {
  Shard shard(bytes, name);
  if (Status s = shard.read(); !s) return s;
  Gathered all{std::move(shard.metadata), std::move(shard.tensors), std::move(shard.copies)};
  return all.finish(name);
}

}  // namespace ridge
