// sample: from a row of logits to a token. Every row of the batch has its own settings; a row's token depends on nothing but its own
// row, its seed and its step, so the other members of a batch, their number and the thread count do not matter.
//
// The contract, in the order in which things happen to row r (all in double; every kernel yields the same ids):
//   0. NaN logits count as -inf.
//   1. bias        z[bias_ids] += bias_values; an id named twice gets both. -inf bans a token.
//   2. penalties   repetition p: each token of history[0, history_len) once: z > 0 ? z / p : z * p.
//                  presence, frequency: each token of history[generated_from, history_len), once: z -= presence; and for every
//                  occurrence: z -= frequency. So prompts are repetition's business alone.
//   3. temperature T <= 0 is greedy: the largest z, the lowest id among equals, and steps 4 to 7 fall away. Else weights
//                  w = exp((z - max z) / T); below e^-40 they are 0 (5e-13 of a vocabulary).
//   4. top_k       keeps the k largest z, lower ids first among equals. k <= 0 or k >= vocab: off.
//   5. top_p       of what is left, in the same order: the shortest run whose weights sum to >= p times those left. p >= 1: off.
//   6. min_p       of what is left: the tokens with w >= min_p (the largest w is 1). min_p <= 0: off.
//                  The largest token always stays.
//   7. the draw    u = uniform(seed, step) in (0, 1), one number a row; the token where the running sum of the kept weights, in
//                  the order of ids, passes u times their sum (see draw.h for how the sums are grouped).
// When nothing is left (every z is -inf) the id is 0 and its logprob -inf: in range, and to be seen.
// Tokens at +inf share everything equally; the others have weight 0.
//
// logprobs and top_logprobs are of the raw logits (step 0 only): log softmax, natural. top_ids: the largest raw logits, lower ids first
// among equals. Ids in bias_ids and history that are no token (-1 fills) are passed over.
//
// Cost: the logits once; about four operations a token. Not for grammars (a mask is a bias) nor speculation's acceptance.
#pragma once
#include "ops/op.h"

namespace ridge {

struct Sample {
  static constexpr const char* name = "sample";
  struct Args {
    View logits;                                 // [rows, vocab]
    View ids;                                    // i32 [rows], out
    View logprobs{};                             // [rows], out: of ids
    View top_ids{}, top_logprobs{};              // i32, float [rows, n], out: n <= vocab
    View temperature{};                          // [rows]; absent: greedy
    View top_k{};                                // i32 [rows]
    View top_p{}, min_p{};                       // [rows]
    View repetition{}, presence{}, frequency{};  // [rows]; 1, 0, 0 are off
    View history{};                              // i32 [rows, max]: prompt, then output
    View history_len{}, generated_from{};        // i32 [rows]; cut to [0, max]
    View bias_ids{}, bias_values{};              // i32, float [rows, n]
    View seed{}, step{};                         // i64, i32 [rows]; both needed with a temperature
    bool operator==(const Args&) const = default;
  };
  static std::span<const Operand> operands();
  static std::string check(const Args&);
  static Cost cost(const Args&);
  static std::string shape(const Args&);
  static void reference(Ctx&, const Args&, char*);
  static void planted(Ctx&, const Args&, char*);  // top_p without the token that crosses it; logprob after temperature
  static Accuracy accuracy() { return {.relative = 2, .floor = 16}; }  // sums of f32 exponentials
  static std::vector<Case<Sample>> cases();
  static std::span<const Kernel<Sample>> kernels();
};

void sample(Ctx& x, const Sample::Args& a);

}  // namespace ridge
