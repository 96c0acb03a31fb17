// Woven formats: 16 rows of a file's format in one block, four consecutive values of each row side by side.
//
//   [values k .. k + 3 of row 0][the same of row 1] ... [of row 15]      64 codes of `bits` bits: one register of dwords, a row each
//
// That is the right operand of an 8-bit dot-product instruction and of an 8-bit matrix tile as it stands. A block is `block` values of each
// row: its codes, 32 values (8 registers) at a time, then its scales, 16 of a kind in a row. Codes are unsigned; value = d (code - offset) + m.
//
//   8 bits: a register's 64 bytes.
//   4 bits: 64 bytes hold two registers: values k .. k + 3 in the low nibbles, k + 4 .. k + 7 in the high ones.
//   6 bits: the low 4 as above, for the whole block; then the high 2, four registers in 64 bytes: value group k / 4 % 4 from bit 2 (k / 4 % 4) on.
//
// The block is long enough to be whole cache lines (Q6_K: half lines). Numbers stay the file's, bit by bit: decode_row says the same values.
#include "base/check.h"
#include "base/formats/blocks.h"

namespace ridge {
namespace {

constexpr int kRows = 16;

// ---- codes of one woven block
template <int bits>
constexpr int code_bytes(int block) {
  return block * kRows * bits / 8;
}
// The byte that holds bits of value k of a row, in a plane of `per` registers a 64 bytes; and which of them it is.
constexpr int byte_of(int row, int k, int per) { return k / (4 * per) * 64 + row * 4 + k % 4; }

// From one byte a code, [16][block], to a woven block's codes; four at a time, since a row's four lie side by side.
template <int bits, int block>
void put_codes(const uint8_t (&q)[kRows][block], uint8_t* codes) {
  const auto four = [&](int row, int group) {
    uint32_t word;
    memcpy(&word, q[row] + 4 * group, 4);
    return word;
  };
  const auto put = [&](int at, int row, uint32_t word) { memcpy(codes + at * 64 + row * 4, &word, 4); };
  for (int g = 0; g < block / 4; g += bits == 8 ? 1 : 2)
    for (int r = 0; r < kRows; ++r)
      bits == 8 ? put(g, r, four(r, g)) : put(g / 2, r, (four(r, g) & 0x0f0f0f0f) | (four(r, g + 1) & 0x0f0f0f0f) << 4);
  if constexpr (bits == 6)
    for (int g = 0; g < block / 4; g += 4)
      for (int r = 0; r < kRows; ++r) {
        uint32_t high = 0;
        for (int i = 0; i < 4; ++i) high |= (four(r, g + i) >> 4 & 0x03030303) << 2 * i;
        put(code_bytes<4>(block) / 64 + g / 4, r, high);
      }
}
template <int bits, int block>
int get_code(const uint8_t* codes, int row, int k) {
  if constexpr (bits == 8) return codes[byte_of(row, k, 1)];
  int code = codes[byte_of(row, k, 2)] >> k / 4 % 2 * 4 & 15;
  if constexpr (bits == 6) code |= (codes[code_bytes<4>(block) + byte_of(row, k, 4)] >> k / 4 % 4 * 2 & 3) << 4;
  return code;
}

// The low nibbles of n bytes, then the high ones.
void nibbles(const uint8_t* from, int n, uint8_t* q) {
  for (int i = 0; i < n; ++i) q[i] = from[i] & 15, q[i + n] = from[i] >> 4;
}
void copy_f16(const uint8_t* from, uint8_t* row_of_16, int row) { memcpy(row_of_16 + 2 * row, from, 2); }

// ---- what each format says of itself: a row's codes, its scales into the woven block, and value k back
// `from` are the file's blocks of one row that go into a woven block; `scales` is where the woven block's scales start.
struct Q4_0 {
  static constexpr int bits = 4, block = 64, scale_bytes = 2 * 32;  // d of each 32
  static void codes(const uint8_t* from, uint8_t* q) {
    for (int s = 0; s < 2; ++s) nibbles(from + 18 * s + 2, 16, q + 32 * s);
  }
  static void weave_scales(const uint8_t* from, int row, uint8_t* scales) {
    for (int s = 0; s < 2; ++s) copy_f16(from + 18 * s, scales + 32 * s, row);
  }
  static float value(int code, const uint8_t* scales, int row, int k) {
    return load_f16(scales + k / 32 * 32 + 2 * row) * float(code - 8);
  }
};

struct Q4_1 {
  static constexpr int bits = 4, block = 32, scale_bytes = 64;  // d, m
  static void codes(const uint8_t* from, uint8_t* q) { nibbles(from + 4, 16, q); }
  static void weave_scales(const uint8_t* from, int row, uint8_t* scales) {
    for (int s = 0; s < 2; ++s) copy_f16(from + 2 * s, scales + 32 * s, row);
  }
  static float value(int code, const uint8_t* scales, int row, int) {
    return load_f16(scales + 2 * row) * float(code) + load_f16(scales + 32 + 2 * row);
  }
};

struct Q8_0 {
  static constexpr int bits = 8, block = 64, scale_bytes = 2 * 32;  // d of each 32
  static void codes(const uint8_t* from, uint8_t* q) {
    for (int s = 0; s < 2; ++s)
      for (int k = 0; k < 32; ++k) q[32 * s + k] = from[34 * s + 2 + k] ^ 128;
  }
  static void weave_scales(const uint8_t* from, int row, uint8_t* scales) {
    for (int s = 0; s < 2; ++s) copy_f16(from + 34 * s, scales + 32 * s, row);
  }
  static float value(int code, const uint8_t* scales, int row, int k) {
    return load_f16(scales + k / 32 * 32 + 2 * row) * float(code - 128);
  }
};

struct Q4_K {
  static constexpr int bits = 4, block = 256,
                       scale_bytes = 64 + 8 * 32;  // d, dmin; then of each 32: 16 scales, 16 minima, a byte each
  static void codes(const uint8_t* from, uint8_t* q) {
    for (int s = 0; s < 4; ++s) nibbles(from + 16 + 32 * s, 32, q + 64 * s);
  }
  static void weave_scales(const uint8_t* from, int row, uint8_t* scales) {
    copy_f16(from, scales, row);
    copy_f16(from + 2, scales + 32, row);
    const uint8_t* packed = from + 4;
    for (int j = 0; j < 8; ++j) {
      uint8_t* to = scales + 64 + 32 * j + row;
      to[0] = j < 4 ? packed[j] & 63 : uint8_t((packed[j + 4] & 15) | packed[j - 4] >> 6 << 4);
      to[16] = j < 4 ? packed[j + 4] & 63 : uint8_t(packed[j + 4] >> 4 | packed[j] >> 6 << 4);
    }
  }
  static float value(int code, const uint8_t* scales, int row, int k) {
    const uint8_t* s = scales + 64 + k / 32 * 32 + row;
    return load_f16(scales + 2 * row) * float(s[0]) * float(code) - load_f16(scales + 32 + 2 * row) * float(s[16]);
  }
};

struct Q6_K {
  static constexpr int bits = 6, block = 256, scale_bytes = 32 + 16 * 16;  // d; then of each 16: 16 signed scales, a byte each
  static void codes(const uint8_t* from, uint8_t* q) {
    for (int half = 0; half < 2; ++half, q += 128) {
      const uint8_t *low = from + 64 * half, *high = from + 128 + 32 * half;
      for (int s = 0; s < 4; ++s)
        for (int l = 0; l < 32; ++l)
          q[32 * s + l] = uint8_t((low[(s & 1) * 32 + l] >> s / 2 * 4 & 15) | (high[l] >> 2 * s & 3) << 4);
    }
  }
  static void weave_scales(const uint8_t* from, int row, uint8_t* scales) {
    copy_f16(from + 208, scales, row);
    for (int j = 0; j < 16; ++j) scales[32 + 16 * j + row] = from[192 + j];
  }
  static float value(int code, const uint8_t* scales, int row, int k) {
    return load_f16(scales + 2 * row) * float(int8_t(scales[32 + k / 16 * 16 + row])) * float(code - 32);
  }
};

template <class F>
constexpr int kBytes = code_bytes<F::bits>(F::block) + F::scale_bytes;

template <class F>
void weave(const uint8_t* const* rows, uint8_t* block) {
  uint8_t q[kRows][F::block];
  for (int r = 0; r < kRows; ++r) {
    F::codes(rows[r], q[r]);
    F::weave_scales(rows[r], r, block + code_bytes<F::bits>(F::block));
  }
  put_codes<F::bits, F::block>(q, block);
}

template <class F>
void decode_row(const void* blocks, int row, int64_t from, float* values, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    const auto* b = static_cast<const uint8_t*>(blocks) + (from + i) / F::block * kBytes<F>;
    const int k = int((from + i) % F::block);
    values[i] = F::value(get_code<F::bits, F::block>(b, row, k), b + code_bytes<F::bits>(F::block), row, k);
  }
}

template <class F>
constexpr Format woven(const char* name, const Format* stored) {
  return {.name = name,
          .gguf_type = -1,
          .block = F::block,
          .bytes = kBytes<F>,
          .decode = nullptr,
          .encode = nullptr,
          .max_error = 0,
          .rows = kRows,
          .stored = stored,
          .weave = weave<F>,
          .decode_row = decode_row<F>};
}

}  // namespace

extern const Format q4_0_format, q4_1_format, q8_0_format, q4_k_format, q6_k_format;
extern const Format q4_0_woven_format = woven<Q4_0>("Q4_0x16", &q4_0_format);
extern const Format q4_1_woven_format = woven<Q4_1>("Q4_1x16", &q4_1_format);
extern const Format q8_0_woven_format = woven<Q8_0>("Q8_0x16", &q8_0_format);
extern const Format q4_k_woven_format = woven<Q4_K>("Q4_Kx16", &q4_k_format);
extern const Format q6_k_woven_format = woven<Q6_K>("Q6_Kx16", &q6_k_format);

bool can_weave(const View& v) {
  if (v.rank != 2 || !v.dense() || !is_block(v.type) || woven_of(v.type) == v.type) return false;
  const Format& to = *format_of(woven_of(v.type));
  return v.dims[0] % to.rows == 0 && v.dims[1] % to.block == 0;
}

void weave(const View& from, const View& to, int64_t group) {
  const Format &f = *format_of(from.type), &w = *format_of(to.type);
  RIDGE_CHECK(can_weave(from) && to.type == woven_of(from.type) && from.count() == to.count(), "weave: from " + to_string(from));
  const int64_t per_row = from.dims[1] / w.block, file_block = int64_t(w.block) / f.block * f.bytes;
  const uint8_t* rows[kRows];
  for (int r = 0; r < kRows; ++r) rows[r] = reinterpret_cast<const uint8_t*>(from.at(group * kRows + r));
  auto* block = reinterpret_cast<uint8_t*>(to.at(group * kRows));
  for (int64_t b = 0; b < per_row; ++b, block += w.bytes) {
    w.weave(rows, block);
    for (const uint8_t*& row : rows) row += file_block;
  }
}

}  // namespace ridge
