// Where a measurement comes from: when, which commit, and a hash of the sources that decide an op's speed.
// Found at run time from the working folder upwards: a folder with src/ops in it is the tree. Outside of one, commit and sources are
// empty. The binary is not compared with the tree: measure what you have just built.
#pragma once
#include <string>

namespace ridge {

struct Provenance {
  std::string date;     // UTC, "2026-01-31T12:00:00Z"
  std::string commit;   // short hash, "+" behind it where files differ from it
  std::string sources;  // 12 hex digits over the op's folder, src/tile and src/device
};

Provenance provenance(const std::string& op, const std::string& from = ".");

}  // namespace ridge
