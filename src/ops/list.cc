#include "ops/list.h"

#include <cstring>

namespace ridge {

#define RIDGE_DECLARE(name) OpInfo name##_op();
RIDGE_OPS(RIDGE_DECLARE)
#undef RIDGE_DECLARE

std::span<const OpInfo> all_ops() {
#define RIDGE_ENTRY(name) name##_op(),
  static const OpInfo ops[] = {RIDGE_OPS(RIDGE_ENTRY)};
#undef RIDGE_ENTRY
  return ops;
}

const OpInfo* find_op(const char* name) {
  for (const OpInfo& op : all_ops())
    if (strcmp(op.name, name) == 0) return &op;
  return nullptr;
}

}  // namespace ridge
