// From a cost and a machine to seconds: the floor nobody can beat, and what a row with known efficiency will take.
#pragma once
#include "meter/cost.h"
#include "meter/machine.h"

namespace ridge {

struct Bound {
  double seconds;
  const char* by;  // "memory", "launch", or the unit's name
};

// T >= max(matmul / fastest matrix unit, vector / fma, bytes / read bandwidth) + launch.
Bound bound(const Cost& c, const Machine& m);

// The same sum with the row's own unit and the fractions of the ceilings it reaches.
double predict(const Cost& c, Unit unit, double compute, double memory, const Machine& m);

}  // namespace ridge
