// The ridgeline binary: parses the command line and hands over to a verb. CLI11 is included here and nowhere else.
#include <fcntl.h>
#include <signal.h>

#include <CLI/CLI.hpp>
#include <cctype>
#include <cstdio>
#include <new>
#include <system_error>

#include "app/op_verb.h"
#include "app/verbs.h"
#include "device/isa.h"

namespace {

using namespace ridge;

void model(CLI::App* verb, CommonOptions& o, const char* help) {
  verb->add_option("model", o.model, help)->required();
  verb->add_flag("--json", o.json, "print one JSON document (docs/json.md)");
}

void compute(CLI::App* verb, CommonOptions& o) {
  verb->add_option("-t,--threads", o.threads, "threads (default: least of affinity, cgroup quota and physical cores)")
      ->check(CLI::Range(1, 1024));
  verb->add_option("--activations", o.activations,
                   "exact: 15 bits or more; fast: 8 bits where that is faster; f32: rows of f32 alone, the slow reference")
      ->check(CLI::IsMember({"exact", "fast", "f32"}));
  verb->add_flag("--strict", o.strict, "a call that falls back from a fast row is fatal");
}

void context(CLI::App* verb, CommonOptions& o) {
  verb->add_option("-c,--context", o.context, "tokens of context (default: the model's, at most 8192)")
      ->check(CLI::Range(int64_t(8), int64_t(1) << 24));
}

void kv_type(CLI::App* verb, CommonOptions& o) {
  verb->add_option("--kv-type", o.kv_type, "type of cached keys and values; q8_0 is half of f16, mean KL 5e-4")
      ->check(CLI::IsMember({"f32", "f16", "bf16", "q8_0"}))
      ->capture_default_str();
}

// CLI11's Range lets "nan" through.
CLI::Validator between(double low, double high) {
  const auto outside = [=](const std::string& text) {
    double value = NAN;
    const bool number = CLI::detail::lexical_cast(text, value);
    return number && value >= low && value <= high
               ? ""
               : text + " is not from " + CLI::detail::to_string(low) + " to " + CLI::detail::to_string(high);
  };
  return CLI::Validator(outside, "in [" + CLI::detail::to_string(low) + " - " + CLI::detail::to_string(high) + "]");
}

void sampling(CLI::App* verb, SamplingOptions& s) {
  const auto defaults = verb->option_defaults()->get_always_capture_default();
  verb->option_defaults()->always_capture_default();
  verb->add_option("--temp,--temperature", s.temperature, "0 is greedy")->check(between(0.0, 100.0));
  verb->add_option("--top-k", s.top_k, "0 is off")->check(CLI::Range(0, 1 << 30));
  verb->add_option("--top-p", s.top_p, "1 is off")->check(between(0.0, 1.0));
  verb->add_option("--min-p", s.min_p, "0 is off")->check(between(0.0, 1.0));
  verb->add_option("--repetition-penalty", s.repetition_penalty, "1 is off")->check(between(0.01, 100.0));
  verb->add_option("--presence-penalty", s.presence_penalty, "0 is off")->check(between(-100.0, 100.0));
  verb->add_option("--frequency-penalty", s.frequency_penalty, "0 is off")->check(between(-100.0, 100.0));
  verb->option_defaults()->always_capture_default(defaults);
  verb->add_option("-s,--seed", s.seed, "same seed, same text (default: from the clock)")
      ->check(CLI::Range(int64_t(0), INT64_MAX));
}

// "128,512", as llama-bench takes it; given again it adds.
void numbers(CLI::App* verb, const char* name, std::vector<int64_t>& list, const char* help) {
  verb->add_option(name, list, help)
      ->delimiter(',')
      ->allow_extra_args(false)
      ->capture_default_str()
      ->check(CLI::Range(int64_t(0), int64_t(1) << 24));
}

void text_input(CLI::App* verb, TextVerb& o) {
  auto* input = verb->add_option_function<std::string>(
      "input", [&o](const std::string& t) { o.input.any = t, o.input.has_any = true; },
      "a file, - for standard input, or the text itself");
  auto* text = verb->add_option_function<std::string>(
                       "-p,--prompt", [&o](const std::string& t) { o.input.text = t, o.input.has_text = true; }, "the text")
                   ->excludes(input);
  verb->add_option("-f,--file", o.input.file, "a file to read the text from, - for standard input")
      ->excludes(text)
      ->excludes(input);
  verb->add_flag("--no-bos", o.no_bos, "no beginning-of-sequence token, even where the model wants one");
  verb->add_flag("--special", o.parse_special, "read <|im_start|> and the like as the tokens they name");
}

// What was printed lies in a buffer: a full disk shows here at the latest.
int flushed(int code) {
  if (fflush(stdout) == 0 && !ferror(stdout)) return code;
  return report(failed("standard output could not be written to its end; is its disk full?"));
}

std::string what_and_where(const std::string& what, const std::vector<const CLI::App*>& verbs) {
  if (verbs.empty()) return what + "; `ridgeline --help` lists what there is.";
  return what + "; `ridgeline " + verbs[0]->get_name() + " --help` lists what it takes.";
}

// What CLI11 found wrong, as our sentences are: one line that ends with where help is.
std::string sentence_of(const CLI::App& app, const CLI::ParseError& e) {
  const std::vector<const CLI::App*> verbs = app.get_subcommands([](const CLI::App* s) { return s->parsed(); });
  std::string what = e.what();
  for (const std::string& word : verbs.empty() ? app.remaining() : verbs[0]->remaining())
    if (word.starts_with("-")) return what_and_where("there is no option " + word, verbs);  // matters more than what is missing
  if (verbs.empty()) what = "name a verb";
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&e))  // "-n: 1 required INT:INT in [0 - 16777216] missing"
    what = what.substr(0, what.find(':')) + (what.ends_with("missing") ? " takes a value" : " takes one value");
  if (dynamic_cast<const CLI::ExtrasError*>(&e)) what = "there is no use for " + what.substr(what.find(": ") + 2);
  return what_and_where(what, verbs);
}

int parse_and_run(CLI::App& app, int argc, char** argv, const int& code) {
  if (argc > 1 && argv[1][0] != '-' && app.get_subcommands([&](CLI::App* s) { return s->get_name() == argv[1]; }).empty())
    return report(usage_error(std::string("there is no verb \"") + argv[1] + "\"; `ridgeline --help` lists them."));
  try {
    app.parse(argc, argv);
    return code;
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == 0) return app.exit(e);   // --help, --version
    return report(usage_error(sentence_of(app, e)));  // CLI11's own codes (105 and up) are nobody's convention
  } catch (const std::system_error&) {                // fmt's, of a stdout that takes no more: flushed() says so
    return int(Code::failed);
  } catch (const std::bad_alloc&) {
    return report(failed("there is not enough memory for this; ask for a smaller context, or free some."));
  }
}

// A file opened later must not become the standard output that someone closed: all of that would be written into it.
void keep_standard_files() {
  for (int fd = 0; fd <= 2; ++fd)
    if (fcntl(fd, F_GETFD) < 0) open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY);  // takes this number; its use stays an error
}

}  // namespace

int main(int argc, char** argv) {
  keep_standard_files();
  signal(SIGPIPE, SIG_DFL);  // `| head` ends a verb quietly, whatever the parent ignores
  CLI::App app{"Ridgeline runs, plans, measures and explains foundation models.", "ridgeline"};
  app.require_subcommand(1);
  app.set_version_flag("--version", [] { return version_text(); });
  app.footer("Exit codes: 0 done, 1 failed, 2 usage, 3 the model cannot be loaded, 130 interrupted.");
  int code = 0;

  RunVerb run;
  auto* v = app.add_subcommand("run", "answer a prompt");
  model(v, run, "a GGUF file, or a folder with config.json and safetensors");
  compute(v, run);
  context(v, run);
  kv_type(v, run);
  // A list option of CLI11 also takes the words that follow and reads "[a, b]" as two: not of a prompt.
  auto* prompt = v->add_option("-p,--prompt", run.prompts, "the prompt; given several times, all are answered in one batch")
                     ->allow_extra_args(false);
  v->add_option("-f,--file", run.prompt_file, "a file that holds the prompt, - for standard input")->excludes(prompt);
  auto* system = v->add_option("--system", run.system, "a system message");
  v->add_option("-n,--tokens", run.tokens, "tokens to generate at most")
      ->check(CLI::Range(int64_t(0), int64_t(1) << 24))
      ->capture_default_str();
  v->add_flag("--raw", run.raw, "continue the prompt as it is, without the model's chat template")->excludes(system);
  sampling(v, run.sampling);
  v->callback([&] { code = run_verb(run); });

  ChatVerb chat;
  v = app.add_subcommand("chat", "talk with a model; /help inside lists the commands");
  model(v, chat, "a GGUF file, or a folder with config.json and safetensors");
  compute(v, chat);
  context(v, chat);
  kv_type(v, chat);
  v->add_option("--system", chat.system, "a system message");
  v->add_option("-n,--tokens", chat.tokens, "tokens of an answer at most")
      ->check(CLI::Range(int64_t(1), int64_t(1) << 24))
      ->capture_default_str();
  sampling(v, chat.sampling);
  v->callback([&] { code = chat_verb(chat); });

  PlanVerb plan;
  v = app.add_subcommand("plan", "what a step must cost: FLOPs, bytes, bound, rows; nothing is executed");
  model(v, plan, "a GGUF file, a folder, or a config.json alone");
  compute(v, plan);
  kv_type(v, plan);
  v->add_option("-p,--prompt", plan.prompt, "plan the prefill of so many tokens (default: one decode step)")
      ->check(CLI::Range(int64_t(1), int64_t(1) << 24));
  v->add_option("-d,--depth", plan.depth, "tokens already in the cache")
      ->check(CLI::Range(int64_t(0), int64_t(1) << 24))
      ->capture_default_str();
  v->add_option("-b,--batch", plan.batch, "sequences in the step")
      ->check(CLI::Range(int64_t(1), int64_t(1) << 16))
      ->capture_default_str();
  v->add_option("--machine", plan.machine, "a machine file, such as machines/h200.json (default: this CPU)");
  v->add_option("--type", plan.type, "type of the weights of a config.json (default: what it says)");
  v->callback([&] { code = plan_verb(plan); });

  BenchVerb bench;
  v = app.add_subcommand("bench", "prefill and decode rates beside their bounds");
  model(v, bench, "a GGUF file, or a folder with config.json and safetensors");
  compute(v, bench);
  kv_type(v, bench);
  numbers(v, "-p", bench.prompts, "prefill lengths, comma-separated; 0: none");
  numbers(v, "-n", bench.tokens, "tokens to generate, comma-separated; 0: none");
  numbers(v, "-d", bench.depths, "tokens in the cache beforehand, comma-separated");
  v->add_option("-r", bench.repeats, "repeats, after one to warm up")->check(CLI::Range(1, 1000))->capture_default_str();
  v->add_option("-o,--output", bench.output, "form of the rows")
      ->check(CLI::IsMember({"md", "csv", "json"}))
      ->capture_default_str()
      ->excludes(v->get_option("--json"));
  v->add_option("--ledger", bench.ledger, "also write the rows to this ledger file");
  v->add_flag("--ops", bench.ops, "also time every kind of call, beside its bound and what plan predicted");
  v->add_option("--rival", bench.rivals,
                "also measure these between the repeats: llama.cpp, openvino, or a script (tools/rivals)")
      ->delimiter(',')
      ->allow_extra_args(false);
  v->add_option("--rival-python", bench.rival_python, "the Python that has the rivals' packages (default: python3)")
      ->envname("RIDGELINE_RIVAL_PYTHON");
  v->callback([&] { code = bench_verb(bench); });

  TextVerb score;
  v = app.add_subcommand("score", "log-probability of every token of a text, and its perplexity");
  model(v, score, "a GGUF file, or a folder with config.json and safetensors");
  compute(v, score);
  context(v, score);
  kv_type(v, score);
  text_input(v, score);
  v->add_flag("--reference", score.reference, "also score on rows of f32 alone: what rounding costs, as KL and equal arg-maxes");
  v->callback([&] { code = score_verb(score); });

  TextVerb tokenize;
  v = app.add_subcommand("tokenize", "the tokens of a text");
  model(v, tokenize, "a GGUF file, or a folder with tokenizer.json");
  text_input(v, tokenize);
  v->callback([&] { code = tokenize_verb(tokenize); });

  InfoVerb info;
  v = app.add_subcommand("info", "what a model file says of itself");
  model(v, info, "a GGUF file, a folder, or a config.json alone");
  v->add_flag("--tensors", info.tensors, "list every tensor");
  v->callback([&] { code = info_verb(info); });

  OpVerb op;
  v = app.add_subcommand("op", "the operators: list, check, grad, bench, why");
  v->add_option("action", op.action, "list, check, grad, bench or why")
      ->required()
      ->check(CLI::IsMember({"list", "check", "grad", "bench", "why"}));
  v->add_option("op", op.op, "an operator (default: all)");
  v->add_option("--case", op.case_filter, "the case of this name, or all whose name contains it");
  v->add_option("--row,--kernel", op.row, "rows whose name contains this (check, bench, why)");
  v->add_option("--suite", op.suite, "smoke, edge, model or fuzz; check and grad take those before it too (default: edge, model)")
      ->check(CLI::IsMember({"smoke", "edge", "model", "fuzz"}));
  v->add_option("-t,--threads", op.threads, "threads (default: 2 to check, 1 for grad, else what this machine offers)")
      ->check(CLI::Range(1, 1024));
  v->add_option("--seconds", op.seconds, "bench: of timing for each row; check: of large cases in all")->check(between(0.0, 1e6));
  v->add_option("--ledger", op.ledger, "bench: also write the rows to this ledger file");
  v->add_flag("--json", op.json, "print one JSON document (docs/json.md)");
  v->callback([&] { code = run_op_verb(op); });

  DoctorVerb doctor;
  v = app.add_subcommand("doctor", "measure this machine's ceilings and name what makes timings jitter");
  v->add_option("-t,--threads", doctor.threads, "threads")->check(CLI::Range(1, 1024));
  v->add_flag_callback(
      "--no-measure", [&] { doctor.measure = false; }, "only look, measure nothing");
  v->add_flag("--json", doctor.json, "print one JSON document (docs/json.md)");
  v->callback([&] { code = doctor_verb(doctor); });

  bool version_json = false;
  v = app.add_subcommand("version", "version, commit, compiler and instruction set");
  v->add_flag("--json", version_json, "print one JSON document (docs/json.md)");
  v->callback([&] { code = version_verb(version_json); });

  if (Result<Isa> isa = choose_isa(getenv("RIDGE_ISA")); !isa) return report(Status(Code::usage, isa.status().sentence()));
  return flushed(parse_and_run(app, argc, argv, code));
}
