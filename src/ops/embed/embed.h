// embed: y[t] = scale * table[ids[t]], the token's row of the table; a negative id (padding) writes zeros.
//
// Cost: the rows used are read once and y is written; no arithmetic to speak of. The table may be of any type, block formats included.
// An id past the table's end is the caller's mistake (tokenizers and requests are checked long before): every row aborts on it.
// embed_backward: dtable[ids[t]] += scale * dy[t], in the order of the tokens, so repeated tokens add up the same way every time.
#pragma once
#include "ops/op.h"

namespace ridge {

struct Embed {
  static constexpr const char* name = "embed";
  struct Args {
    View ids;          // i32 [tokens]
    View table;        // [vocab, n]
    View y;            // [tokens, n]
    double scale = 1;  // Gemma: sqrt(n)
    bool operator==(const Args&) const = default;
  };
  static std::span<const Operand> operands();
  static std::string check(const Args&);
  static Cost cost(const Args&);
  static std::string shape(const Args&);
  static void reference(Ctx&, const Args&, char*);
  static void planted(Ctx&, const Args&, char*);  // reads the row beside
  static Accuracy accuracy() { return {.relative = 2, .floor = 1}; }
  static std::vector<Case<Embed>> cases();
  static void vjp(Ctx&, const Args&);
  static std::span<const Kernel<Embed>> kernels();
};

struct EmbedBackward {
  static constexpr const char* name = "embed_backward";
  struct Args {
    View ids;     // i32 [tokens]
    View dy;      // [tokens, n]
    View dtable;  // [vocab, n], added to
    double scale = 1;
    bool operator==(const Args&) const = default;
  };
  static std::span<const Operand> operands();
  static std::string check(const Args&);
  static Cost cost(const Args&);
  static std::string shape(const Args&);
  static void reference(Ctx&, const Args&, char*);
  static void planted(Ctx&, const Args&, char*);                       // a repeated token keeps only its last gradient
  static Accuracy accuracy() { return {.relative = 2, .floor = 16}; }  // a token repeated a thousand times is a sum of a thousand
  static std::vector<Case<EmbedBackward>> cases();
  static std::span<const Kernel<EmbedBackward>> kernels();
};

void embed(Ctx& x, const Embed::Args& a);
void embed_backward(Ctx& x, const EmbedBackward::Args& a);

}  // namespace ridge
