#include "check/runner.h"

#include <fmt/format.h>

#include <cstring>

#include "base/check.h"

namespace ridge {

Runtime& Runner::runtime(int threads) {
  std::unique_ptr<Runtime>& r = runtimes_[threads];
  if (!r) r = std::make_unique<Runtime>(threads, isa_);
  return *r;
}

Arena& Runner::acts(int64_t scratch) {
  const int64_t room = int64_t(4) << 20;  // for rows that compose other ops
  if (!acts_ || acts_->size() < scratch + room) acts_ = std::make_unique<Arena>(scratch + room);
  acts_->release(0);
  return *acts_;
}

const RowInfo* Runner::pick(const std::vector<RowInfo>& rows, const void* args) const {
  for (const RowInfo& r : rows)
    if ((r.tier == Tier::reference || (eligible(r) && !is_block(r.rounds))) && r.supports(args)) return &r;
  return nullptr;
}

std::string Runner::run(const RowInfo& row, CaseArgs& args, int threads, Fence fence, const std::string& what) {
  const int64_t bytes = row.workspace(args.get());
  if (bytes < 0) return fmt::format("workspace is {} bytes", bytes);
  Region scratch(bytes, fence, 0, 64);
  memset(scratch.all(), 0xff, size_t(scratch.all_bytes()));
  Arena& arena = acts();
  Ctx x(Mode::run, runtime(threads), arena);
  {
    FaultReport report(what);
    row.launch(x, args.get(), scratch.data());
  }
  for (const char* p = scratch.all(); p < scratch.all() + scratch.all_bytes(); ++p)
    if (static_cast<unsigned char>(*p) != 0xff && (p < scratch.data() || p >= scratch.data() + bytes))
      return fmt::format("wrote outside its {} bytes of scratch, at byte {}", bytes, p - scratch.data());
  if (arena.mark() != 0) return fmt::format("left {} bytes of the step arena taken", arena.mark());
  return {};
}

void Runner::call(CaseArgs& args, int threads, const std::string& what) {
  const std::vector<RowInfo> rows = args.op().rows();
  const RowInfo* row = pick(rows, args.get());
  Ctx x(Mode::run, runtime(threads), acts(row ? row->workspace(args.get()) : 0));
  FaultReport report(what);
  args.op().call(x, args.get());
}

void Runner::reference(CaseArgs& args) {
  Ctx x(Mode::run, runtime(1), acts());
  args.op().reference(x, args.get(), nullptr);
}

void Runner::planted(CaseArgs& args) {
  Ctx x(Mode::run, runtime(1), acts());
  args.op().planted(x, args.get(), nullptr);
}

const CaseArgs& Judge::truth() {
  if (!truth_) {
    truth_ = std::make_unique<CaseArgs>(made_, CopyAs{.f64 = true});
    runner_.reference(*truth_);
  }
  return *truth_;
}

const CaseArgs& Judge::twin(DType rounds) {
  std::unique_ptr<CaseArgs>& t = twins_[rounds];
  if (!t) {
    t = std::make_unique<CaseArgs>(made_, CopyAs{.decoded = true, .rounds = rounds});
    runner_.reference(*t);
  }
  return *t;
}

}  // namespace ridge
