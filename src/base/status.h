// Errors that come from outside (a file, a request, memory): a sentence that names the thing and the fix, carried as a value.
// What is our own mistake is not a Status: see check.h.
#pragma once
#include <optional>
#include <string>
#include <utility>

namespace ridge {

// The process's exit code is the Code's number; docs/json.md and `ridgeline --help` list them.
enum class Code : int { ok = 0, failed = 1, usage = 2, unloadable = 3, interrupted = 130 };

class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Code code, std::string sentence) : code_(code), sentence_(std::move(sentence)) {}
  bool ok() const { return code_ == Code::ok; }
  Code code() const { return code_; }
  const std::string& sentence() const { return sentence_; }
  explicit operator bool() const { return ok(); }

 private:
  Code code_ = Code::ok;
  std::string sentence_;
};

inline Status failed(std::string sentence) { return {Code::failed, std::move(sentence)}; }
inline Status usage_error(std::string sentence) { return {Code::usage, std::move(sentence)}; }
inline Status unloadable(std::string sentence) { return {Code::unloadable, std::move(sentence)}; }
inline Status interrupted(std::string sentence) { return {Code::interrupted, std::move(sentence)}; }

// A T, or the Status that says why there is none.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}
  Result(Status status) : status_(std::move(status)) {}
  bool ok() const { return value_.has_value(); }
  explicit operator bool() const { return ok(); }
  const Status& status() const { return status_; }
  T& operator*() & { return *value_; }
  T&& operator*() && { return std::move(*value_); }
  const T& operator*() const& { return *value_; }
  T* operator->() { return &*value_; }
  const T* operator->() const { return &*value_; }

 private:
  std::optional<T> value_;
  Status status_;
};

}  // namespace ridge
