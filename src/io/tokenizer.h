// Byte-level BPE: text to token ids and back, equal to the `tokenizers` library for the models that Ridgeline reads.
//
// A text travels: broken UTF-8 is repaired (unicode.h); added tokens (<|im_end|>) are cut out; what lies between is normalised when
// the model asks for it, pre-tokenised into pieces (pretokenizer.h), and each piece's bytes are merged (tokenizer_bpe.h).
// A Tokenizer is immutable after it is made: any number of threads may encode with one.
//
// Two traps follow the library on purpose: a byte that the vocabulary has no token for (SmolLM2 lacks U+0004) is dropped unless the
// model names an unknown token, and special tokens inside a text become text unless parse_special is asked for.
// Not for: sentencepiece and WordPiece vocabularies, which are refused with a sentence.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "io/pretokenizer.h"
#include "io/tokenizer_added.h"
#include "io/tokenizer_bpe.h"

namespace ridge {

// The numbers are those of GGUF's tokenizer.ggml.token_type.
enum class TokenType : int32_t { normal = 1, unknown = 2, control = 3, user_defined = 4, unused = 5, byte = 6 };

// A tokenizer as plain data, filled from GGUF metadata or a tokenizer.json. -1 stands for "no such token".
struct TokenizerData {
  std::string source = "the tokenizer";  // begins error sentences
  std::vector<std::string>
      tokens;  // [vocabulary] as the files spell them: byte-level alphabet for normal tokens, plain text for added ones
  std::vector<TokenType> types;     // [vocabulary] or empty: all normal
  std::vector<std::string> merges;  // "left right", best first
  std::vector<AddedToken> added;    // empty: every control, unknown and user-defined token, without flags
  std::vector<SplitRule> rules;
  bool ignore_merges = false;
  bool nfc = false;
  int32_t missing_byte = -1;        // stands for bytes without a token; -1: they are dropped
  bool fuse_missing_bytes = false;  // one for a run of them
  int32_t bos = -1, eos = -1, eot = -1, unk = -1, pad = -1;
  std::vector<int32_t> more_end_ids;  // further tokens that end a generation
  bool add_bos = false, add_eos = false;
};

struct EncodeOptions {
  bool add_bos = false;  // put the model's BOS first, unless the text already starts with it; nothing when it has none
  bool add_eos = false;
  bool parse_special = false;      // special tokens in the text are themselves; otherwise their text is only text
  bool parse_user_defined = true;  // the same for added tokens that are not special, such as <think>
};

class Tokenizer {
 public:
  static Result<Tokenizer> make(TokenizerData data);

  std::vector<int32_t> encode(std::string_view text, EncodeOptions options = {}) const;
  // The bytes a token stands for: may be half a character. Empty for an id outside of the vocabulary.
  std::string_view piece(int32_t id) const;
  // Well-formed UTF-8; broken sequences become U+FFFD.
  std::string decode(std::span<const int32_t> ids, bool show_control = true) const;

  std::optional<int32_t> find(std::string_view bytes) const;  // the token that stands for exactly these bytes
  bool is_control(int32_t id) const;
  bool is_end(int32_t id) const;
  const std::vector<int32_t>& end_ids() const { return end_ids_; }  // sorted: EOS, EOT and the model's other end markers
  int32_t bos() const { return bos_; }                              // -1 when the model has none; likewise below
  int32_t eos() const { return eos_; }
  int32_t eot() const { return eot_; }
  int32_t unk() const { return unk_; }
  int32_t pad() const { return pad_; }
  bool add_bos() const { return add_bos_; }  // whether the model wants prompts to start with BOS
  bool add_eos() const { return add_eos_; }
  int64_t size() const { return int64_t(types_.size()); }

 private:
  struct Encoding;
  Tokenizer() = default;
  Status take_tokens(const TokenizerData& data);
  Status take_merges(const TokenizerData& data);
  Status take_added(const TokenizerData& data);
  Status take_special_ids(const TokenizerData& data);
  int32_t find_normal(std::string_view bytes) const;  // -1 when there is none
  size_t slot_of(std::string_view bytes) const;
  void encode_word(std::string_view word, std::vector<int32_t>& ids) const;

  std::string source_;
  std::string bytes_;              // all pieces, one after the other
  std::vector<uint32_t> offsets_;  // [vocabulary + 1] into bytes_
  std::vector<TokenType> types_;   // [vocabulary]
  std::vector<int32_t> normal_;    // open addressing over the bytes of normal tokens; -1 is free
  std::vector<int32_t> byte_ids_;  // [256] the token of each single byte, -1 when there is none
  BpeMerges merges_;
  AddedTokens raw_added_, normalized_added_;
  Pretokenizer pretokenizer_;
  bool ignore_merges_ = false, nfc_ = false, fuse_missing_ = false, add_bos_ = false, add_eos_ = false;
  int32_t missing_ = -1, bos_ = -1, eos_ = -1, eot_ = -1, unk_ = -1, pad_ = -1;
  std::vector<int32_t> end_ids_;
};

// Token ids in, text out as it becomes certain: never half a character, never a replacement for a character that is still arriving.
class Detokenizer {
 public:
  explicit Detokenizer(const Tokenizer& tokenizer, bool show_control = false)
      : tokenizer_(&tokenizer), show_control_(show_control) {}
  std::string push(int32_t id);
  std::string flush();  // what is left at the end, an incomplete character as U+FFFD

 private:
  const Tokenizer* tokenizer_;
  std::string pending_;  // the beginning of a character
  bool show_control_;
};

}  // namespace ridge
