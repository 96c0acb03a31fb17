// ridgeline version: what this binary is and what it runs on.
#include <fmt/format.h>

#include "app/verbs.h"
#include "device/isa.h"
#include "model/list.h"
#include "ops/list.h"

namespace ridge {

namespace {

std::string compiler() {
  return fmt::format("{} {}.{}",
#ifdef __clang__
                     "clang", __clang_major__, __clang_minor__
#else
                     "gcc", __GNUC__, __GNUC_MINOR__
#endif
  );
}

}  // namespace

std::string version_text() {
  return fmt::format("ridgeline {} ({}), {}\n{}", RIDGE_VERSION, RIDGE_COMMIT, compiler(), describe_isa());
}

int version_verb(bool json) {
  if (json) {
    Json families = Json::array();
    for (const Family& f : all_families()) families.push(f.name);
    print_json(Json::object({{"version", RIDGE_VERSION},
                             {"commit", RIDGE_COMMIT},
                             {"compiler", compiler()},
                             {"isa", isa_name(active_isa())},
                             {"cpu", cpu_model()},
                             {"ops", int64_t(all_ops().size())},
                             {"models", std::move(families)}}));
    return 0;
  }
  fmt::print("{}\n", version_text());
  return 0;
}

}  // namespace ridge
