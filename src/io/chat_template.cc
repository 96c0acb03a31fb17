// See chat_template.h.
#include "io/chat_template.h"

#include <sys/stat.h>
#include <unistd.h>

#include "io/mapping.h"

namespace ridge {

namespace {

// [{"name": "default", "template": "..."}, {"name": "tool_use", "template": "..."}]
Result<std::string> default_of(const Json& list, const std::string& path) {
  std::string names;
  for (const Json& entry : list.items()) {
    const std::string *name = entry["name"].string(), *source = entry["template"].string();
    if (!name || !source) return unloadable(path + ": an entry of chat_template needs a name and a template, both texts.");
    if (*name == "default") return *source;
    names += (names.empty() ? "" : ", ") + *name;
  }
  return unloadable(path + ": chat_template has no entry named \"default\", only " + (names.empty() ? "an empty list" : names) +
                    "; put the one to use into chat_template.jinja.");
}

}  // namespace

Result<std::string> read_chat_template(const std::string& folder) {
  std::string path = folder + "/chat_template.jinja";
  if (struct stat info{}; stat(path.c_str(), &info) == 0) {
    if (S_ISREG(info.st_mode) && info.st_size == 0) return std::string();
    const Result<Mapping> file = Mapping::open(path);
    if (!file) return unloadable(file.status().sentence());
    return std::string(file->bytes());
  }
  path = folder + "/tokenizer_config.json";
  if (access(path.c_str(), F_OK) != 0) return std::string();
  const Result<Json> config = read_json(path);
  if (!config) return unloadable(config.status().sentence());
  const Json& source = (*config)["chat_template"];
  if (source.is_null()) return std::string();
  if (source.is_string()) return *source.string();
  if (source.is_array()) return default_of(source, path);
  return unloadable(path + ": chat_template is a text or a list of named ones, not " + source.kind_name() + ".");
}

jinja::Value value_of(const Json& json) {
  switch (json.kind()) {
    case Json::Kind::null: return jinja::None();
    case Json::Kind::boolean: return *json.boolean();
    case Json::Kind::integer: return *json.integer();
    case Json::Kind::real: return *json.number();
    case Json::Kind::string: return *json.string();
    case Json::Kind::array: break;
    case Json::Kind::object: {
      auto dict = std::make_shared<jinja::Dict>();
      // Requests have no repeated keys, so nothing is searched; with a lenient source the first of two would be found.
      for (const auto& member : json.members()) dict->append(member.key, value_of(member.value));
      return dict;
    }
  }
  std::vector<jinja::Value> items;
  items.reserve(json.items().size());
  for (const Json& item : json.items()) items.push_back(value_of(item));
  return jinja::Value::list(std::move(items));
}

Result<std::string> render_chat(const jinja::Template& t, const Json& messages, const ChatOptions& options) {
  if (!messages.is_array())
    return failed(std::string("The messages of a conversation are an array, not ") + messages.kind_name() + ".");
  auto globals = std::make_shared<jinja::Dict>();
  globals->set("messages", value_of(messages));
  globals->set("tools", value_of(options.tools));
  globals->set("documents", jinja::None());
  globals->set("add_generation_prompt", options.add_generation_prompt);
  if (!options.bos_token.empty()) globals->set("bos_token", options.bos_token);
  if (!options.eos_token.empty()) globals->set("eos_token", options.eos_token);
  for (const auto& member : options.variables.members()) globals->set(member.key, value_of(member.value));
  return jinja::render(t, globals, options.limits);
}

Result<std::string> render_chat(const jinja::Template& t, const std::vector<Message>& messages, const ChatOptions& options) {
  Json list = Json::array();
  for (const Message& m : messages) list.push(Json::object({{"role", m.role}, {"content", m.content}}));
  return render_chat(t, list, options);
}

Result<std::string> render_chat(std::string_view source, const std::vector<Message>& messages, const ChatOptions& options) {
  auto t = jinja::compile(source);
  if (!t) return t.status();
  return render_chat(*t, messages, options);
}

}  // namespace ridge
