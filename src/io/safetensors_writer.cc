// SafetensorsWriter of safetensors.h.
#include <algorithm>
#include <cctype>

#include "base/check.h"
#include "io/new_file.h"
#include "io/safetensors.h"

namespace ridge {

void SafetensorsWriter::metadata(std::string_view key, std::string_view value) { metadata_.set(key, value); }

void SafetensorsWriter::tensor(std::string name, const View& view) {
  RIDGE_CHECK(view.dense() && !is_block(view.type), "safetensors takes dense tensors of plain types and not " + to_string(view));
  tensors_.push_back({std::move(name), view});
}

std::vector<const NamedTensor*> SafetensorsWriter::by_size() const {
  std::vector<const NamedTensor*> order;
  for (const NamedTensor& t : tensors_) order.push_back(&t);
  std::sort(order.begin(), order.end(), [](auto* a, auto* b) {
    const int64_t na = size_of(a->view.type), nb = size_of(b->view.type);
    return na != nb ? na > nb : a < b;  // equal sizes: as they were given
  });
  return order;
}

std::string SafetensorsWriter::header(const std::vector<const NamedTensor*>& order) const {
  Json header = Json::object();
  if (!metadata_.is_null()) header.append("__metadata__", metadata_);
  int64_t offset = 0;
  for (const NamedTensor* t : order) {
    std::string dtype = name_of(t->view.type);
    for (char& c : dtype) c = char(toupper(c));
    const std::vector<int64_t> shape(t->view.dims, t->view.dims + t->view.rank);
    const int64_t end = offset + t->view.bytes();
    header.append(t->name,
                  Json::object({{"dtype", dtype}, {"shape", shape}, {"data_offsets", std::vector<int64_t>{offset, end}}}));
    offset = end;
  }
  std::string text = to_text(header);
  text.resize((text.size() + 7) / 8 * 8, ' ');  // the data starts aligned for every dtype
  const uint64_t length = text.size();
  return std::string(reinterpret_cast<const char*>(&length), sizeof length) + text;
}

std::string SafetensorsWriter::bytes() const {
  const std::vector<const NamedTensor*> order = by_size();
  std::string out = header(order);
  for (const NamedTensor* t : order) out.append(t->view.data, size_t(t->view.bytes()));
  return out;
}

Status SafetensorsWriter::write(const std::string& path) const {
  const std::vector<const NamedTensor*> order = by_size();
  Result<NewFile> file = NewFile::create(path);
  if (!file) return file.status();
  if (Status s = file->write(header(order)); !s) return s;
  for (const NamedTensor* t : order)
    if (Status s = file->write({t->view.data, size_t(t->view.bytes())}); !s) return s;
  return file->commit();
}

}  // namespace ridge
