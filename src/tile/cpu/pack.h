// Rows of any type and stride to f32 strips: [k][width], where the rows lie side by side, so that a micro-kernel reads both of its
// operands in one direction. Rows beyond the matrix are zeros. Decoding happens here, once for all rows of the other operand: in
// registers where decode.h has a reader for the type, else by its format's own decoder.
#pragma once
#include "tile/cpu/decode.h"
#include "tile/cpu/matrix.h"
#include "tile/cpu/transpose.h"

namespace ridge::RIDGE_ISA {
namespace {

// Values decoded before they are turned over: the buffer stays in the first-level cache.
constexpr int kPackDepth = 256;

// read(r, k, n, to): n values of row r from k on.
template <class F>
RIDGE_INLINE void pack_turned(int rows, int64_t depth, float* strip, int width, F&& read) {
  alignas(64) float block[kLanes][kPackDepth];
  for (int from = 0; from < width; from += kLanes)
    for (int64_t k = 0; k < depth; k += kPackDepth) {
      const int here = depth - k < kPackDepth ? int(depth - k) : kPackDepth;
      for (int r = 0; r < kLanes; ++r) {
        if (from + r < rows) {
          read(from + r, k, here, block[r]);
        } else {
          for (int i = 0; i < here; i += kLanes) store(&block[r][i], zero());
        }
      }
      for (int i = 0; i < here; i += kLanes) {
        Vec t[kLanes];
        for (int r = 0; r < kLanes; ++r) t[r] = load(&block[r][i]);
        transpose(t);
        for (int r = 0; r < kLanes && i + r < here; ++r) store(strip + (k + i + r) * width + from, t[r]);
      }
    }
}

template <class W>
inline void pack_rows(const CpuMatrix& x, int64_t row0, int rows, int64_t k0, int64_t depth, float* strip, int width) {
  pack_turned(
      rows, depth, strip, width, [&](int r, int64_t k, int n, float* to) __attribute__((always_inline)) {
        each_group<W>(
            W::span(x.data + (row0 + r) * x.row, (k0 + k) / kGroup),
            n, [&](int64_t g, GroupVecs & w) __attribute__((always_inline)) {
              for (int v = 0; v < kGroupVecs; ++v) store(to + g * kGroup + v * kLanes, w[v]);
            });
      });
}

// Rows that are neighbours in memory (a transposed view): every k is a run of them.
template <class T>
inline void pack_runs(const CpuMatrix& x, int64_t row0, int rows, int64_t k0, int64_t depth, float* strip, int width) {
  for (int64_t k = 0; k < depth; ++k) {
    const T* run = reinterpret_cast<const T*>(x.data + (k0 + k) * x.step) + row0;
    for (int from = 0; from < width; from += kLanes) {
      const int lanes = rows - from;
      store(strip + k * width + from, lanes >= kLanes ? load(run + from) : lanes > 0 ? load(run + from, lanes) : zero());
    }
  }
}

template <class T>
inline void pack_elements(const CpuMatrix& x, int64_t row0, int rows, int64_t k0, int64_t depth, float* strip, int width) {
  for (int64_t k = 0; k < depth; ++k)
    for (int r = 0; r < width; ++r) {
      const T* p = reinterpret_cast<const T*>(x.data + (row0 + r) * x.row + (k0 + k) * x.step);
      store(strip + k * width + r, r < rows ? load(p, 1) : zero(), 1);
    }
}

// The same for a block format, whose runs are decoded by the group: row0 is a multiple of 2 kLanes, so are the groups.
template <class W>
inline void pack_block_runs(const CpuMatrix& x, int64_t row0, int rows, int64_t k0, int64_t depth, float* strip, int width) {
  for (int64_t k = 0; k < depth; ++k)
    for (int from = 0; from < width; from += kLanes) {
      if (from >= rows) {
        store(strip + k * width + from, zero());
        continue;
      }
      const int64_t group = (row0 + from) / kGroup, first = group / W::kSpan * W::kSpan;
      const int lane = int((row0 + from) % kGroup), at_group = int(group - first);
      const uint8_t* at = W::span(x.data + (k0 + k) * x.step, first);
      typename W::Scales scales;
      scales.read(at, at_group + 1);
      unrolled<W::kPeriod>([&](auto i) {
        if (at_group % W::kPeriod != i()) return;
        alignas(64) float values[kGroup];
        GroupVecs w;
        W::template group<i()>(at, at_group, scales, w);
        for (int v = 0; v < kGroupVecs; ++v) store(values + v * kLanes, w[v]);
        const Vec run = load(values + lane);
        store(strip + k * width + from, rows - from >= kLanes ? run : select(ridge::RIDGE_ISA::first(rows - from), run, zero()));
      });
    }
}

// A block format without a reader: woven, or its blocks along rows, or (transposed) across them.
inline void pack_decoded(const CpuMatrix& x, int64_t row0, int rows, int64_t k0, int64_t depth, float* strip, int width) {
  const Format& f = *x.format;
  if (!x.step)
    return pack_turned(rows, depth, strip, width, [&](int r, int64_t k, int n, float* to) {
      const uint8_t* row = x.data + (row0 + r) / f.rows * x.row;
      f.rows == 1 ? f.decode(row + (k0 + k) / f.block * f.bytes, to, n)
                  : f.decode_row(row, int((row0 + r) % f.rows), k0 + k, to, n);
    });
  float values[kPackDepth];
  for (int64_t k = 0; k < depth; ++k) {
    int r = 0;
    while (r < rows) {
      f.decode(x.data + (k0 + k) * x.step + (row0 + r) / f.block * f.bytes, values, f.block);
      for (int64_t i = (row0 + r) % f.block; i < f.block && r < rows; ++i) strip[k * width + r++] = values[i];
    }
    while (r < width) strip[k * width + r++] = 0;
  }
}

template <class W>
struct ElementOf {
  using T = void;
};
template <class U>
struct ElementOf<Plain<U>> {
  using T = U;
};

// strip[k][r] = x[row0 + r][k0 + k] for k < depth, r < width. k0 is a multiple of kPackDepth.
inline void pack(const CpuMatrix& x, int64_t row0, int rows, int64_t k0, int64_t depth, float* strip, int width) {
  const bool read = with_reader(x.type, [&]<class W>(W) {
    using T = typename ElementOf<W>::T;
    if constexpr (!std::is_void_v<T>) {
      if (x.step != int64_t(sizeof(T))) {
        if (x.row == int64_t(sizeof(T))) return pack_runs<T>(x, row0, rows, k0, depth, strip, width);
        return pack_elements<T>(x, row0, rows, k0, depth, strip, width);
      }
    } else if (x.step) {
      return pack_block_runs<W>(x, row0, rows, k0, depth, strip, width);
    }
    pack_rows<W>(x, row0, rows, k0, depth, strip, width);
  });
  if (!read) pack_decoded(x, row0, rows, k0, depth, strip, width);
}

}  // namespace
}  // namespace ridge::RIDGE_ISA
