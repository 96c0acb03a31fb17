// The truth of rope and its backward pass: a head at a time, angles and all else in double. Naive for ever.
#include <cmath>
#include <vector>

#include "base/format.h"
#include "ops/rope/rope.h"

namespace ridge {

namespace {

// Frequencies and which features turn together.
struct Turn {
  int64_t rotary;
  RopePairs pairs;
  double m;
  std::vector<double> frequency;  // [rotary / 2]

  int64_t u(int64_t i) const { return pairs == RopePairs::half_split ? i : 2 * i; }
  int64_t v(int64_t i) const { return pairs == RopePairs::half_split ? i + rotary / 2 : 2 * i + 1; }

  // sense -1 turns back, which is the transpose.
  void operator()(std::vector<double>& y, double position, int sense) const {
    for (int64_t i = 0; i < rotary / 2; ++i) {
      const double a = position * frequency[i], c = std::cos(a), s = sense * std::sin(a), p = y[u(i)], q = y[v(i)];
      y[u(i)] = m * (p * c - q * s);
      y[v(i)] = m * (q * c + p * s);
    }
  }
};

template <class Args>
Turn turn_of(const Args& a, int64_t d) {
  Turn t{a.rotary_dim ? a.rotary_dim : d, a.pairs, rope_attention_factor(a.frequencies), {}};
  t.frequency.resize(t.rotary / 2);
  rope_frequencies(a.frequencies, view_of(t.frequency.data(), DType::f64, {t.rotary / 2}));
  for (int64_t i = 0; i < t.rotary / 2 && a.inv_freq; ++i) t.frequency[i] = a.inv_freq.get(i);
  return t;
}

std::vector<double> head_of(const View& v, int64_t token, int64_t head) {
  std::vector<double> x(v.dims[2]);
  for (int64_t c = 0; c < v.dims[2]; ++c) x[c] = v.get(token, head, c);
  return x;
}

double inverse_rms(const std::vector<double>& x, double eps) {
  double s = 0;
  for (double e : x) s += e * e;
  return 1 / std::sqrt(s / double(x.size()) + eps);
}

void write_page(const View& pages, int64_t slot, int64_t head, const std::vector<double>& x) {
  if (!pages || slot < 0) return;
  if (is_block(pages.type)) {
    const std::vector<float> row(x.begin(), x.end());
    format_of(pages.type)->encode(row.data(), pages.at(slot / pages.dims[2], head, slot % pages.dims[2]), int64_t(row.size()));
    return;
  }
  for (int64_t c = 0; c < int64_t(x.size()); ++c) pages.set(x[c], slot / pages.dims[2], head, slot % pages.dims[2], c);
}

void forward(const Rope::Args& a, int64_t shift) {
  const Turn turn = turn_of(a, a.q.dims[2]);
  auto turned = [&](const View& x, const View& norm, int64_t t, int64_t h) {
    std::vector<double> y = head_of(x, t, h);
    const double inv = norm ? inverse_rms(y, a.eps) : 1;
    for (size_t c = 0; c < y.size() && norm; ++c) y[c] *= inv * norm.get(c);
    turn(y, a.positions.of.get(t) + double(shift), 1);
    return y;
  };
  for (int64_t t = 0; t < a.q.dims[0]; ++t) {
    for (int64_t h = 0; h < a.q.dims[1]; ++h) {
      const std::vector<double> y = turned(a.q, a.q_norm, t, h);
      for (size_t c = 0; c < y.size(); ++c) a.q_out.set(y[c], t, h, c);
    }
    const int64_t slot = a.k_pages ? int64_t(a.pages.slots.get(t)) : -1;
    for (int64_t h = 0; h < a.k.dims[1]; ++h) {
      const std::vector<double> y = turned(a.k, a.k_norm, t, h);
      for (size_t c = 0; c < y.size() && a.k_out; ++c) a.k_out.set(y[c], t, h, c);
      write_page(a.k_pages, slot, h, y);
      if (a.v_pages) write_page(a.v_pages, slot, h, head_of(a.v, t, h));
    }
  }
}

// One of the two halves of the backward pass: q's or k's.
void turn_back(const Turn& turn, int sense, const View& positions, const View& d_out, const View& x, const View& norm, double eps,
               const View& dx, const View& d_norm) {
  const int64_t d = d_out.dims[2];
  std::vector<double> dw(d, 0.0);
  for (int64_t t = 0; t < d_out.dims[0]; ++t)
    for (int64_t h = 0; h < d_out.dims[1]; ++h) {
      std::vector<double> dy = head_of(d_out, t, h);
      turn(dy, positions.get(t), sense);
      if (norm) {
        const std::vector<double> in = head_of(x, t, h);
        const double inv = inverse_rms(in, eps);
        double along = 0;
        for (int64_t c = 0; c < d; ++c) along += norm.get(c) * dy[c] * in[c];
        for (int64_t c = 0; c < d; ++c) {
          dw[c] += dy[c] * in[c] * inv;
          dy[c] = inv * (norm.get(c) * dy[c] - in[c] * inv * inv * along / double(d));
        }
      }
      for (int64_t c = 0; c < d && dx; ++c) dx.add(dy[c], t, h, c);
    }
  for (int64_t c = 0; c < d && d_norm; ++c) d_norm.add(dw[c], c);
}

void backward(const RopeBackward::Args& a, int sense) {
  const Turn turn = turn_of(a, a.d_q_out ? a.d_q_out.dims[2] : a.d_k_out.dims[2]);
  if (a.d_q_out) turn_back(turn, sense, a.positions.of, a.d_q_out, a.q, a.q_norm, a.eps, a.dq, a.dq_norm);
  if (a.d_k_out) turn_back(turn, sense, a.positions.of, a.d_k_out, a.k, a.k_norm, a.eps, a.dk, a.dk_norm);
}

}  // namespace

void Rope::reference(Ctx&, const Args& a, char*) { forward(a, 0); }
void Rope::planted(Ctx&, const Args& a, char*) { forward(a, 1); }
void RopeBackward::reference(Ctx&, const Args& a, char*) { backward(a, -1); }
void RopeBackward::planted(Ctx&, const Args& a, char*) { backward(a, 1); }

}  // namespace ridge
