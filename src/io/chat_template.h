// Turns a conversation into the text a model was trained on, through the model's own chat template (tokenizer.chat_template of a
// GGUF file, a file or a field of a Hugging Face folder). The variables are those that Hugging Face's apply_chat_template passes.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/jinja.h"
#include "io/json.h"

namespace ridge {

struct Message {
  std::string role, content;
  bool operator==(const Message&) const = default;
};

struct ChatOptions {
  bool add_generation_prompt = true;
  std::string bos_token, eos_token;  // undefined in the template when empty
  Json tools;                        // an array of tool schemas, or null
  Json variables;                    // an object of further ones (enable_thinking, documents, ...), or null
  jinja::Options limits;
};

// The template of a Hugging Face folder: chat_template.jinja, else chat_template of tokenizer_config.json, where a list names several
// and the one called "default" is taken. Empty where there is none.
Result<std::string> read_chat_template(const std::string& folder);

jinja::Value value_of(const Json& json);  // null becomes None

Result<std::string> render_chat(const jinja::Template& t, const std::vector<Message>& messages, const ChatOptions& options = {});
// The same with messages as the OpenAI API writes them: tool_calls, content parts and unknown fields reach the template.
Result<std::string> render_chat(const jinja::Template& t, const Json& messages, const ChatOptions& options = {});
// The same from source; compile the template once where it is used often.
Result<std::string> render_chat(std::string_view source, const std::vector<Message>& messages, const ChatOptions& options = {});

}  // namespace ridge
