// attention: softmax(scale q k^T) v for a ragged batch, over this step's own keys or over a paged cache.
//
//   z_ij = scale q_i . k_j        s_ij = softcap tanh(z_ij / softcap), or z_ij where softcap is 0
//   lse_i = ln(sum_j e^s_ij + e^sink)        o_i = sum_j e^(s_ij - lse_i) v_j
//
// Query i of a segment with Q queries and K keys stands at p = K - Q + i: the last query at the last key. It sees key j when j <=
// p (causal) and j > p - window (window > 0: the last `window` keys, itself included). A row that sees no key has o = 0 and an
// lse of exactly -inf, whatever its sink. Query heads share key heads in order: head h reads key head h / (heads / kv_heads).
//
// Cost: 2 (d + dv) FLOPs a visible pair; q and o once, and each visible key and value once.
// What lies past a segment's keys (rest of a page, table entries past the last page) is garbage and never read; tokens past the
// last segment are left alone. Keys that some query of the segment sees must be finite: fast rows multiply a masked one by zero.
// A segment's result does not depend on the batch's other segments nor on the number of threads.
// Not for keys of another sequence (cross attention), nor for latent keys (MLA).
#pragma once
#include "ops/op.h"
#include "ops/segments.h"

namespace ridge {

struct Attention {
  static constexpr const char* name = "attention";
  struct Args {
    View q;     // [tokens, heads, d]
    View k, v;  // flat: [tokens, kv_heads, d], [.., dv]: a segment's keys are its own
                // tokens. Paged: [pages, kv_heads, page, d], [.., dv], any strides.
                // Floating point, or Q8_0 where head dimensions are whole blocks
    Segments segments;
    View o;         // [tokens, heads, dv]
    Pages pages{};  // where a segment's keys are; the table is used when k is paged
    View lse{};     // [tokens, heads] f32 (f64 beside f64): the backward pass needs it
    View sinks{};   // [heads] a logit without a value
    double scale = 1;
    double softcap = 0;
    int64_t window = 0;  // 0: all
    bool causal = true;
    bool operator==(const Args&) const = default;
  };
  static std::span<const Operand> operands();
  static std::string check(const Args&);
  static Cost cost(const Args&);  // from segments.lengths: visible pairs and the keys they need
  static std::string shape(const Args&);
  static void reference(Ctx&, const Args&, char*);
  static void planted(Ctx&, const Args&, char*);  // each row misses its newest key
  // A score of 100 carries a rounding of 2^-18, and so does its exponential: some 64 of 2^-24.
  static Accuracy accuracy() { return {.relative = 2, .floor = 128}; }
  static std::vector<Case<Attention>> cases();
  static void vjp(Ctx&, const Args&);           // computes lse again where the call did not keep it
  static std::string no_gradient(const Args&);  // over pages
  static std::span<const Kernel<Attention>> kernels();
};

// The gradients of the flat form; += into those that are given. d_lse is the gradient that arrives at lse, where one does.
//
//   P_ij = e^(s_ij - lse_i)    D_i = d_o_i . o_i - d_lse_i    dS_ij = P_ij (d_o_i . v_j - D_i) (1 - (s_ij / softcap)^2)
//   dq_i += scale sum_j dS_ij k_j    dk_j += scale sum_i dS_ij q_i    dv_j += sum_i P_ij d_o_i
//   d_sink -= sum_i e^(sink - lse_i) D_i
//
// Cost: 5 products of 2 d FLOPs a visible pair (2.5 times the forward pass); rows may do 7, which needs no sums across threads.
struct AttentionBackward {
  static constexpr const char* name = "attention_backward";
  struct Args {
    View q, k, v;  // [tokens, heads, d], [tokens, kv_heads, d], [tokens, kv_heads, dv]
    View o, lse;   // what the forward pass gave
    View d_o;      // [tokens, heads, dv]
    Segments segments;
    View dq{}, dk{}, dv{};    // like q, k, v
    View sinks{}, d_sinks{};  // [heads]
    View d_lse{};             // [tokens, heads]
    double scale = 1;
    double softcap = 0;
    int64_t window = 0;
    bool causal = true;
    bool operator==(const Args&) const = default;
  };
  static std::span<const Operand> operands();
  static std::string check(const Args&);
  static Cost cost(const Args&);
  static std::string shape(const Args&);
  static void reference(Ctx&, const Args&, char*);
  static void planted(Ctx&, const Args&, char*);  // D is not subtracted
  static Accuracy accuracy() { return {.relative = 2, .floor = 128}; }
  static std::vector<Case<AttentionBackward>> cases();
  static std::span<const Kernel<AttentionBackward>> kernels();
};

void attention(Ctx& x, const Attention::Args& a);
void attention_backward(Ctx& x, const AttentionBackward::Args& a);

// Pairs (query, key) of a segment that the masks leave.
double visible_pairs(int64_t queries, int64_t keys, bool causal, int64_t window);

// The reference without a context, for cases that need a forward pass's results.
void attention_truth(const Attention::Args& a);

}  // namespace ridge
