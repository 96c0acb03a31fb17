// See chat_commands.h.
#include "app/chat_commands.h"

#include <fmt/format.h>

#include <charconv>
#include <functional>

#include "io/new_file.h"

namespace ridge {

namespace {

constexpr const char* kHelp =
    "/help             this list\n"
    "/clear            forget the conversation\n"
    "/system TEXT      set the system message (none: remove it); the conversation starts anew\n"
    "/set NAME VALUE   temperature, top_k, top_p, min_p, repetition_penalty, presence_penalty, frequency_penalty, seed or "
    "tokens\n"
    "/show             the settings and the length of the conversation\n"
    "/save FILE        write the conversation as JSON\n"
    "/load FILE        read one\n"
    "/bye              leave (or Ctrl-D)\n"
    "A line that ends in \\ goes on in the next; \"\"\" begins and ends a longer message. Ctrl-C stops an answer.\n";

// A setting: its name, its range, where it lives.
struct Setting {
  const char* name;
  double low, high;
  bool whole;
  std::function<void(Conversation&, double)> set;
  std::function<double(const Conversation&)> get;

  bool takes(double v) const { return v >= low && v <= high && (!whole || v == double(int64_t(v))); }
  std::string range() const { return fmt::format("{}number from {} to {}", whole ? "whole " : "", low, high); }
};

template <class T>
Setting setting(const char* name, double low, double high, T SamplingOptions::*member) {
  return {name,
          low,
          high,
          std::is_integral_v<T>,
          [member](Conversation& c, double v) { c.sampling.*member = T(v); },
          [member](const Conversation& c) { return double(c.sampling.*member); }};
}

const std::vector<Setting>& settings() {
  static const std::vector<Setting> all = {
      setting("temperature", 0, 100, &SamplingOptions::temperature),
      setting("top_k", 0, 1 << 30, &SamplingOptions::top_k),
      setting("top_p", 0, 1, &SamplingOptions::top_p),
      setting("min_p", 0, 1, &SamplingOptions::min_p),
      setting("repetition_penalty", 0.01, 100, &SamplingOptions::repetition_penalty),
      setting("presence_penalty", -100, 100, &SamplingOptions::presence_penalty),
      setting("frequency_penalty", -100, 100, &SamplingOptions::frequency_penalty),
      setting("seed", -1, 9e15, &SamplingOptions::seed),
      {"tokens", 1, 1 << 24, true, [](Conversation& c, double v) { c.tokens = int64_t(v); },
       [](const Conversation& c) { return double(c.tokens); }},
  };
  return all;
}

std::string trimmed(const std::string& s) {
  const size_t from = s.find_first_not_of(" \t"), to = s.find_last_not_of(" \t\r\n");
  return from == std::string::npos ? "" : s.substr(from, to - from + 1);
}

const Setting* find_setting(const std::string& name) {
  for (const Setting& s : settings())
    if (name == s.name) return &s;
  return nullptr;
}

Status set(Conversation& c, const std::string& rest) {
  const size_t space = rest.find(' ');
  const std::string name = rest.substr(0, space), text = space == std::string::npos ? "" : trimmed(rest.substr(space));
  const Setting* s = find_setting(name);
  if (!s) return usage_error("/set knows no \"" + name + "\"; /help lists the names.");
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !s->takes(value))
    return usage_error(fmt::format("/set {} takes a {}.", name, s->range()));
  s->set(c, value);
  return {};
}

std::string show(const Conversation& c) {
  std::string text =
      fmt::format("system message      {}\nmessages            {}\n", c.system.empty() ? "none" : c.system, c.messages.size());
  for (const Setting& s : settings()) text += fmt::format("{:<19} {}\n", s.name, s.get(c));
  return text;
}

}  // namespace

std::vector<Message> Conversation::all() const {
  std::vector<Message> list = messages;
  if (!system.empty()) list.insert(list.begin(), {"system", system});
  return list;
}

Result<ChatStep> chat_command(Conversation& c, const std::string& line, std::string& output) {
  if (!line.starts_with('/')) return ChatStep::say;
  const size_t space = line.find(' ');
  const std::string verb = trimmed(line.substr(0, space)), rest = space == std::string::npos ? "" : trimmed(line.substr(space));
  Status s;
  if (verb == "/bye") return ChatStep::leave;
  if (verb == "/help")
    output = kHelp;
  else if (verb == "/clear")
    c.messages.clear(), output = "The conversation is forgotten.\n";
  else if (verb == "/system")
    c.messages.clear(), c.system = rest, output = rest.empty() ? "No system message.\n" : "The system message is set.\n";
  else if (verb == "/set")
    s = set(c, rest);
  else if (verb == "/show")
    output = show(c);
  else if ((verb == "/save" || verb == "/load") && rest.empty())
    s = usage_error(verb + " takes a file.");
  else if (verb == "/save")
    s = save_conversation(c, rest), output = "Saved to " + rest + ".\n";
  else if (verb == "/load") {
    Result<Conversation> loaded = load_conversation(rest);
    if (loaded.ok()) c = *loaded, output = fmt::format("{} messages.\n", c.messages.size());
    s = loaded.status();
  } else {
    s = usage_error("There is no command " + verb + "; /help lists them.");
  }
  if (s.ok()) return ChatStep::handled;
  output.clear();
  return s;
}

Json to_json(const Conversation& c) {
  Json messages = Json::array();
  for (const Message& m : c.messages) messages.push(Json::object({{"role", m.role}, {"content", m.content}}));
  Json values = Json::object();
  for (const Setting& s : settings()) values.set(s.name, s.whole ? Json(int64_t(s.get(c))) : Json(s.get(c)));
  return Json::object({{"system", c.system}, {"messages", std::move(messages)}, {"settings", std::move(values)}});
}

Status save_conversation(const Conversation& c, const std::string& path) {
  Result<NewFile> file = NewFile::create(path);
  if (!file) return file.status();
  if (Status s = file->write(to_text(to_json(c), 2) + "\n"); !s.ok()) return s;
  return file->commit();
}

Result<Conversation> load_conversation(const std::string& path) {
  Result<Json> json = read_json(path, kRequestJson);
  if (!json) return json.status();
  const auto refuse = [&](const std::string& why) {
    return failed(path + " is no conversation: " + why + "; /save writes such files.");
  };
  const Json &messages = (*json)["messages"], &system = (*json)["system"], &values = (*json)["settings"];
  if (!messages.is_array()) return refuse("it has no list of messages");
  if (!system.is_string() && !system.is_null()) return refuse("its system message is not a text");
  if (!values.is_object() && !values.is_null()) return refuse("its settings are not an object");
  Conversation c;
  c.system = json->get_string("system");
  for (const Json& m : messages.items()) {
    const std::string *role = m["role"].string(), *content = m["content"].string();
    if (!role || !content || (*role != "user" && *role != "assistant"))
      return refuse("a message needs the role user or assistant and a content");
    c.messages.push_back({*role, *content});
  }
  for (const auto& [name, value] : values.members()) {
    const Setting* s = find_setting(name);
    if (!s) return refuse("it has an unknown setting \"" + name + "\"");
    if (!value.is_number() || !s->takes(*value.number())) return refuse("its setting " + name + " is not a " + s->range());
    s->set(c, *value.number());
  }
  return c;
}

}  // namespace ridge
