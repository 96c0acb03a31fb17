// ridgeline chat: a conversation. Ctrl-C stops an answer, a second one at an empty prompt leaves, /help lists the commands.
// Each turn renders the whole conversation through the model's template and computes it anew.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

#include "app/answer.h"
#include "app/chat_commands.h"
#include "app/interrupt.h"
#include "app/line_editor.h"
#include "app/verbs.h"
#include "base/log.h"

namespace ridge {

namespace {

// A session: what it loaded and where it talks. With --json that is stderr, and stdout gets the conversation at the end.
class Chat {
 public:
  Chat(const Loaded& l, Runner& runner, Conversation& c, FILE* screen) : l_(l), runner_(runner), c_(c), screen_(screen) {}

  // Until /bye, the end of the input, or a second Ctrl-C at the prompt.
  void talk(LineEditor& editor) {
    bool leaving = false;
    for (std::string line;;) {
      const LineEditor::Event event = editor.read(line);
      if (event == LineEditor::Event::end || (event == LineEditor::Event::interrupted && leaving)) return;
      leaving = event == LineEditor::Event::interrupted;
      if (leaving) say("(Ctrl-C again, Ctrl-D or /bye leaves)\n");
      if (leaving || line.empty()) continue;
      std::string output;
      const Result<ChatStep> step = chat_command(c_, line, output);
      say(output);
      if (!step)
        report(step.status());
      else if (*step == ChatStep::leave)
        return;
      else if (*step == ChatStep::say)
        message(line);
    }
  }

 private:
  void say(const std::string& text) {
    fwrite(text.data(), 1, text.size(), screen_);
    fflush(screen_);
  }

  void message(const std::string& line) {
    c_.messages.push_back({"user", line});
    const Status s = turn();
    if (s.ok()) return;
    report(s);
    c_.messages.pop_back();  // it was not answered: it can be said again, shorter
  }

  // Answers the last message; on success the answer is the conversation's newest message.
  Status turn() {
    Result<std::vector<int32_t>> ids = prompt_ids(l_, c_.all());
    if (!ids) return ids.status();
    AnswerTimes times;
    const Request request{
        .ids = std::move(*ids), .max_tokens = c_.tokens, .sampling = params_of(c_.sampling, seed_of(c_.sampling))};
    Result<std::vector<Answer>> answers =
        answer(l_, runner_, {request}, times, [&](size_t, const std::string& text) { say(text); });
    if (!answers) return answers.status();
    const Answer& a = answers->front();
    if (a.finish == Finish::cancelled) clear_interrupt();  // one that comes after the answer is the prompt's
    say(a.finish == Finish::cancelled ? " [stopped]\n\n" : a.finish == Finish::length ? " [the limit of tokens]\n\n" : "\n\n");
    c_.messages.push_back({"assistant", a.text});
    return {};
  }

  const Loaded& l_;
  Runner& runner_;
  Conversation& c_;
  FILE* screen_;
};

}  // namespace

int chat_verb(const ChatVerb& o) {
  catch_interrupts();
  Result<std::unique_ptr<Loaded>> loaded = load(o);
  if (!loaded) return report(loaded.status());
  Loaded& l = **loaded;
  if (!l.chat_template) return report(l.chat_template.status());
  if (Status s = refuse_system(l, o.system); !s.ok()) return report(s);
  if (l.chat_template->empty())
    log_warn("{} has no chat template: every message is continued as it stands, without those before it", o.model);
  Result<std::unique_ptr<Runner>> runner =
      Runner::make(l.model, *l.runtime, {.context = o.context, .kv_type = kv_dtype(o.kv_type)});
  if (!runner) return report(runner.status());
  Conversation c{.system = o.system, .messages = {}, .tokens = o.tokens, .sampling = o.sampling};
  LineEditor editor(chat_history_file(), o.json);
  FILE* screen = o.json ? stderr : stdout;
  if (isatty(STDIN_FILENO))
    fmt::print(screen, "{}, {} tokens of context. /help lists the commands.\n", l.model.label, (*runner)->options().context);
  Chat(l, **runner, c, screen).talk(editor);
  if (!o.json) return 0;
  Json j = Json::object({{"model", l.model.label}});
  const Json conversation = to_json(c);
  for (const Json::Member& m : conversation.members()) j.set(m.key, m.value);
  print_json(j);
  return 0;
}

}  // namespace ridge
