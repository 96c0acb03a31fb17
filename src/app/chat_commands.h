// The commands inside `chat` and the conversation they work on, apart from any model: what /set changes, what /save writes.
#pragma once
#include <string>
#include <vector>

#include "app/verbs.h"
#include "base/status.h"
#include "io/chat_template.h"

namespace ridge {

struct Conversation {
  std::string system;
  std::vector<Message> messages;  // user and assistant in turn
  int64_t tokens = 1024;          // of an answer at most
  SamplingOptions sampling;

  std::vector<Message> all() const;  // with the system message in front, where there is one
};

enum class ChatStep : uint8_t { say, handled, leave };  // a message for the model; a command, done; /bye

// Carries out a line that starts with '/'; `output` receives what to show. Errors are sentences, and the conversation stays as it was.
Result<ChatStep> chat_command(Conversation& c, const std::string& line, std::string& output);

Json to_json(const Conversation& c);                                       // {system, messages: [{role, content}], settings}
Status save_conversation(const Conversation& c, const std::string& path);  // JSON; appears whole or not at all
Result<Conversation> load_conversation(const std::string& path);

}  // namespace ridge
