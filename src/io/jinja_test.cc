#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <ctime>

#include "base/check.h"
#include "io/chat_template.h"
#include "io/test_files.h"

namespace ridge {
namespace {

using jinja::Value;

// The moment that tools/goldens/jinja.py pretends it is: 2024-07-26 12:30:05, local time.
jinja::Options options() {
  tm t{};
  t.tm_year = 124, t.tm_mon = 6, t.tm_mday = 26, t.tm_hour = 12, t.tm_min = 30, t.tm_sec = 5, t.tm_isdst = -1;
  jinja::Options o;
  o.now = mktime(&t);
  return o;
}

Result<std::string> rendered(std::string_view source, const Json& variables, const jinja::Options& o = options()) {
  const auto t = jinja::compile(source);
  if (!t) return t.status();
  return jinja::render(*t, value_of(variables), o);
}

std::string text_of(std::string_view source, const char* variables = "{}") {
  const auto json = parse_json(variables, "variables", kModelFileJson);
  const auto r = rendered(source, *json);
  return r ? *r : "error: " + r.status().sentence();
}

std::string error_of(std::string_view source, const jinja::Options& o = options()) {
  const auto r = rendered(source, Json::object(), o);
  return r ? "no error but: " + r->substr(0, 100) : r.status().sentence();
}

const Json& goldens() {
  static const auto json = read_json(RIDGE_SOURCE_DIR "/src/io/goldens/jinja.json");
  RIDGE_CHECK(json, json.status().sentence());
  return *json;
}

// `expected` is ["ok", text] or ["error", words that the template itself raised].
void expect_outcome(const Result<std::string>& r, const Json& kind, const Json& expected, const std::string& what) {
  const std::string got = r ? "ok: " + *r : "error: " + r.status().sentence();
  if (*kind.string() == "ok")
    EXPECT_EQ(got, "ok: " + *expected.string()) << what;
  else
    EXPECT_TRUE(!r && got.find(*expected.string()) != std::string::npos)
        << what << "\nexpected an error " << *expected.string() << "\ngot " << got;
}

TEST(Jinja, SnippetsEqualPythonJinja) {
  const Json& g = goldens();
  ASSERT_GE(g["snippets"].size(), 300u);
  for (const Json& c : g["snippets"].items())
    expect_outcome(rendered(*c[size_t(0)].string(), g["globals"]), c[1], c[2], *c[size_t(0)].string());
}

TEST(Jinja, ChatTemplatesEqualPythonJinja) {
  const Json& g = goldens();
  ASSERT_GE(g["chats"].size(), 150u);
  for (const Json& c : g["chats"].items()) {
    const std::string name = *c[size_t(0)].string(), label = *c[1].string();
    const Json& conversation = g["conversations"][label];
    const auto t = jinja::compile(*g["templates"][name].string());
    ASSERT_TRUE(t) << name << ": " << t.status().sentence();
    ChatOptions o{.add_generation_prompt = conversation.get_bool("prompt", true), .bos_token = "<s>", .eos_token = "</s>"};
    if (conversation.get_bool("tools", false)) o.tools = g["tools"];
    o.variables = conversation["variables"];
    o.limits = options();
    expect_outcome(render_chat(*t, conversation["messages"], o), c[2], c[3], name + " / " + label);
  }
}

TEST(ChatTemplate, PlainMessagesAndPreparedOnesRenderAlike) {
  const std::string source = *goldens()["templates"]["smollm2"].string();
  const auto text = render_chat(source, {{"system", "S"}, {"user", "Hi"}});
  ASSERT_TRUE(text);
  EXPECT_EQ(*text, "<|im_start|>system\nS<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n");
  EXPECT_EQ(*render_chat(source, {{"user", "Hi"}}, {.add_generation_prompt = false}),
            "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging "
            "Face<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n");
  EXPECT_EQ(*render_chat("{{ bos_token is defined }}{{ tools }}", {}), "FalseNone");
  const auto t = jinja::compile(source);
  EXPECT_EQ(render_chat(*t, Json("text")).status().sentence(), "The messages of a conversation are an array, not a string.");
}

TEST(Jinja, ErrorsNameLineAndColumn) {
  EXPECT_EQ(error_of("a\n  {{ 1 + }}"), "The chat template has an error at line 2, column 10: unexpected '}}'.");
  EXPECT_EQ(error_of("{% if x %}\n"),
            "The chat template has an error at line 1, column 11: the template ends where 'endif' is still expected.");
  EXPECT_EQ(error_of("\n\n{{ messages.x }}"), "The chat template failed at line 3, column 12: 'messages' is undefined.");
  EXPECT_EQ(error_of("{{ raise_exception('Roles must alternate!') }}"),
            "The chat template failed at line 1, column 19: Roles must alternate!");
  EXPECT_EQ(error_of("{{ 'a' | nosuch }}"),
            "The chat template has an error at line 1, column 10: there is no filter named 'nosuch'.");
  EXPECT_EQ(error_of("{% include 'x' %}"),
            "The chat template has an error at line 1, column 4: 'include' is not supported in chat templates: they are one "
            "self-contained text.");
  EXPECT_EQ(error_of("{# never"), "The chat template has an error at line 1, column 1: this comment is never closed with '#}'.");
  EXPECT_EQ(error_of("{{ 'never }}"), "The chat template has an error at line 1, column 4: this string is never closed.");
  EXPECT_EQ(
      error_of("{% set x = [] %}{{ x.append(1) }}"),
      "The chat template failed at line 1, column 28: the template may not call 'append': it would change the conversation.");
  EXPECT_EQ(jinja::compile("{{").status().code(), Code::unloadable);
  EXPECT_EQ(rendered("{{ x.y }}", Json::object()).status().code(), Code::failed);
}

TEST(Jinja, IntegersBeyondSixtyFourBitsAreRefusedNotWrapped) {
  for (const char* source :
       {"{{ 9223372036854775807 + 1 }}", "{{ -9223372036854775807 - 2 }}", "{{ 10000000000 * 10000000000 }}", "{{ 2 ** 63 }}",
        "{{ (-9223372036854775807 - 1) // -1 }}", "{{ -(-9223372036854775807 - 1) }}", "{{ '99999999999999999999' | int }}"})
    EXPECT_NE(error_of(source).find("an integer grew beyond 64 bits"), std::string::npos) << source;
  EXPECT_EQ(text_of("{{ (-9223372036854775807 - 1) % -1 }} {{ 2 ** 62 }} {{ 'abc'[::-9223372036854775807 - 1] }}"),
            "0 4611686018427387904 c");
  EXPECT_NE(error_of("{{ 9223372036854775808 }}").find("does not fit 64 bits"), std::string::npos);
  EXPECT_NE(error_of("{{ 1e300 | int }}").find("does not fit"), std::string::npos);
}

// Every one of these would take minutes, gigabytes or the stack of an engine without limits.
TEST(Jinja, HostileTemplatesEndInASentence) {
  jinja::Options little = options();
  little.work = 1 << 24;  // the default would do, sixteen times later
  const std::string work = "rendering takes more work than a template is allowed";
  const std::string twice = "{% set ns = namespace(x='a') %}{% for i in range(99) %}{% set ns.x = ns.x ~ ns.x %}{% endfor %}";
  const std::string tree = "{% set ns = namespace(x=[1]) %}{% for i in range(60) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}";
  for (const std::string& source :
       {std::string("{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}"),
        std::string("{{ 'abc' * 9223372036854775807 }}"), std::string("{{ [0] * 999999999 }}"), twice, tree + "{{ ns.x }}",
        tree + "{{ ns.x == ns.x }}", tree + "{{ ns.x | tojson }}", std::string("{{ 'a'.ljust(9223372036854775807) }}"),
        std::string("{{ 'x'.zfill(99999999999) }}"), std::string("{{ ('a' * 1000000).replace('', 'b' * 1000000) }}"),
        std::string("{{ ('a' * 500000 ~ 'b') in ('a' * 1000000) }}") + twice,
        std::string("{% set s = 'a' * 9999999 %}{% for i in range(9999) %}{{ s[i] }}{% endfor %}")})
    EXPECT_NE(error_of(source, little).find(work), std::string::npos) << source << "\n" << error_of(source, little);
  EXPECT_NE(error_of("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}").find("the template calls itself too deep"),
            std::string::npos);
  EXPECT_NE(error_of("{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}").find("the template calls itself too deep"),
            std::string::npos);
  EXPECT_NE(error_of("{% set ns = namespace(x=[]) %}{% for i in range(999) %}{% set ns.x = [ns.x] %}{% endfor %}")
                .find("nested more than 200 deep"),
            std::string::npos);
  EXPECT_NE(error_of("{% set ns = namespace(x={}) %}{% for i in range(999) %}{% set ns.x = {'a': ns.x} %}{% endfor %}")
                .find("nested more than 200 deep"),
            std::string::npos);
  EXPECT_NE(error_of("{{ '%999999999d' % 1 }}").find("more than 65536"), std::string::npos);
  EXPECT_NE(error_of("{{ '{:999999999}'.format(1) }}").find("more than 65536"), std::string::npos);
  jinja::Options small = options();
  small.output = 10;
  EXPECT_NE(error_of("{% for i in range(99) %}x{% endfor %}", small).find("the rendered text is larger than 10 bytes"),
            std::string::npos);
}

TEST(Jinja, DeepSourcesAreRefusedBeforeTheyReachTheStack) {
  const auto repeat = [](std::string_view part, int n) {
    std::string out;
    for (int i = 0; i < n; ++i) out += part;
    return out;
  };
  for (const std::string& source :
       {"{{ " + repeat("(", 100000) + repeat(")", 100000) + " }}", "{{ " + repeat("[", 100000) + repeat("]", 100000) + " }}",
        "{{ " + repeat("not ", 100000) + "x }}", "{{ " + repeat("-", 100000) + "1 }}", "{{ x" + repeat(" + x", 100000) + " }}",
        "{{ x" + repeat(".x", 100000) + " }}", "{{ x" + repeat("|abs", 100000) + " }}",
        "{{ x" + repeat("[0", 100000) + repeat("]", 100000) + " }}", repeat("{% if x %}", 100000),
        repeat("{% for x in x %}", 100000), "{% if x %}" + repeat("{% elif x %}", 100000) + "{% endif %}",
        "{{ x" + repeat(" if x else x", 100000) + " }}", "{% set " + repeat("(", 100000) + "a" + repeat(")", 100000) + " = 1 %}"})
    EXPECT_NE(error_of(source).find("deep"), std::string::npos) << source.substr(0, 40) << "\n"
                                                                << error_of(source).substr(0, 200);
  EXPECT_EQ(text_of("{{ 'x' " + repeat("~ 'x' ", 5000) + "}}").size(), 5001u);  // flat, so of any length
}

TEST(Jinja, SelfContainingNamespacesPrintAndAreFreed) {
  EXPECT_EQ(text_of("{% set a = namespace() %}{% set a.me = a %}{% set a.l = [a] %}{{ a }}"),
            "<Namespace {'me': <Namespace {...}>, 'l': [<Namespace {...}>]}>");
  EXPECT_EQ(text_of("{% set a = namespace() %}{% for x in [a] %}{% set a.loop = loop %}{{ loop.changed(loop) }}{% endfor %}{{ "
                    "a.loop.index }}"),
            "True1");
  EXPECT_EQ(
      text_of("{% set a = namespace() %}{% macro m() %}{{ a.n }}{% endmacro %}{% set a.m = m %}{% set a.n = 3 %}{{ a.m() }}"),
      "3");
  EXPECT_EQ(text_of("{% set n = namespace(x=none) %}{% for i in range(20000) %}{% set m = namespace(x=n.x) %}{% set n.x = m %}{% "
                    "endfor %}{{ n.x.x.x is none }}"),
            "False");
}

TEST(Jinja, LoopsThatEndedAnswerFromWhatTheySaw) {
  EXPECT_EQ(text_of("{% set n = namespace() %}{% for x in [1, 2, 3] if x != 2 %}{% set n.l = loop %}{% break %}{% endfor %}{{ "
                    "n.l.index }}{{ n.l.last }}{{ n.l.first }}"),
            "1TrueTrue");
  EXPECT_NE(error_of("{% set n = namespace() %}{% for x in [1] recursive %}{% set n.l = loop %}{% endfor %}{{ n.l([1]) }}")
                .find("recursive"),
            std::string::npos);
}

TEST(Jinja, MacrosKeepTheScopeTheyWereDefinedIn) {
  EXPECT_EQ(text_of("{% set n = namespace() %}{% for i in [7, 8] %}{% set k = i * 10 %}{% macro m() %}{{ i }}-{{ k }}{% endmacro "
                    "%}{% if loop.first %}{% set n.m = m %}{% endif %}"
                    "{% endfor %}{{ n.m() }}"),
            "7-70");
}

TEST(Jinja, BrokenUtf8TravelsThroughUnchanged) {
  EXPECT_EQ(text_of("a\xff{{ 'b\xc3' }}\xe2\x82"),
            "a\xff"
            "b\xc3\xe2\x82");
  EXPECT_EQ(text_of("{{ '\xff\xc3x' | length }}{{ '\xffz' | upper }}{{ '\xff\xc3\xa9' | reverse }}{{ ['\xff'] }}"),
            "3\xffZ\xc3\xa9\xff['\\xff']");
}

TEST(Jinja, UnboundedIntegersOfAFormatStayText) {
  EXPECT_EQ(text_of("{{ '%d' % 1e18 }}|{{ '%.3f' % 0.0005 }}|{{ '{:.3}'.format(2.0) }}|{{ '%5s|%-5s|' % ('é', 'é') }}"),
            "1000000000000000000|0.001|2.0|    é|é    |");
  EXPECT_NE(error_of("{{ '%d' % 1e300 }}").find("fits 64 bits"), std::string::npos);
}

// Whitespace control in every combination of signs, against what the rules say rather than against a list: a "-" eats all white
// space on its side; otherwise a block tag eats the blanks that start its line and the newline behind it, unless a "+" forbids it.
TEST(Jinja, WhitespaceControlInEveryCombination) {
  const std::string blanks[] = {"", " ", "\n", " \n ", "\n\n  ", "x ", " x\n", "\n x"};
  int cases = 0;
  for (const std::string& before : blanks)
    for (const std::string& after : blanks)
      for (const std::string left : {"", "-", "+"})
        for (const std::string right : {"", "-", "+"})
          for (const bool comment : {false, true}) {
            const std::string open = comment ? "{#" : "{%", close = comment ? "#}" : "%}",
                              inside = comment ? " note " : " set a = 1 ";
            std::string head = "[" + before, tail = after + "]";
            const auto trim_end = [](std::string& s, const char* set) { s.erase(s.find_last_not_of(set) + 1); };
            if (left == "-")
              trim_end(head, " \n");
            else if (left == "" && head.find_last_not_of(' ') != std::string::npos && head[head.find_last_not_of(' ')] == '\n')
              trim_end(head, " ");
            if (right == "-")
              tail.erase(0, tail.find_first_not_of(" \n"));
            else if (right == "" && tail[0] == '\n')
              tail.erase(0, 1);
            EXPECT_EQ(text_of("[" + before + open + left + inside + right + close + after + "]"), head + tail)
                << before << open << left << right << after;
            ++cases;
          }
  EXPECT_EQ(cases, 8 * 8 * 3 * 3 * 2);
}

TEST(Jinja, ManyTurnsStayFarFromTheLimits) {
  std::vector<Message> messages;
  for (int i = 0; i < 2000; ++i) messages.push_back({i % 2 ? "assistant" : "user", std::string(1000, char('a' + i % 26))});
  for (const char* name : {"smollm2", "llama3.1", "qwen3"}) {
    ChatOptions o;
    o.limits.work = jinja::Options().work / 10;
    const auto text = render_chat(*goldens()["templates"][name].string(), messages, o);
    ASSERT_TRUE(text) << name << ": " << text.status().sentence();
    EXPECT_GT(text->size(), 2000000u);
  }
}

TEST(Jinja, ConversationsNestedTooDeepAreRefused) {
  Value v = 1;
  for (int i = 0; i < 300; ++i) v = Value::list({v});
  auto globals = std::make_shared<jinja::Dict>();
  globals->set("x", v);
  const auto t = jinja::compile("{{ x }}");
  EXPECT_EQ(jinja::render(*t, globals).status().sentence(), "The conversation holds values nested more than 200 deep.");
}

// ---- where the template of a folder is

using ChatTemplates = Files;

TEST_F(ChatTemplates, AFileWinsOverTheConfigAndDefaultOverTheRest) {
  EXPECT_EQ(*read_chat_template(folder_), "") << "none at all";
  const auto config = [&](const char* text) {
    put("tokenizer_config.json", text);
    const Result<std::string> t = read_chat_template(folder_);
    return t ? *t : t.status().sentence().substr(folder_.size() + 1);
  };
  EXPECT_EQ(config("{}"), "");
  EXPECT_EQ(config(R"({"chat_template": null})"), "");
  EXPECT_EQ(config(R"({"chat_template": "one"})"), "one");
  EXPECT_EQ(config(R"({"chat_template": [{"name": "tool_use", "template": "t"}, {"name": "default", "template": "d"}]})"), "d");
  EXPECT_EQ(config(R"({"chat_template": [{"name": "rag", "template": "r"}, {"name": "tool_use", "template": "t"}]})"),
            "tokenizer_config.json: chat_template has no entry named \"default\", only rag, tool_use; put the one to use into "
            "chat_template.jinja.");
  EXPECT_EQ(config(R"({"chat_template": []})"),
            "tokenizer_config.json: chat_template has no entry named \"default\", only an empty list; put the one to use into "
            "chat_template.jinja.");
  for (const char* entry : {"1", "{}", R"({"name": "default"})", R"({"name": "default", "template": 5})", R"({"template": "x"})"})
    EXPECT_EQ(config((std::string(R"({"chat_template": [)") + entry + "]}").c_str()),
              "tokenizer_config.json: an entry of chat_template needs a name and a template, both texts.")
        << entry;
  EXPECT_EQ(config(R"({"chat_template": 5})"),
            "tokenizer_config.json: chat_template is a text or a list of named ones, not an integer.");
  EXPECT_EQ(config("{"), "tokenizer_config.json: line 1, column 2: a quoted member name is missing");

  put("chat_template.jinja", "{{ messages[0].content }}!\n");
  EXPECT_EQ(*read_chat_template(folder_), "{{ messages[0].content }}!\n");
  EXPECT_EQ(*render_chat(*read_chat_template(folder_), {{"user", "Hi"}}), "Hi!") << "the file's last newline is no text";
  put("chat_template.jinja", "");
  EXPECT_EQ(*read_chat_template(folder_), "");
  unlink(at("chat_template.jinja").c_str());
  ASSERT_EQ(mkdir(at("chat_template.jinja").c_str(), 0700), 0);
  EXPECT_EQ(read_chat_template(folder_).status().code(), Code::unloadable);
}

}  // namespace
}  // namespace ridge
