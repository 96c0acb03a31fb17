// Messages to stderr, `RIDGE_LOG=debug|info|warn|error` (default warn). Data goes to stdout and never through here.
#pragma once
#include <fmt/core.h>

#include <string>

namespace ridge {

enum class LogLevel { debug, info, warn, error };
void log_line(LogLevel level, const std::string& line);

template <class... A>
void log_debug(fmt::format_string<A...> f, A&&... a) {
  log_line(LogLevel::debug, fmt::format(f, std::forward<A>(a)...));
}
template <class... A>
void log_info(fmt::format_string<A...> f, A&&... a) {
  log_line(LogLevel::info, fmt::format(f, std::forward<A>(a)...));
}
template <class... A>
void log_warn(fmt::format_string<A...> f, A&&... a) {
  log_line(LogLevel::warn, fmt::format(f, std::forward<A>(a)...));
}

}  // namespace ridge
