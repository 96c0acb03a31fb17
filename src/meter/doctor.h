// What on this machine makes measurements jump or a run slow, each with what to do about it: the text of `ridgeline doctor`.
// Looks only; changes nothing.
#pragma once
#include <string>
#include <vector>

#include "device/isa.h"

namespace ridge {

struct DoctorRow {
  std::string what, value, advice;  // advice is empty where all is well
};

// `root` stands before /proc and /sys, for tests; CPU and permission rows are always those of this process.
std::vector<DoctorRow> doctor_rows(Isa isa, int threads, const std::string& root = "");

}  // namespace ridge
