#include "base/log.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <cstdlib>

namespace ridge {

namespace {
spdlog::logger& sink() {
  static spdlog::logger logger = [] {
    spdlog::logger made("ridgeline", std::make_shared<spdlog::sinks::stderr_sink_mt>());
    const char* wanted = getenv("RIDGE_LOG");
    made.set_level(wanted ? spdlog::level::from_str(wanted) : spdlog::level::warn);
    made.set_pattern("%l: %v");
    return made;
  }();
  return logger;
}
}  // namespace

void log_line(LogLevel level, const std::string& line) {
  constexpr spdlog::level::level_enum levels[] = {spdlog::level::debug, spdlog::level::info, spdlog::level::warn,
                                                  spdlog::level::err};
  sink().log(levels[int(level)], line);
}

}  // namespace ridge
