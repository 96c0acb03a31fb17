// The truth of attention and its backward pass: a row at a time, two passes over the keys, everything in double. Naive for ever.
#include <cmath>
#include <limits>
#include <vector>

#include "ops/attention/attention.h"

namespace ridge {

namespace {

constexpr double kMinusInf = -std::numeric_limits<double>::infinity();

// One segment and the keys and values of one of its key heads, in double.
struct KeyHead {
  int64_t from, queries, keys;  // first token, tokens, keys
  std::vector<double> k, v;     // [keys, d], [keys, dv]
};

template <class Args>
int64_t length(const Args& a, int64_t s) {
  return int64_t(a.segments.cu_seqlens.get(s + 1)) - int64_t(a.segments.cu_seqlens.get(s));
}

KeyHead flat_head(const View& k, const View& v, const Segments& g, int64_t s, int64_t head) {
  const int64_t from = int64_t(g.cu_seqlens.get(s)), n = int64_t(g.cu_seqlens.get(s + 1)) - from;
  KeyHead h{from, n, n, {}, {}};
  for (int64_t j = 0; j < n; ++j) {
    for (int64_t c = 0; c < k.dims[2]; ++c) h.k.push_back(k.get(from + j, head, c));
    for (int64_t c = 0; c < v.dims[2]; ++c) h.v.push_back(v.get(from + j, head, c));
  }
  return h;
}

KeyHead key_head(const Attention::Args& a, int64_t s, int64_t head) {
  if (a.k.rank == 3) return flat_head(a.k, a.v, a.segments, s, head);
  KeyHead h{int64_t(a.segments.cu_seqlens.get(s)), length(a, s), int64_t(a.segments.kv_lens.get(s)), {}, {}};
  const int64_t page = a.k.dims[2], d = a.k.dims[3], dv = a.v.dims[3];
  // Keys that no query sees may lie on pages that were given back: they stay NaN and are not looked at.
  const int64_t oldest = a.window > 0 ? h.keys - h.queries - a.window + 1 : 0;
  h.k.assign(h.keys * d, NAN);
  h.v.assign(h.keys * dv, NAN);
  for (int64_t j = std::max<int64_t>(0, oldest); j < h.keys && h.queries > 0; ++j) {
    const int64_t p = int64_t(a.pages.table.get(s, j / page));
    for (int64_t c = 0; c < d; ++c) h.k[j * d + c] = a.k.get(p, head, j % page, c);
    for (int64_t c = 0; c < dv; ++c) h.v[j * dv + c] = a.v.get(p, head, j % page, c);
  }
  return h;
}

template <class Args>
bool sees(const Args& a, const KeyHead& h, int64_t i, int64_t j) {
  const int64_t p = h.keys - h.queries + i;
  return (!a.causal || j <= p) && (a.window == 0 || j > p - a.window);
}

double dot(const double* x, const double* y, int64_t n) {
  double s = 0;
  for (int64_t c = 0; c < n; ++c) s += x[c] * y[c];
  return s;
}

template <class Args>
double score(const Args& a, double product) {
  const double z = a.scale * product;
  return a.softcap > 0 ? a.softcap * std::tanh(z / a.softcap) : z;
}

std::vector<double> row_of(const View& v, int64_t token, int64_t head) {
  std::vector<double> row(v.dims[2]);
  for (int64_t c = 0; c < v.dims[2]; ++c) row[c] = v.get(token, head, c);
  return row;
}

void attend(const Attention::Args& a, const KeyHead& h, int64_t i, int64_t head, bool drop_newest) {
  const int64_t d = a.q.dims[2], dv = a.o.dims[2], token = h.from + i;
  const std::vector<double> q = row_of(a.q, token, head);
  std::vector<double> s(h.keys, kMinusInf);
  int64_t newest = -1;
  for (int64_t j = 0; j < h.keys; ++j)
    if (sees(a, h, i, j)) s[j] = score(a, dot(q.data(), &h.k[j * d], d)), newest = j;
  if (drop_newest && newest >= 0) s[newest] = kMinusInf;
  double top = kMinusInf;
  for (double x : s) top = std::max(top, x);
  std::vector<double> o(dv, 0.0);
  double lse = kMinusInf;
  if (top > kMinusInf) {
    if (a.sinks) top = std::max(top, a.sinks.get(head));
    double sum = 0;
    for (double x : s) sum += std::exp(x - top);
    if (a.sinks) sum += std::exp(a.sinks.get(head) - top);
    lse = top + std::log(sum);
    for (int64_t j = 0; j < h.keys; ++j)
      if (s[j] > kMinusInf)
        for (int64_t c = 0; c < dv; ++c) o[c] += std::exp(s[j] - lse) * h.v[j * dv + c];
  }
  for (int64_t c = 0; c < dv; ++c) a.o.set(o[c], token, head, c);
  if (a.lse) a.lse.set(lse, token, head);
}

void forward(const Attention::Args& a, bool drop_newest) {
  const int64_t kv_heads = a.k.dims[1], group = a.q.dims[1] / kv_heads;
  for (int64_t s = 0; s < a.segments.count(); ++s)
    for (int64_t kv = 0; kv < kv_heads; ++kv) {
      const KeyHead h = key_head(a, s, kv);
      for (int64_t head = kv * group; head < (kv + 1) * group; ++head)
        for (int64_t i = 0; i < h.queries; ++i) attend(a, h, i, head, drop_newest);
    }
}

struct Gradients {
  std::vector<double> dk, dv;  // of one key head, as in KeyHead
  double d_sink;
};

void differentiate(const AttentionBackward::Args& a, const KeyHead& h, int64_t i, int64_t head, bool forget_d, Gradients& g) {
  const int64_t d = a.q.dims[2], dv = a.v.dims[2], token = h.from + i;
  const std::vector<double> q = row_of(a.q, token, head), d_o = row_of(a.d_o, token, head), o = row_of(a.o, token, head);
  const double lse = a.lse.get(token, head);
  if (lse == kMinusInf) return;
  const double D = forget_d ? 0 : dot(d_o.data(), o.data(), dv) - (a.d_lse ? a.d_lse.get(token, head) : 0);
  std::vector<double> dq(d, 0.0);
  for (int64_t j = 0; j < h.keys; ++j) {
    if (!sees(a, h, i, j)) continue;
    const double s = score(a, dot(q.data(), &h.k[j * d], d)), p = std::exp(s - lse);
    const double slope = a.softcap > 0 ? 1 - s * s / (a.softcap * a.softcap) : 1;
    const double ds = p * (dot(d_o.data(), &h.v[j * dv], dv) - D) * slope * a.scale;
    for (int64_t c = 0; c < d; ++c) dq[c] += ds * h.k[j * d + c], g.dk[j * d + c] += ds * q[c];
    for (int64_t c = 0; c < dv; ++c) g.dv[j * dv + c] += p * d_o[c];
  }
  if (a.dq)
    for (int64_t c = 0; c < d; ++c) a.dq.add(dq[c], token, head, c);
  if (a.sinks) g.d_sink -= std::exp(a.sinks.get(head) - lse) * D;
}

void backward(const AttentionBackward::Args& a, bool forget_d) {
  const int64_t kv_heads = a.k.dims[1], group = a.q.dims[1] / kv_heads, d = a.k.dims[2], dv = a.v.dims[2];
  std::vector<double> d_sinks(a.q.dims[1], 0.0);
  for (int64_t s = 0; s < a.segments.count(); ++s)
    for (int64_t kv = 0; kv < kv_heads; ++kv) {
      const KeyHead h = flat_head(a.k, a.v, a.segments, s, kv);
      Gradients g{std::vector<double>(h.keys * d, 0.0), std::vector<double>(h.keys * dv, 0.0), 0};
      for (int64_t head = kv * group; head < (kv + 1) * group; ++head) {
        g.d_sink = 0;
        for (int64_t i = 0; i < h.queries; ++i) differentiate(a, h, i, head, forget_d, g);
        d_sinks[head] += g.d_sink;
      }
      for (int64_t j = 0; j < h.keys; ++j) {
        for (int64_t c = 0; c < d && a.dk; ++c) a.dk.add(g.dk[j * d + c], h.from + j, kv, c);
        for (int64_t c = 0; c < dv && a.dv; ++c) a.dv.add(g.dv[j * dv + c], h.from + j, kv, c);
      }
    }
  for (int64_t head = 0; head < a.q.dims[1] && a.d_sinks; ++head) a.d_sinks.add(d_sinks[head], head);
}

}  // namespace

void attention_truth(const Attention::Args& a) { forward(a, false); }
void Attention::reference(Ctx&, const Args& a, char*) { forward(a, false); }
void Attention::planted(Ctx&, const Args& a, char*) { forward(a, true); }
void AttentionBackward::reference(Ctx&, const Args& a, char*) { backward(a, false); }
void AttentionBackward::planted(Ctx&, const Args& a, char*) { backward(a, true); }

}  // namespace ridge
