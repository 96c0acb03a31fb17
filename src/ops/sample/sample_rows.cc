// sample without sorting the vocabulary. The k largest are found from the maxima of blocks of 64: the k-th largest maximum is a bound
// that at least k values reach, and few more do. A nucleus takes the 64 largest, then 8 times as many, until their weights suffice.
// Everything that decides an id is the reference's double arithmetic; only log-probabilities are summed in f32.
#include "ops/sample/sample_rows.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <utility>

#include "ops/sample/draw.h"
#include "ops/sample/settings.h"
#include "tile/cpu/exp_f64.h"

namespace ridge {

namespace {

constexpr double kNothing = -std::numeric_limits<double>::infinity();
constexpr int64_t kSortedK = 1024;  // above it top_k is a threshold
constexpr int64_t kSlots = 8;       // rows in flight, and so scratch: 25 bytes a token each

int64_t blocks_of(int64_t vocab) { return (vocab + kSampleBlock - 1) / kSampleBlock; }
int64_t padded(int64_t bytes) { return (bytes + 63) / 64 * 64; }
int64_t slot_bytes(int64_t vocab) {
  return 2 * padded(8 * vocab) + 2 * padded(4 * vocab) + 2 * padded(8 * blocks_of(vocab)) + 2 * padded(vocab / 8 + 1);
}

double clean(double z) { return std::isnan(z) ? kNothing : z; }

class Row {
 public:
  Row(const SampleCpu& cpu, const Sample::Args& a, int64_t r, char* scratch)
      : cpu_(cpu), a_(a), r_(r), vocab_(a.logits.dims[1]), raw_(a.logits.as<float>(r)), settings_(a, r), history_(a, r) {
    auto take = [&](int64_t bytes) { return std::exchange(scratch, scratch + padded(bytes)); };
    z_ = reinterpret_cast<double*>(take(8 * vocab_));
    w_ = reinterpret_cast<double*>(take(8 * vocab_));
    best_ = reinterpret_cast<int32_t*>(take(4 * vocab_));
    ids_ = reinterpret_cast<int32_t*>(take(4 * vocab_));
    maxima_ = reinterpret_cast<double*>(take(8 * blocks_of(vocab_)));
    bounds_ = reinterpret_cast<double*>(take(8 * blocks_of(vocab_)));
    seen_ = reinterpret_cast<uint8_t*>(take(vocab_ / 8 + 1));
    present_ = reinterpret_cast<uint8_t*>(take(vocab_ / 8 + 1));
  }

  void run() {
    raw_top_ = cpu_.max_of(raw_, vocab_);
    bool nothing = double(raw_top_) == kNothing;
    int64_t id = 0;
    if (settings_.greedy() && !changed()) {
      if (!nothing) id = cpu_.first_equal(raw_, vocab_, raw_top_);
    } else {
      cpu_.widen(raw_, vocab_, z_);
      add_bias();
      penalise();
      find_maxima();
      nothing = top_ == kNothing;
      if (!nothing) id = settings_.greedy() ? first_top() : choose();
    }
    *a_.ids.as<int32_t>(r_) = int32_t(id);
    if (a_.logprobs || a_.top_logprobs) log_total();
    if (a_.logprobs) a_.logprobs.set(nothing ? kNothing : log_probability(id), r_);
    if (a_.top_ids) write_top();
  }

 private:
  bool changed() const { return a_.bias_ids || (a_.history && (a_.repetition || a_.presence || a_.frequency)); }
  bool is_token(int64_t id) const { return id >= 0 && id < vocab_; }
  static bool first_time(uint8_t* bits, int64_t id) {
    const uint8_t bit = uint8_t(1 << (id & 7));
    if (bits[id >> 3] & bit) return false;
    bits[id >> 3] |= bit;
    return true;
  }

  void add_bias() {
    if (!a_.bias_ids) return;
    for (int64_t n = 0; n < a_.bias_ids.dims[1]; ++n) {
      const int64_t id = *a_.bias_ids.as<int32_t>(r_, n);
      if (is_token(id)) z_[id] = clean(z_[id] + a_.bias_values.get(r_, n));
    }
  }

  void penalise() {
    if (a_.repetition) {
      memset(seen_, 0, size_t(vocab_ / 8 + 1));
      const double p = a_.repetition.get(r_);
      for (int64_t n = 0; n < history_.length; ++n) {
        const int64_t id = *a_.history.as<int32_t>(r_, n);
        if (is_token(id) && first_time(seen_, id)) z_[id] = clean(z_[id] > 0 ? z_[id] / p : z_[id] * p);
      }
    }
    if (!a_.presence && !a_.frequency) return;
    memset(present_, 0, size_t(vocab_ / 8 + 1));
    const double presence = a_.presence ? a_.presence.get(r_) : 0, frequency = a_.frequency ? a_.frequency.get(r_) : 0;
    for (int64_t n = history_.generated; n < history_.length; ++n) {
      const int64_t id = *a_.history.as<int32_t>(r_, n);
      if (!is_token(id)) continue;
      if (a_.presence && first_time(present_, id)) z_[id] = clean(z_[id] - presence);
      if (a_.frequency) z_[id] = clean(z_[id] - frequency);
    }
  }

  void find_maxima() {
    cpu_.block_max(z_, vocab_, maxima_);
    top_ = *std::max_element(maxima_, maxima_ + blocks_of(vocab_));
  }
  int64_t first_top() const {
    int64_t i = (std::find(maxima_, maxima_ + blocks_of(vocab_), top_) - maxima_) * kSampleBlock;
    while (z_[i] != top_) ++i;
    return i;
  }

  bool before(int32_t i, int32_t j) const { return z_[i] != z_[j] ? z_[i] > z_[j] : i < j; }

  // best_[0, k): the k largest z, lower ids first among equals; the last of them in its place.
  void find_largest(int64_t k) {
    const int64_t blocks = blocks_of(vocab_);
    double bound = kNothing;
    if (k <= blocks) {
      std::copy(maxima_, maxima_ + blocks, bounds_);
      std::nth_element(bounds_, bounds_ + (k - 1), bounds_ + blocks, std::greater<double>());
      bound = bounds_[k - 1];
    }
    int64_t n = 0;
    for (int64_t b = 0; b < blocks; ++b) {
      if (!(maxima_[b] >= bound)) continue;
      const int64_t end = std::min(vocab_, (b + 1) * kSampleBlock);
      for (int64_t i = b * kSampleBlock; i < end; ++i)
        if (z_[i] >= bound) best_[n++] = int32_t(i);
    }
    std::nth_element(best_, best_ + (k - 1), best_ + n, [this](int32_t i, int32_t j) { return before(i, j); });
  }
  void select(int64_t k) {  // largest first
    find_largest(k);
    std::sort(best_, best_ + k, [this](int32_t i, int32_t j) { return before(i, j); });
  }

  double weight(int64_t id) const { return z_[id] == top_ ? 1 : exp_f64((z_[id] - top_) * settings_.inverse_temperature); }

  void weigh_all() {
    if (std::isfinite(top_)) return cpu_.weigh(z_, vocab_, top_, settings_.inverse_temperature, w_);
    for (int64_t i = 0; i < vocab_; ++i) w_[i] = weight(i);
  }

  // How many of best_[0, n) the nucleus takes: the shortest run that reaches `enough`; -1 when n are too few.
  int64_t run_reaching(double enough, int64_t n) const {
    double sum = 0;
    for (int64_t rank = 0; rank < n; ++rank) {
      sum += w_[best_[rank]];
      if (sum >= enough || w_[best_[rank]] == 0) return rank + 1;
    }
    return -1;
  }

  int64_t choose() {
    const int64_t k = settings_.top_k;
    int64_t kept = k;
    if (k <= kSortedK) {
      select(k);
      for (int64_t i = 0; i < k; ++i) w_[best_[i]] = weight(best_[i]);
      if (settings_.nucleus())
        if (const int64_t n = run_reaching(settings_.top_p * total_weight(by_id(k)), k); n > 0) kept = n;
    } else {
      weigh_all();
      if (k < vocab_) cut_after(k);
      if (!settings_.nucleus()) return draw_all();
      kept = nucleus_among(k);
    }
    while (kept > 1 && w_[best_[kept - 1]] < settings_.min_p) --kept;
    return draw_token(by_id(kept), settings_.u);
  }

  // A large k needs no order: whether a token is among the k largest is seen from the last of them.
  void cut_after(int64_t k) {
    find_largest(k);
    const int32_t last = best_[k - 1];
    for (int64_t i = 0; i < vocab_; ++i) w_[i] = before(last, int32_t(i)) ? 0 : w_[i];
  }

  // Sorts as few as the nucleus needs; what was cut has no weight.
  int64_t nucleus_among(int64_t k) {
    const double enough = settings_.top_p * total_weight({nullptr, w_, vocab_});
    for (int64_t n = 64;; n *= 8) {
      const int64_t some = std::min(n, k);
      select(some);
      const int64_t kept = run_reaching(enough, some);
      if (kept > 0 || some == k) return kept > 0 ? kept : k;
    }
  }

  int64_t draw_all() {
    if (settings_.min_p > 0)
      for (int64_t i = 0; i < vocab_; ++i) w_[i] = w_[i] < settings_.min_p ? 0 : w_[i];
    return draw_token({nullptr, w_, vocab_}, settings_.u);
  }

  Kept by_id(int64_t n) {
    std::copy(best_, best_ + n, ids_);
    std::sort(ids_, ids_ + n);
    return {ids_, w_, n};
  }

  void log_total() {
    double equal = 0;
    const double rest = cpu_.sum_below(raw_, vocab_, raw_top_, &equal);
    log_total_ = equal > 0 ? std::log(equal) + std::log1p(rest / equal) : 0;
  }
  double log_probability(int64_t id) const {
    const double z = clean(double(raw_[id]));
    if (z == kNothing) return kNothing;
    return (z == double(raw_top_) ? 0 : z - double(raw_top_)) - log_total_;
  }

  void write_top() {
    const int64_t n = a_.top_ids.dims[1];
    if (n == 0) return;
    cpu_.widen(raw_, vocab_, z_);
    find_maxima();
    select(n);
    for (int64_t i = 0; i < n; ++i) {
      *a_.top_ids.as<int32_t>(r_, i) = best_[i];
      if (a_.top_logprobs) a_.top_logprobs.set(log_probability(best_[i]), r_, i);
    }
  }

  const SampleCpu& cpu_;
  const Sample::Args& a_;
  int64_t r_, vocab_;
  const float* raw_;  // [vocab]
  SampleSettings settings_;
  SampleHistory history_;
  float raw_top_ = 0;
  double top_ = 0, log_total_ = 0;
  double *z_, *w_;            // [vocab] processed logits; weights, where they were asked for
  int32_t *best_, *ids_;      // [vocab] by value; by id
  double *maxima_, *bounds_;  // [blocks]
  uint8_t *seen_, *present_;  // a bit a token
};

}  // namespace

int64_t sample_workspace(const Sample::Args& a) { return std::min(a.logits.dims[0], kSlots) * slot_bytes(a.logits.dims[1]); }

void sample_rows(const SampleCpu& cpu, const Pool& pool, const Sample::Args& a, char* scratch) {
  const int64_t rows = a.logits.dims[0], slots = std::min(rows, kSlots);
  pool.parallel(slots, [&](int64_t slot, int) {
    for (int64_t r = slot; r < rows; r += slots) Row(cpu, a, r, scratch + slot * slot_bytes(a.logits.dims[1])).run();
  });
}

}  // namespace ridge
