#include "io/tensors.h"

#include <algorithm>
#include <numeric>

#include "base/format.h"
#include "io/json.h"

namespace ridge {

namespace {

// Two neighbours in the order of addresses; where no neighbours overlap nobody does. Empty tensors take no room.
const NamedTensor* overlapping(const std::vector<NamedTensor>& list, const NamedTensor*& other) {
  std::vector<const NamedTensor*> order;
  for (const NamedTensor& t : list)
    if (t.view.count() > 0) order.push_back(&t);
  std::sort(order.begin(), order.end(), [](auto* a, auto* b) { return a->view.data < b->view.data; });
  for (size_t i = 1; i < order.size(); ++i) {
    if (order[i]->view.data - order[i - 1]->view.data >= order[i - 1]->view.bytes()) continue;
    other = order[i];
    return order[i - 1];
  }
  return nullptr;
}

}  // namespace

Result<Tensors> Tensors::of(std::vector<NamedTensor> list, std::vector<std::shared_ptr<const void>> owners,
                            const std::string& where) {
  Tensors tensors;
  tensors.list_ = std::move(list);
  tensors.owners_ = std::move(owners);
  const std::vector<NamedTensor>& all = tensors.list_;
  tensors.by_name_.resize(all.size());
  std::iota(tensors.by_name_.begin(), tensors.by_name_.end(), 0u);
  std::sort(tensors.by_name_.begin(), tensors.by_name_.end(), [&](uint32_t a, uint32_t b) { return all[a].name < all[b].name; });
  for (size_t i = 1; i < all.size(); ++i)
    if (all[tensors.by_name_[i]].name == all[tensors.by_name_[i - 1]].name)
      return unloadable(where + ": two tensors are named " + quoted(all[tensors.by_name_[i]].name) +
                        "; the file is damaged, fetch it again");
  const NamedTensor* second = nullptr;
  if (const NamedTensor* first = overlapping(all, second))
    return unloadable(where + ": tensors " + quoted(first->name) + " and " + quoted(second->name) +
                      " share bytes; the file is damaged, fetch it again");
  return tensors;
}

const View* Tensors::find(std::string_view name) const {
  const auto at =
      std::lower_bound(by_name_.begin(), by_name_.end(), name, [&](uint32_t i, std::string_view n) { return list_[i].name < n; });
  return at != by_name_.end() && list_[*at].name == name ? &list_[*at].view : nullptr;
}

int64_t Tensors::bytes() const {
  int64_t sum = 0;
  for (const NamedTensor& t : list_) sum += t.view.bytes();
  return sum;
}

std::optional<View> checked_view(DType type, const int64_t* dims, int rank) {
  constexpr int64_t limit = int64_t(1) << 62;
  const Format* format = format_of(type);
  if (format && dims[rank - 1] % format->block != 0) return std::nullopt;
  View v;
  v.type = type;
  v.rank = uint8_t(rank);
  int64_t count = 1, bytes = 0;
  for (int i = rank - 1; i >= 0; --i) {
    v.dims[i] = dims[i];
    v.strides[i] = count;
    if (dims[i] < 0 || __builtin_mul_overflow(count, dims[i], &count) || count > limit) return std::nullopt;
  }
  const int64_t units = format ? count / format->block : count;
  if (__builtin_mul_overflow(units, format ? format->bytes : size_of(type), &bytes) || bytes > limit) return std::nullopt;
  return v;
}

std::string foreign_file(std::string_view bytes) {
  if (bytes.starts_with("version https://git-lfs"))
    return "this is a Git LFS pointer and not the file itself; run `git lfs pull`";
  if (bytes.starts_with("<")) return "this is a web page; download the file itself";
  if (bytes.starts_with("PK")) return "this is a PyTorch or ZIP archive; convert it to GGUF or safetensors";
  for (const char* old : {"lmgg", "fmgg", "tjgg", "algg"})  // "ggml" and its successors, as little-endian words
    if (bytes.starts_with(old)) return "this is a GGML file from before GGUF; convert the original model again";
  return {};
}

std::string quoted(std::string_view name) {
  constexpr size_t longest = 80;
  std::string text = to_text(Json(name.substr(0, longest)));
  if (name.size() > longest) text.insert(text.size() - 1, "...");
  return text;
}

}  // namespace ridge
