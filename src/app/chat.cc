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

namespace ridge {

namespace {

void say(const std::string& text) {
  fwrite(text.data(), 1, text.size(), stdout);
  fflush(stdout);
}

// Answers the last message; on success the answer is the conversation's newest message.
Status turn(const Loaded& l, Runner& runner, Conversation& c) {
  Result<std::vector<int32_t>> ids = prompt_ids(l, c.all());
  if (!ids) return ids.status();
  AnswerTimes times;
  const Request request{.ids = std::move(*ids), .max_tokens = c.tokens, .sampling = params_of(c.sampling, seed_of(c.sampling))};
  Result<std::vector<Answer>> answers = answer(l, runner, {request}, times, [](size_t, const std::string& text) { say(text); });
  if (!answers) return answers.status();
  const Answer& a = answers->front();
  if (a.finish == Finish::cancelled) clear_interrupt();  // one that comes after the answer is the prompt's
  say(a.finish == Finish::cancelled ? " [stopped]\n\n" : a.finish == Finish::length ? " [the limit of tokens]\n\n" : "\n\n");
  c.messages.push_back({"assistant", a.text});
  return {};
}

}  // namespace

int chat_verb(const ChatVerb& o) {
  catch_interrupts();
  Result<std::unique_ptr<Loaded>> loaded = load(o);
  if (!loaded) return report(loaded.status());
  Loaded& l = **loaded;
  if (!l.chat_template) return report(l.chat_template.status());
  Result<std::unique_ptr<Runner>> runner =
      Runner::make(l.model, *l.runtime, {.context = o.context, .kv_type = kv_dtype(o.kv_type)});
  if (!runner) return report(runner.status());
  Conversation c{.system = o.system, .messages = {}, .tokens = o.tokens, .sampling = o.sampling};
  LineEditor editor(chat_history_file());
  if (isatty(STDIN_FILENO))
    fmt::print("{}, {} tokens of context. /help lists the commands.\n", l.model.label, (*runner)->options().context);
  bool leaving = false;
  for (std::string line;;) {
    const LineEditor::Event event = editor.read(line);
    if (event == LineEditor::Event::end || (event == LineEditor::Event::interrupted && leaving)) return 0;
    leaving = event == LineEditor::Event::interrupted;
    if (leaving) say("(Ctrl-C again, Ctrl-D or /bye leaves)\n");
    if (leaving || line.empty()) continue;
    std::string output;
    Result<ChatStep> step = chat_command(c, line, output);
    say(output);
    if (!step.ok())
      report(step.status());
    else if (*step == ChatStep::leave)
      return 0;
    else if (*step == ChatStep::say) {
      c.messages.push_back({"user", line});
      if (Status s = turn(l, **runner, c); !s.ok()) {
        report(s);
        c.messages.pop_back();  // the message was not answered: it can be said again, shorter
      }
    }
  }
}

}  // namespace ridge
