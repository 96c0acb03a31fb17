// Which sequences take part in a step and with how many tokens: a pure function, so it is tested without a model.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace ridge {

struct Waiting {
  int64_t pending = 0;  // tokens not in the cache yet: the rest of a prompt, or the last sample
};

struct Share {
  int64_t sequence;  // index into the sequences given
  int64_t tokens;
  bool operator==(const Share&) const = default;
};

// Sequences that decode go first, so that a long prompt never stalls them; what is left of `budget` goes to prompts in order, cut
// into chunks (Agrawal et al., "Sarathi-Serve", OSDI 2024, section 4).
std::vector<Share> schedule(std::span<const Waiting> sequences, int64_t budget);

}  // namespace ridge
