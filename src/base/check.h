// Mistakes of our own: print what, where and with which values, and abort. Never reached from a file or a request.
#pragma once
#include <string>

namespace ridge {

[[noreturn, gnu::cold]] void check_failed(const char* file, int line, const char* condition, const std::string& sentence);

}  // namespace ridge

#define RIDGE_CHECK(condition, sentence) \
  (__builtin_expect(!!(condition), 1) ? void() : ::ridge::check_failed(__FILE__, __LINE__, #condition, sentence))
#ifdef NDEBUG
#define RIDGE_DCHECK(condition, sentence) void()
#else
#define RIDGE_DCHECK(condition, sentence) RIDGE_CHECK(condition, sentence)
#endif
