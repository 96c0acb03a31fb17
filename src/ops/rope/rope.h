// rope: turns queries and keys by their positions, after an optional norm of each head, and writes keys and values to the cache.
//
//   y = x                                  or, with q_norm and k_norm:  y = x w / sqrt(mean_c x_c^2 + eps), each head by itself
//   a_i = position * frequency_i               i < rotary_dim / 2
//   (out_u, out_v) = m (y_u cos a_i - y_v sin a_i, y_v cos a_i + y_u sin a_i)
//
// where (u, v) is (i, i + rotary_dim / 2) (half_split) or (2 i, 2 i + 1) (interleaved), and m the attention factor of the
// scaling. Features past rotary_dim pass through. Angles are right for any 32-bit position: no row may compute them in f32.
//
// Cost: q and k in and out once, v once where it is written; 3 FLOPs an element. Outputs may be the inputs (they may not when the
// pass is recorded: their gradients would be one). slots say where a token's key and value go: page * page_size + offset, -1:
// nowhere. Not for M-RoPE (several positions a token), nor for the norm alone (rms_norm).
#pragma once
#include "ops/op.h"
#include "ops/segments.h"

namespace ridge {

enum class RopePairs : uint8_t { half_split, interleaved };
enum class RopeScaling : uint8_t { none, linear, llama3, yarn };

// A model's frequencies as its config states them: plain numbers, constant for a model.
struct RopeFrequencies {
  double theta = 10000;
  RopeScaling scaling = RopeScaling::none;
  double factor = 1;                                 // how much longer than trained; all scalings
  double original_context = 0;                       // llama3, yarn: the trained length
  double low_freq_factor = 1, high_freq_factor = 4;  // llama3
  double beta_fast = 32, beta_slow = 1;              // yarn: turns over the trained length beyond/below which a frequency
                                                     // is kept/divided
  bool truncate = true;                              // yarn: round the bounds outwards to whole indices
  double mscale = 0, mscale_all_dim = 0;             // yarn: as DeepSeek states them; 0: not given
  double attention_factor = 0;                       // 0: what the scaling says
  bool operator==(const RopeFrequencies&) const = default;
};

// Writes the rotary_dim / 2 frequencies (radians a position), highest first, into a float view [rotary_dim / 2].
void rope_frequencies(const RopeFrequencies& f, const View& inv_freq);
double rope_attention_factor(const RopeFrequencies& f);   // m: 1 but for yarn
std::string check_frequencies(const RopeFrequencies& f);  // a sentence, or nothing: for config readers

struct Rope {
  static constexpr const char* name = "rope";
  struct Args {
    View q, k;            // [tokens, heads, d], [tokens, kv_heads, d]
    Positions positions;  // i32 [tokens]
    View q_out, k_out;    // like q and k; k_out may be absent where k_pages is written
    RopeFrequencies frequencies{};
    View inv_freq{};         // [rotary_dim / 2] f64 or f32: instead of computing them each call
    int64_t rotary_dim = 0;  // 0: d
    RopePairs pairs = RopePairs::half_split;
    View q_norm{}, k_norm{};  // [d] both or neither
    double eps = 1e-6;
    View v{};                   // [tokens, kv_heads, dv], read where v_pages is given
    View k_pages{}, v_pages{};  // [pages, kv_heads, page, d], [.., dv], any strides; both or neither; Q8_0 too
    Pages pages{};              // slots are used
    bool operator==(const Args&) const = default;
  };
  static std::span<const Operand> operands();
  static std::string check(const Args&);
  static Cost cost(const Args&);
  static std::string shape(const Args&);
  static void reference(Ctx&, const Args&, char*);
  static void planted(Ctx&, const Args&, char*);  // turns by the position after
  static Accuracy accuracy() { return {.relative = 2, .floor = 16}; }
  static std::vector<Case<Rope>> cases();
  static void vjp(Ctx&, const Args&);
  static std::string no_gradient(const Args&);  // in place, or into the cache
  static std::span<const Kernel<Rope>> kernels();
};

// The gradients, += into those given: turned back by the same angle, then through the norm. q and k are the inputs of the forward
// pass, needed where there is a norm.
struct RopeBackward {
  static constexpr const char* name = "rope_backward";
  struct Args {
    View d_q_out{}, d_k_out{};  // [tokens, heads, d], [tokens, kv_heads, d]
    Positions positions;
    View dq{}, dk{};  // one for each of the above
    RopeFrequencies frequencies{};
    View inv_freq{};
    int64_t rotary_dim = 0;
    RopePairs pairs = RopePairs::half_split;
    View q{}, k{};                                  // like d_q_out, d_k_out
    View q_norm{}, k_norm{}, dq_norm{}, dk_norm{};  // [d]
    double eps = 1e-6;
    bool operator==(const Args&) const = default;
  };
  static std::span<const Operand> operands();
  static std::string check(const Args&);
  static Cost cost(const Args&);
  static std::string shape(const Args&);
  static void reference(Ctx&, const Args&, char*);
  static void planted(Ctx&, const Args&, char*);  // turns forward again
  static Accuracy accuracy() { return {.relative = 2, .floor = 64}; }
  static std::vector<Case<RopeBackward>> cases();
  static std::span<const Kernel<RopeBackward>> kernels();
};

void rope(Ctx& x, const Rope::Args& a);
void rope_backward(Ctx& x, const RopeBackward::Args& a);

}  // namespace ridge
