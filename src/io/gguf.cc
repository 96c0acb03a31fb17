#include "io/gguf.h"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "base/format.h"
#include "io/mapping.h"

namespace ridge {

// ---- reading one file

namespace {

constexpr uint64_t kMostEntries = 65536;  // real files have under a hundred

class Cursor {
 public:
  explicit Cursor(std::string_view bytes) : bytes_(bytes) {}
  size_t at() const { return at_; }
  size_t left() const { return bytes_.size() - at_; }
  template <class T>
  bool take(T& x) {
    if (left() < sizeof x) return false;
    memcpy(&x, bytes_.data() + at_, sizeof x);
    at_ += sizeof x;
    return true;
  }
  bool take_bytes(uint64_t n, std::string_view& bytes) {
    if (n > left()) return false;
    bytes = bytes_.substr(at_, n);
    at_ += n;
    return true;
  }
  bool take_text(std::string_view& text) {  // u64 length, then that many bytes
    uint64_t n;
    return take(n) && take_bytes(n, text);
  }

 private:
  std::string_view bytes_;
  size_t at_ = 0;
};

std::string supported_types() {
  std::string list = "F32, F16, BF16, F64, I32, I64";
  for (DType t : block_types()) list += std::string(", ") + name_of(t);
  return list;
}

// Reads the header of one file from front to back; each step checks what it takes.
class Part {
 public:
  Part(std::string_view bytes, std::string name, std::shared_ptr<const Mapping> file = {})
      : bytes_(bytes), name_(std::move(name)), file_(std::move(file)), cursor_(bytes) {}

  Status read() {
    uint64_t tensor_count = 0, entry_count = 0;
    if (Status s = read_header(tensor_count, entry_count); !s) return s;
    if (Status s = read_metadata(entry_count); !s) return s;
    if (Status s = read_alignment(); !s) return s;
    return read_tensors(tensor_count);
  }

  const std::shared_ptr<const Mapping>& file() const { return file_; }
  uint32_t version = 0;
  GgufMetadata metadata;
  std::vector<NamedTensor> tensors;

 private:
  // The fewest bytes an entry (length, 1 byte of key, type, 1 byte) or a tensor (length, rank, 1 dim, type, offset) can take.
  static constexpr uint64_t kLeastEntry = 14, kLeastTensor = 33;

  Status refuse(const std::string& what) const { return unloadable(name_ + ": " + what); }
  Status truncated(const std::string& where) const {
    return refuse("the file ends inside " + where + "; it is incomplete, fetch it again");
  }
  Status damaged(const std::string& what) const { return refuse(what + "; the file is damaged, fetch it again"); }

  Status read_header(uint64_t& tensor_count, uint64_t& entry_count) {
    std::string_view magic;
    if (!cursor_.take_bytes(4, magic) || magic != "GGUF") {
      const std::string other = foreign_file(bytes_);
      return refuse(other.empty() ? "this is not a GGUF file (its first bytes are not \"GGUF\")" : other);
    }
    if (!cursor_.take(version)) return truncated("the header");
    if (version != 0 && (version & 0xffff) == 0) return refuse("this GGUF file is big-endian; convert it to little-endian first");
    if (version != 2 && version != 3)
      return refuse("GGUF version " + std::to_string(version) + " is not read, versions 2 and 3 are; convert the model again");
    if (!cursor_.take(tensor_count) || !cursor_.take(entry_count)) return truncated("the header");
    if (entry_count > kMostEntries)
      return damaged("the header promises " + std::to_string(entry_count) + " metadata entries, more than the " +
                     std::to_string(kMostEntries) + " that are read");
    if (entry_count > cursor_.left() / kLeastEntry)
      return truncated("the metadata (" + std::to_string(entry_count) + " entries are promised)");
    if (tensor_count > cursor_.left() / kLeastTensor)
      return truncated("the tensor descriptions (" + std::to_string(tensor_count) + " are promised)");
    return {};
  }

  Status read_metadata(uint64_t count) {
    std::vector<GgufMetadata::Entry> entries;
    for (uint64_t i = 0; i < count; ++i) {
      GgufMetadata::Entry entry;
      if (!cursor_.take_text(entry.key)) return truncated("the key of metadata entry " + std::to_string(i));
      if (entry.key.empty()) return damaged("metadata entry " + std::to_string(i) + " has no key");
      if (Status s = read_value(entry); !s) return s;
      entries.push_back(std::move(entry));
    }
    std::vector<std::string_view> keys;
    for (const GgufMetadata::Entry& e : entries) keys.push_back(e.key);
    std::sort(keys.begin(), keys.end());
    if (const auto twice = std::adjacent_find(keys.begin(), keys.end()); twice != keys.end())
      return damaged("the metadata key " + quoted(*twice) + " stands twice");
    metadata = GgufMetadata(std::move(entries), file_);
    return {};
  }

  Status read_value(GgufMetadata::Entry& entry) {
    const std::string where = "the metadata value " + quoted(entry.key);
    GgufValue& value = entry.value;
    uint32_t type;
    uint64_t count = 1;
    if (!cursor_.take(type)) return truncated(where);
    value.array = type == uint32_t(GgufType::array);
    if (value.array && (!cursor_.take(type) || !cursor_.take(count))) return truncated(where);
    if (type == uint32_t(GgufType::array))
      return refuse(where + " is an array of arrays, which is not read; convert the model again");
    if (type > uint32_t(GgufType::f64)) return damaged(where + " has the unknown type " + std::to_string(type));
    value.type = GgufType(type);
    const bool strings = value.type == GgufType::string;
    const uint64_t least = strings ? sizeof(uint64_t) : uint64_t(gguf_value_bytes(value.type));
    if (count > cursor_.left() / least)
      return truncated(where + (value.array ? " of " + std::to_string(count) + " elements" : ""));
    value.count = int64_t(count);
    if (!strings) return cursor_.take_bytes(count * least, value.raw) ? Status() : truncated(where);
    value.strings.resize(count);
    for (std::string_view& s : value.strings)
      if (!cursor_.take_text(s)) return truncated(where);
    return {};
  }

  Status read_alignment() {
    const GgufValue* v = metadata.find("general.alignment");
    if (!v) return {};
    const std::optional<int64_t> n = v->array ? std::nullopt : v->integer();
    if (!n || *n < 8 || *n > 65536 || (*n & (*n - 1)) != 0)
      return damaged("\"general.alignment\" must be a power of two from 8 to 65536" +
                     (n ? " and not " + std::to_string(*n) : std::string()));
    alignment_ = *n;
    return {};
  }

  Status read_tensors(uint64_t count) {
    std::vector<uint64_t> offsets;
    for (uint64_t i = 0; i < count; ++i) {
      NamedTensor& t = tensors.emplace_back();
      if (Status s = read_description(i, t, offsets.emplace_back()); !s) return s;
    }
    // Data begins at the next multiple of the alignment. Offsets are checked against what is left behind it: nothing can wrap.
    const uint64_t start = (cursor_.at() + uint64_t(alignment_) - 1) / uint64_t(alignment_) * uint64_t(alignment_);
    const uint64_t room = start < bytes_.size() ? bytes_.size() - start : 0;
    for (uint64_t i = 0; i < count; ++i) {
      NamedTensor& t = tensors[i];
      const uint64_t bytes = uint64_t(t.view.bytes()), offset = offsets[i];
      if (offset % uint64_t(alignment_) != 0)
        return damaged("tensor " + quoted(t.name) + " starts at offset " + std::to_string(offset) +
                       ", which is no multiple of the alignment " + std::to_string(alignment_));
      if (offset > room || bytes > room - offset)
        return refuse("tensor " + quoted(t.name) + " takes " + std::to_string(bytes) + " bytes from offset " +
                      std::to_string(offset) + ", past the end of the " + std::to_string(room) +
                      " bytes of tensor data; the file is incomplete, fetch it again");
      t.view.data = const_cast<char*>(bytes_.data()) + start + offset;
    }
    return {};
  }

  Status read_description(uint64_t i, NamedTensor& t, uint64_t& offset) {
    std::string_view name;
    if (!cursor_.take_text(name)) return truncated("the name of tensor " + std::to_string(i));
    if (name.empty()) return damaged("tensor " + std::to_string(i) + " has no name");
    t.name = name;
    const std::string where = "tensor " + quoted(name);
    uint32_t rank, type;
    if (!cursor_.take(rank)) return truncated("the description of " + where);
    if (rank < 1 || rank > 4) return damaged(where + " has " + std::to_string(rank) + " dimensions, 1 to 4 are possible");
    uint64_t extents[4];  // fastest first
    for (uint32_t d = 0; d < rank; ++d) {
      if (!cursor_.take(extents[d])) return truncated("the description of " + where);
      if (extents[d] == 0) return damaged(where + " has a dimension of 0");
      if (extents[d] >> 62) return damaged(where + " has an absurd dimension of " + std::to_string(extents[d]));
    }
    if (!cursor_.take(type) || !cursor_.take(offset)) return truncated("the description of " + where);
    return describe(where, rank, extents, type, t.view);
  }

  Status describe(const std::string& where, uint32_t rank, const uint64_t* extents, uint32_t type, View& v) const {
    const std::optional<DType> dtype = dtype_of_gguf(type);
    if (!dtype)
      return refuse(where + " is stored as " + gguf_type_name(type) + ", which is not supported; use a file made of " +
                    supported_types());
    int64_t dims[4];
    for (uint32_t d = 0; d < rank; ++d) dims[d] = int64_t(extents[rank - 1 - d]);
    const Format* format = format_of(*dtype);
    if (format && extents[0] % uint64_t(format->block) != 0)
      return damaged(where + " has rows of " + std::to_string(extents[0]) + " values, which is no whole number of " +
                     format->name + " blocks of " + std::to_string(format->block));
    const std::optional<View> view = checked_view(*dtype, dims, int(rank));
    if (!view) return damaged(where + " is larger than any memory");
    v = *view;
    return {};
  }

  std::string_view bytes_;
  std::string name_;
  std::shared_ptr<const Mapping> file_;
  Cursor cursor_;
  int64_t alignment_ = 32;
};

Result<Part> open_part(const std::string& path) {
  Result<Mapping> mapping = Mapping::open(path);
  if (!mapping) return mapping.status();
  const auto file = std::make_shared<const Mapping>(std::move(*mapping));
  Part part(file->bytes(), path, file);
  if (Status s = part.read(); !s) return s;
  return part;
}

// ---- split files

std::string five_digits(int64_t n) {
  const std::string digits = std::to_string(n);
  return std::string(digits.size() < 5 ? 5 - digits.size() : 0, '0') + digits;
}

// The name of part `part` (from 0) of `count`, from the path of any of them; empty when that is not named like one of so many.
std::string part_path(const std::string& path, int64_t part, int64_t count) {
  constexpr size_t tail = 20;  // "-00001-of-00003.gguf"
  const std::string end = "-of-" + five_digits(count) + ".gguf";
  if (count > 99999 || path.size() < tail || !path.ends_with(end) || path[path.size() - tail] != '-') return {};
  if (path.substr(path.size() - tail + 1, 5).find_first_not_of("0123456789") != path.npos) return {};
  return path.substr(0, path.size() - tail + 1) + five_digits(part + 1) + end;
}

Result<Part> open_part_of(const std::string& any, int64_t i, int64_t count) {
  const std::string path = part_path(any, i, count);
  if (path.empty())
    return unloadable(any + ": this is one of " + std::to_string(count) + " parts, but it is not named like MODEL-00001-of-" +
                      five_digits(count) + ".gguf; give the parts their names back");
  Result<Part> part = open_part(path);
  if (!part)
    return unloadable(part.status().sentence() + " (all " + std::to_string(count) + " parts must be there, in one folder)");
  const int64_t no = part->metadata.get_int("split.no", -1), of = part->metadata.get_int("split.count", -1);
  if (no != i || of != count)
    return unloadable(path + ": its metadata says split.no " + std::to_string(no) + " and split.count " + std::to_string(of) +
                      ", which does not fit its name; fetch the parts again");
  return part;
}

Result<Gguf> finish(Part first, std::vector<NamedTensor> list, std::vector<std::shared_ptr<const void>> files,
                    const std::string& name) {
  Result<Tensors> tensors = Tensors::of(std::move(list), std::move(files), name);
  if (!tensors) return tensors.status();
  return Gguf{first.version, std::move(first.metadata), std::move(*tensors)};
}

}  // namespace

Result<Gguf> parse_gguf(std::string_view bytes, const std::string& name) {
  Part part(bytes, name);
  if (Status s = part.read(); !s) return s;
  std::vector<NamedTensor> list = std::move(part.tensors);
  return finish(std::move(part), std::move(list), {}, name);
}

Result<Gguf> open_gguf(const std::string& path) {
  Result<Part> named = open_part(path);
  if (!named) return named.status();
  const int64_t count = named->metadata.get_int("split.count", 1);
  std::vector<NamedTensor> list = std::move(named->tensors);
  if (count <= 1) return finish(std::move(*named), std::move(list), {named->file()}, path);

  list.clear();
  std::vector<std::shared_ptr<const void>> files;
  std::optional<Part> first;
  for (int64_t i = 0; i < count; ++i) {
    Result<Part> part = open_part_of(path, i, count);
    if (!part) return part.status();
    list.insert(list.end(), std::make_move_iterator(part->tensors.begin()), std::make_move_iterator(part->tensors.end()));
    files.push_back(part->file());
    if (i == 0) first = std::move(*part);
  }
  const int64_t promised = first->metadata.get_int("split.tensors.count", int64_t(list.size()));
  if (promised != int64_t(list.size()))
    return unloadable(path + ": the parts hold " + std::to_string(list.size()) + " tensors but " + std::to_string(promised) +
                      " are promised; fetch the parts again");
  return finish(std::move(*first), std::move(list), std::move(files), path);
}

}  // namespace ridge
