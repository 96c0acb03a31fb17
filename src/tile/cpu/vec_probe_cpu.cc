#include "tile/cpu/vec_probe.h"

#include "tile/cpu/exp2.h"

namespace ridge::RIDGE_ISA {
namespace {

template <Vec (*F)(Vec)>
void map(const float* x, float* y, int64_t n) {
  each_vec(n, [&](int64_t i, int lanes) {
    if (lanes == kLanes)
      store(y + i, F(load(x + i)));
    else
      store(y + i, F(load(x + i, lanes)), lanes);
  });
}

template <class Half>
void halves(const float* x, uint16_t* bits, float* back, int64_t n) {
  Half* h = reinterpret_cast<Half*>(bits);
  each_vec(n, [&](int64_t i, int lanes) {
    if (lanes == kLanes) {
      store(h + i, load(x + i));
      store(back + i, load(h + i));
    } else {
      store(h + i, load(x + i, lanes), lanes);
      store(back + i, load(h + i, lanes), lanes);
    }
  });
}

void bytes(const int8_t* x, float* as_signed, float* as_unsigned, int64_t n) {
  const uint8_t* u = reinterpret_cast<const uint8_t*>(x);
  each_vec(n, [&](int64_t i, int lanes) {
    store(as_signed + i, lanes == kLanes ? load(x + i) : load(x + i, lanes), lanes);
    store(as_unsigned + i, lanes == kLanes ? load(u + i) : load(u + i, lanes), lanes);
  });
}

float sum(const float* x, int64_t n) {
  Vec s = zero();
  each_vec(n, [&](int64_t i, int lanes) { s = s + load(x + i, lanes); });
  return reduce_add(s);
}

float largest(const float* x, int64_t n) {
  Vec s = broadcast(-__builtin_inff());
  each_vec(n, [&](int64_t i, int lanes) { s = select(first(lanes), max(s, load(x + i, lanes)), s); });
  return reduce_max(s);
}

void sums(const float* x, float* together, float* apart) {
  store_sums(together, load(x), load(x + kLanes), load(x + 2 * kLanes), load(x + 3 * kLanes));
  for (int i = 0; i < 4; ++i) apart[i] = reduce_add(load(x + i * kLanes));
}

void choose(const float* a, const float* b, float* smaller, float* larger, int64_t n) {
  each_vec(n, [&](int64_t i, int lanes) {
    const Vec x = load(a + i, lanes), y = load(b + i, lanes);
    store(smaller + i, select(x <= y, x, y), lanes);
    store(larger + i, select(both(x <= y, y == y), y, x), lanes);
  });
}

Vec exp_of(Vec x) { return exp(x); }
Vec exp2_of(Vec x) { return exp2(x); }
Vec exp2_short_of(Vec x) { return exp2<4>(x); }
Vec sigmoid_of(Vec x) { return sigmoid(x); }
Vec silu_of(Vec x) { return silu(x); }
Vec tanh_of(Vec x) { return tanh(x); }
Vec gelu_of(Vec x) { return gelu(x); }
Vec gelu_tanh_of(Vec x) { return gelu_tanh(x); }

}  // namespace

extern const VecProbe vec_probe{
    kLanes,
    map<exp_of>,
    map<exp2_of>,
    map<exp2_short_of>,
    map<sigmoid_of>,
    map<silu_of>,
    map<tanh_of>,
    map<gelu_of>,
    map<gelu_tanh_of>,
    halves<Bf16>,
    halves<F16>,
    bytes,
    sum,
    largest,
    sums,
    choose,
};

}  // namespace ridge::RIDGE_ISA
