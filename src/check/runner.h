// Runs one row on one set of operands, the way the drivers of check/ need it: with a chosen number of threads, scratch of exactly the
// size the row asked for between canaries, and a sentence when the row strayed from it.
#pragma once
#include <map>
#include <memory>
#include <string>

#include "base/arena.h"
#include "check/args.h"
#include "ops/ctx.h"

namespace ridge {

class Runner {
 public:
  explicit Runner(Isa isa) : isa_(isa) {}

  Isa isa() const { return isa_; }
  bool eligible(const RowInfo& row) const { return row.place == Place::cpu && row.isa <= isa_; }
  // The row that the dispatcher would take, or null.
  const RowInfo* pick(const std::vector<RowInfo>& rows, const void* args) const;

  // A complaint about scratch, or nothing. `what` names the run should it end in a fault.
  std::string run(const RowInfo& row, CaseArgs& args, int threads, Fence fence, const std::string& what);
  void call(CaseArgs& args, int threads, const std::string& what);  // through the dispatcher
  void reference(CaseArgs& args);
  void planted(CaseArgs& args);

  Runtime& runtime(int threads);

 private:
  Arena& acts(int64_t scratch = 0);  // empty; with room for a dispatched call's scratch
  Isa isa_;
  std::map<int, std::unique_ptr<Runtime>> runtimes_;
  std::unique_ptr<Arena> acts_;
};

// A case with its truth, and its twins by what a row rounds its inputs to. Made on demand: the reference is slow.
class Judge {
 public:
  Judge(const OpInfo& op, const CaseInfo& c, Runner& runner) : runner_(runner), made_(op, c) {}
  const CaseArgs& made() const { return made_; }
  const CaseArgs& truth();
  const CaseArgs& twin(DType rounds);

 private:
  Runner& runner_;
  CaseArgs made_;
  std::unique_ptr<CaseArgs> truth_;
  std::map<DType, std::unique_ptr<CaseArgs>> twins_;
};

}  // namespace ridge
