// The truth of embed and its backward: a gather and a scatter in double. Naive for ever.
#include <map>
#include <vector>

#include "base/check.h"
#include "ops/embed/embed.h"

namespace ridge {

namespace {

int64_t id_of(const View& ids, int64_t t, int64_t vocab) {
  const int64_t id = int64_t(ids.get(t));
  RIDGE_CHECK(id < vocab, "embed: token " + std::to_string(t) + " has id " + std::to_string(id) + ", the table has " +
                              std::to_string(vocab) + " rows");
  return id;
}

void gather(const Embed::Args& a, int64_t beside) {
  const int64_t vocab = a.table.dims[0];
  for (int64_t t = 0; t < a.ids.dims[0]; ++t) {
    const int64_t id = id_of(a.ids, t, vocab), row = id + beside < vocab ? id + beside : id - beside;
    for (int64_t j = 0; j < a.y.dims[1]; ++j) a.y.set(id < 0 ? 0 : a.scale * a.table.get(row, j), t, j);
  }
}

}  // namespace

void Embed::reference(Ctx&, const Args& a, char*) { gather(a, 0); }
void Embed::planted(Ctx&, const Args& a, char*) { gather(a, 1); }

void EmbedBackward::reference(Ctx&, const Args& a, char*) {
  const int64_t n = a.dy.dims[1];
  std::map<int64_t, std::vector<double>> sums;  // [n] for every id that occurs: rounded once, when stored
  for (int64_t t = 0; t < a.ids.dims[0]; ++t) {
    const int64_t id = id_of(a.ids, t, a.dtable.dims[0]);
    if (id < 0) continue;
    std::vector<double>& sum = sums[id];
    sum.resize(n);
    for (int64_t j = 0; j < n; ++j) sum[j] += a.scale * a.dy.get(t, j);
  }
  for (const auto& [id, sum] : sums)
    for (int64_t j = 0; j < n; ++j) a.dtable.add(sum[j], id, j);
}

void EmbedBackward::planted(Ctx&, const Args& a, char*) {
  for (int64_t t = 0; t < a.ids.dims[0]; ++t)
    for (int64_t j = 0, id = id_of(a.ids, t, a.dtable.dims[0]); id >= 0 && j < a.dy.dims[1]; ++j)
      a.dtable.set(a.scale * a.dy.get(t, j), id, j);
}

}  // namespace ridge
