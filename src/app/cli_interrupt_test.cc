// The binary and its surroundings: Ctrl-C in every phase, a reader that goes away, and a conversation over a pipe.
#include "app/cli_testing.h"

namespace ridge {
namespace {

using testing::HasSubstr;
using testing::Not;

// Hours of answer: nothing ends it but a signal.
const TinyOptions kEndless{.context = 1 << 20, .eos = -1};
const Words kLong = {"-n", "1000000", "-c", "1000000", "-s", "1", "-t", "2"};

class Interrupt : public Cli {
 protected:
  std::string endless() const { return tiny(kEndless); }
  Words long_run(Words more = {}) const {
    Words words = {"run", endless()};  // the prompt comes from standard input
    words.insert(words.end(), kLong.begin(), kLong.end());
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
};

TEST_F(Interrupt, DuringAnAnswerItsTextIsFlushedAndTheLastLinePrinted) {
  Program p(long_run({"-p", "the hen"}), {});
  ASSERT_TRUE(p.printed(200));
  p.send(SIGINT);
  const Outcome r = p.wait();
  EXPECT_EQ(r.code, 130);
  EXPECT_TRUE(r.out.ends_with('\n'));
  EXPECT_THAT(r.err, HasSubstr("decode "));
  EXPECT_THAT(r.err, HasSubstr("peak memory"));
}

TEST_F(Interrupt, DuringAnAnswerJsonIsStillOneDocument) {
  Program p(long_run({"--json"}), {.ask = true});
  p.say("the hen");
  ASSERT_TRUE(p.taken());
  p.end_input();
  usleep(300'000);  // well into the answer, or before it: both must end alike
  p.send(SIGINT);
  const Outcome r = p.wait();
  EXPECT_EQ(r.code, 130) << r.err;
  if (r.out.empty()) {
    EXPECT_THAT(r.err, HasSubstr("interrupted"));
    return;
  }
  Result<Json> j = parse_json(r.out, "stdout", kRequestJson);
  ASSERT_TRUE(j.ok()) << r.out;
  EXPECT_EQ((*j)["answers"][size_t(0)].get_string("finish"), "cancelled");
}

TEST_F(Interrupt, TwiceEndsAtOnce) {
  Program p(long_run({"-p", "the hen"}), {});
  ASSERT_TRUE(p.printed(200));
  p.send(SIGINT), p.send(SIGINT), usleep(1000), p.send(SIGINT);
  EXPECT_EQ(p.wait().code, 130);
}

TEST_F(Interrupt, WhileThePromptIsTyped) {
  Program p({"run", endless(), "-t", "1"}, {.ask = true});
  p.say("the h");
  ASSERT_TRUE(p.taken());
  p.send(SIGINT);
  const Outcome r = p.wait();
  EXPECT_EQ(r.code, 130) << r.err;
  EXPECT_EQ(r.out, "");
}

// The ceilings of a new machine are measured while a model is loaded, three seconds: Ctrl-C then leaves no answer and no half file.
TEST_F(Interrupt, DuringLoad) {
  const std::string fresh = at("fresh");
  Program p(long_run(), {.environment = {{"XDG_CACHE_HOME", fresh}}, .ask = true});
  p.say("the hen");
  ASSERT_TRUE(p.taken());
  p.end_input();
  usleep(100'000);  // wherever it is by then
  p.send(SIGINT);
  const Outcome r = p.wait();
  EXPECT_EQ(r.code, 130) << r.err;
  EXPECT_EQ(r.out, "");
  EXPECT_EQ(system(("test -z \"$(find '" + fresh + "' -name '*.part')\"").c_str()), 0);
}

TEST_F(Interrupt, OtherVerbsEndWithTheCodeOfAShell) {
  for (const Words& words : {Words{"score", tiny(), "-"}, Words{"tokenize", tiny(), "-"}}) {
    Program p(words, {.ask = true});
    p.say("the hen");
    ASSERT_TRUE(p.taken());
    p.send(SIGINT);
    const Outcome r = p.wait();
    EXPECT_EQ(r.code, 130);
    EXPECT_EQ(r.out, "");
  }
}

TEST_F(Interrupt, BenchKeepsTheRowsItHas) {
  Program p({"bench", endless(), "-p", "16", "-n", "0", "-d", "0,200000", "-r", "1", "-t", "1", "-o", "csv"}, {});
  ASSERT_TRUE(p.printed("pp16"));
  p.send(SIGINT);
  const Outcome r = p.wait();
  EXPECT_EQ(r.code, 130);
  EXPECT_THAT(r.out, Not(HasSubstr("nan")));
}

// ---- readers that go away

TEST_F(Interrupt, AReaderThatLeavesEndsTheProgramQuietly) {
  for (bool ignored : {false, true}) {
    Program p(long_run({"-p", "the hen"}), {.ignore_pipe = ignored});
    ASSERT_TRUE(p.printed(50));
    p.close_output();
    const Outcome r = p.wait();
    EXPECT_EQ(r.code, 128 + SIGPIPE) << "ignored by the parent: " << ignored;
    EXPECT_EQ(r.err, "");
  }
  Program table({"score", endless(), "-p", std::string(2'000, 'x'), "-t", "1", "-c", "200000"}, {.ignore_pipe = true});
  table.close_output();
  EXPECT_EQ(table.wait().err, "");
}

// ---- chat

TEST_F(Interrupt, InChatItStopsTheAnswerAlone) {
  for (bool terminal : {false, true}) {
    SCOPED_TRACE(terminal ? "terminal" : "pipe");
    Program p({"chat", endless(), "-n", "1000000", "-c", "1000000", "-s", "1", "-t", "2"},
              {.environment = {{"TERM", "xterm"}, {"HOME", at("home")}}, .ask = true, .terminal = terminal});
    const auto interrupt = [&] { terminal ? p.say("\x03") : p.send(SIGINT); };
    ASSERT_TRUE(!terminal || p.printed("> "));
    p.say("the hen\n");
    ASSERT_TRUE(p.printed(400)) << "a prompt, its echo and much of an answer";
    interrupt();
    ASSERT_TRUE(p.printed("[stopped]"));
    interrupt();
    ASSERT_TRUE(p.printed("Ctrl-C again")) << "at the prompt, or just before it";
    p.say("/show\n");
    ASSERT_TRUE(p.printed("messages            2"));
    p.say("/bye\n");
    const Outcome r = p.wait();
    EXPECT_EQ(r.code, 0) << r.err;
    EXPECT_EQ(r.err, "");
  }
}

TEST_F(Interrupt, ChatAnswersOverAPipe) {
  Program p({"chat", tiny(), "-n", "5", "-s", "1", "-t", "1"}, {.ask = true});
  p.say("the hen\n/show\n/bye\n");
  const Outcome r = p.wait();
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_THAT(r.out, HasSubstr("messages            2"));
  EXPECT_EQ(r.err, "");
}

TEST_F(Interrupt, ChatSavesAndLoadsItsConversation) {
  const std::string model = tiny(), file = at("talk.json");
  Program first({"chat", model, "-n", "5", "-s", "1", "-t", "1", "--system", "be kind"}, {.ask = true});
  first.say("the hen\n/set temperature 0.5\n/save " + file + "\n");
  EXPECT_EQ(first.wait().code, 0);
  Result<Json> j = read_json(file);
  ASSERT_TRUE(j.ok());
  EXPECT_EQ((*j)["messages"].size(), 2u);
  EXPECT_EQ(j->get_string("system"), "be kind");
  EXPECT_EQ((*j)["settings"].get_number("temperature", 0), 0.5);
  Program second({"chat", model, "-t", "1"}, {.ask = true});
  second.say("/load " + file + "\n/show\n");
  EXPECT_THAT(second.wait().out, HasSubstr("system message      be kind\nmessages            2"));
}

TEST_F(Interrupt, ChatSurvivesWhatCannotBeDone) {
  const std::string blocker = put("file", "x");
  Program p({"chat", tiny(), "-n", "5", "-s", "1", "-t", "1"}, {.ask = true});
  p.say("/save " + blocker + "/talk.json\n/load " + at("none.json") + "\n/load " + blocker +
        "\n/sing\n/set top_p 7\n/set tokens 1.5\n");
  p.say(std::string(400, 'x') + "\nthe hen\n/show\n");
  const Outcome r = p.wait();
  EXPECT_EQ(r.code, 0) << r.err;
  for (const char* says : {"talk.json", "none.json", "file: line 1", "/sing", "/set top_p takes a number from 0 to 1",
                           "/set tokens takes a whole number", "400 tokens"})
    EXPECT_THAT(r.err, HasSubstr(says));
  EXPECT_THAT(r.out, HasSubstr("messages            2")) << "the message that was too long is forgotten, the next one answered";
  EXPECT_THAT(r.out, Not(HasSubstr("Saved")));
}

}  // namespace
}  // namespace ridge
