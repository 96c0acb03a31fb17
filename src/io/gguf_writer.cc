#include "io/gguf_writer.h"

#include "io/new_file.h"

namespace ridge {

GgufWriter::GgufWriter(uint32_t alignment) : alignment_(alignment) {
  RIDGE_CHECK(alignment >= 8 && (alignment & (alignment - 1)) == 0, "the alignment is a power of two from 8");
  if (alignment != 32) set("general.alignment", alignment);
}

void GgufWriter::begin(std::string_view key) {
  put_text(metadata_, key);
  ++entries_;
}

void GgufWriter::tensor(std::string name, const View& view) {
  RIDGE_CHECK(view.dense() && gguf_of_dtype(view.type), "GGUF takes dense tensors of its own types and not " + to_string(view));
  tensors_.push_back({std::move(name), view});
}

std::string GgufWriter::header() const {
  std::string out = "GGUF";
  put(out, uint32_t(3));
  put(out, uint64_t(tensors_.size()));
  put(out, entries_);
  out += metadata_;
  uint64_t offset = 0;
  for (const NamedTensor& t : tensors_) {
    put_text(out, t.name);
    put(out, uint32_t(t.view.rank));
    for (int d = t.view.rank - 1; d >= 0; --d) put(out, uint64_t(t.view.dims[d]));
    put(out, *gguf_of_dtype(t.view.type));
    put(out, offset);
    offset += (uint64_t(t.view.bytes()) + alignment_ - 1) / alignment_ * alignment_;
  }
  pad(out);
  return out;
}

std::string GgufWriter::bytes() const {
  std::string out = header();
  for (const NamedTensor& t : tensors_) {
    out.append(t.view.data, size_t(t.view.bytes()));
    pad(out);
  }
  return out;
}

Status GgufWriter::write(const std::string& path) const {
  Result<NewFile> file = NewFile::create(path);
  if (!file) return file.status();
  if (Status s = file->write(header()); !s) return s;
  const std::string zeros(alignment_, '\0');
  for (const NamedTensor& t : tensors_) {
    const size_t n = size_t(t.view.bytes());
    if (Status s = file->write({t.view.data, n}); !s) return s;
    if (Status s = file->write(std::string_view(zeros).substr(0, (alignment_ - n % alignment_) % alignment_)); !s) return s;
  }
  return file->commit();
}

}  // namespace ridge
