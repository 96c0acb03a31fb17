// The verbs of the binary: each takes its parsed options, prints, and returns the exit code. main.cc parses, one file a verb does.
#pragma once
#include <string>
#include <vector>

#include "base/status.h"
#include "io/json.h"

namespace ridge {

// What every verb that loads a model shares.
struct CommonOptions {
  std::string model;
  int threads = 0;  // 0: least of affinity, quota and physical cores
  bool json = false;
  bool strict = false;                // a fallback from a fast row is fatal
  std::string activations = "exact";  // exact, fast or f32: what rows may round activations to
  std::string kv_type = "f16";
  int64_t context = 0;  // 0: the model's own, at most 8,192
};

struct SamplingOptions {
  double temperature = 0.8, top_p = 0.95, min_p = 0.05;
  int top_k = 40;
  double repetition_penalty = 1, presence_penalty = 0, frequency_penalty = 0;
  int64_t seed = -1;  // -1: from the clock, shown in --json
};

struct RunVerb : CommonOptions {
  std::vector<std::string> prompts;  // several are answered in one batch
  std::string prompt_file, system;
  int64_t tokens = 256;
  bool raw = false;  // the prompt as it is, no chat template
  SamplingOptions sampling;
};

struct ChatVerb : CommonOptions {
  std::string system;
  int64_t tokens = 1024;
  SamplingOptions sampling;
};

struct PlanVerb : CommonOptions {
  int64_t prompt = 0;  // tokens of a prefill; 0: one decode step
  int64_t depth = 0, batch = 1;
  std::string machine;  // a machine file; empty: this CPU
  std::string type;     // what a shape's weights would be stored as; empty: its config's type
};

struct BenchVerb : CommonOptions {
  std::vector<int64_t> prompts = {512}, tokens = {128}, depths = {0};
  int repeats = 5;
  std::string output = "md";        // md, csv or json
  std::string ledger;               // append rows to this file
  bool ops = false;                 // also time every kind of call
  std::vector<std::string> rivals;  // names of tools/rivals/rival_NAME.py, or paths of such scripts
  std::string rival_python = "python3";
};

struct TextInput {
  std::string any;         // a file that exists, "-" for standard input, or the text itself
  std::string text, file;  // -p, -f: unmistakable forms
  bool has_any = false, has_text = false;
};

struct TextVerb : CommonOptions {  // score and tokenize
  bool reference = false;          // score: beside the f32 path
  TextInput input;
  bool no_bos = false, parse_special = false;
};

struct InfoVerb : CommonOptions {
  bool tensors = false;
};

struct DoctorVerb {
  bool json = false, measure = true;
  int threads = 0;
};

int run_verb(const RunVerb& o);
int chat_verb(const ChatVerb& o);
int plan_verb(const PlanVerb& o);
int bench_verb(const BenchVerb& o);
int score_verb(const TextVerb& o);
int tokenize_verb(const TextVerb& o);
int info_verb(const InfoVerb& o);
int doctor_verb(const DoctorVerb& o);
int version_verb(bool json);
std::string version_text();

// ---- what the verbs share
int report(const Status& s);     // one line on stderr; the exit code
void print_json(const Json& j);  // one document on stdout
Result<std::string> read_input(const TextInput& o);

}  // namespace ridge
