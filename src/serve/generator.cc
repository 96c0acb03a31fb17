#include "serve/generator.h"

#include <fmt/format.h>

#include <algorithm>

#include "serve/schedule.h"

namespace ridge {

const char* name_of(Finish f) {
  constexpr const char* names[] = {"none", "end", "length", "cancelled"};
  return names[int(f)];
}

Generator::Settings Generator::alloc_settings(Arena& a, int64_t rows, int64_t context) {
  auto row = [&](DType t) { return a.alloc({rows}, t); };
  return {row(DType::i32), row(DType::f32), row(DType::f32), row(DType::i32), row(DType::f32),
          row(DType::f32), row(DType::f32), row(DType::f32), row(DType::f32), a.alloc({rows, context}, DType::i32),
          row(DType::i32), row(DType::i32), row(DType::i64), row(DType::i32)};
}

int64_t Generator::settings_bytes(int64_t rows, int64_t context) {
  Arena measure;
  alloc_settings(measure, rows, context);
  return measure.peak();
}

Generator::Generator(Runner& runner, std::vector<int32_t> end_ids)
    : runner_(runner),
      end_ids_(std::move(end_ids)),
      settings_memory_(settings_bytes(runner.options().sequences, runner.options().context)),
      settings_(alloc_settings(settings_memory_, runner.options().sequences, runner.options().context)) {}

Result<int64_t> Generator::submit(Request request) {
  const int64_t n = int64_t(request.ids.size()), context = runner_.options().context;
  if (n == 0) return failed("The prompt is empty; give at least one token.");
  if (n >= context)
    return failed(fmt::format("The prompt has {} tokens and the context holds {}; give a shorter prompt or a larger --context.",
                              n, context));
  for (int32_t id : request.ids)
    if (id < 0 || id >= runner_.model().vocab)
      return failed(fmt::format("The token {} is not in the vocabulary of {}; the prompt was made with another tokenizer.", id,
                                runner_.model().vocab));
  Sequence s{.number = next_++, .request = std::move(request)};
  s.most = n + std::min(context - n, s.request.max_tokens);  // no sum that overflows
  s.tokens.reserve(s.most);
  s.tokens = s.request.ids;
  waiting_.push_back(std::move(s));
  return waiting_.back().number;
}

void Generator::cancel(int64_t request) {
  std::erase_if(waiting_, [&](const Sequence& s) { return s.number == request; });
  for (auto s = running_.begin(); s != running_.end(); ++s)
    if (s->number == request) {
      runner_.pool().release(s->state);
      running_.erase(s);
      return;
    }
}

void Generator::admit() {
  while (!waiting_.empty() && int64_t(running_.size()) < runner_.options().sequences &&
         runner_.pool().grow(waiting_.front().state, waiting_.front().most)) {
    running_.push_back(std::move(waiting_.front()));
    waiting_.pop_front();
  }
}

Finish Generator::finish_of(const Sequence& s, int32_t id) const {
  if (std::find(end_ids_.begin(), end_ids_.end(), id) != end_ids_.end()) return Finish::end;
  return int64_t(s.tokens.size()) >= s.most ? Finish::length : Finish::none;
}

const std::vector<Generated>& Generator::step() {
  out_.clear();
  admit();
  std::vector<Waiting> waiting;
  for (const Sequence& s : running_) waiting.push_back({int64_t(s.tokens.size()) - s.state.tokens});
  std::vector<Runner::Input> inputs;
  std::vector<Sequence*> rows;
  for (const Share& share : schedule(waiting, runner_.options().step_tokens)) {
    Sequence& s = running_[share.sequence];
    const bool last = share.tokens == waiting[share.sequence].pending && s.request.max_tokens > 0;
    inputs.push_back({&s.state, std::span(s.tokens).subspan(s.state.tokens, share.tokens), last});
    if (last) rows.push_back(&s);
  }
  if (inputs.empty()) return out_;
  const View logits = runner_.step(inputs);
  if (!rows.empty()) sample_rows(logits, rows);
  for (size_t r = 0; r < rows.size(); ++r) {
    Sequence& s = *rows[r];
    const int32_t id = settings_.ids.as<int32_t>()[r];
    s.tokens.push_back(id);
    out_.push_back({s.number, id, settings_.logprobs.get(r), finish_of(s, id)});
  }
  for (const Generated& g : out_)
    if (g.finish != Finish::none) cancel(g.request);  // its pages are free again
  // A request for no tokens is done when its prompt is in the cache.
  for (size_t i = running_.size(); i-- > 0;)
    if (running_[i].request.max_tokens == 0 && running_[i].state.tokens == int64_t(running_[i].tokens.size()))
      cancel(running_[i].number);
  return out_;
}

void Generator::sample_rows(const View& logits, const std::vector<Sequence*>& rows) {
  const Settings& v = settings_;
  const int64_t n = int64_t(rows.size());
  bool penalties = false;
  for (int64_t r = 0; r < n; ++r) {
    const SamplingParams& p = rows[r]->request.sampling;
    v.temperature.set(p.temperature, r), v.top_k.set(p.top_k, r), v.top_p.set(p.top_p, r), v.min_p.set(p.min_p, r);
    v.repetition.set(p.repetition, r), v.presence.set(p.presence, r), v.frequency.set(p.frequency, r);
    *v.seed.as<int64_t>(r) = p.seed;
    v.step.set(double(rows[r]->generated()), r);
    const bool needs_history = p.repetition != 1 || p.presence != 0 || p.frequency != 0;
    v.history_len.set(needs_history ? double(rows[r]->tokens.size()) : 0, r);
    v.generated_from.set(double(rows[r]->request.ids.size()), r);
    if (needs_history) std::copy(rows[r]->tokens.begin(), rows[r]->tokens.end(), v.history.as<int32_t>(r));
    penalties = penalties || needs_history;
  }
  auto head = [n](const View& view) { return view.rows(0, n); };
  Sample::Args a{.logits = logits,
                 .ids = head(v.ids),
                 .logprobs = head(v.logprobs),
                 .temperature = head(v.temperature),
                 .top_k = head(v.top_k),
                 .top_p = head(v.top_p),
                 .min_p = head(v.min_p),
                 .seed = head(v.seed),
                 .step = head(v.step)};
  if (penalties) {
    a.repetition = head(v.repetition), a.presence = head(v.presence), a.frequency = head(v.frequency);
    a.history = head(v.history), a.history_len = head(v.history_len), a.generated_from = head(v.generated_from);
  }
  runner_.after([&](Ctx& x) { sample(x, a); });
}

}  // namespace ridge
