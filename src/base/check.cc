#include "base/check.h"

#include <cstdio>
#include <cstdlib>

namespace ridge {

void check_failed(const char* file, int line, const char* condition, const std::string& sentence) {
  fprintf(stderr, "%s:%d: %s\n  violated: %s\n", file, line, sentence.c_str(), condition);
  fflush(stderr);
  abort();
}

}  // namespace ridge
