#include "scheduler/select/cons_tres/cons_tres.h"

#include <algorithm>

#include "scheduler/select/cons_tres/attempt.h"
#include "scheduler/select/cons_tres/occupancy.h"
#include "scheduler/select/cons_tres/shape.h"
#include "scheduler/select/cons_tres/victims.h"

namespace sched {
namespace cons_tres {
namespace {

class ConsTresSelector final : public Selector {
 public:
  explicit ConsTresSelector(const Cluster& cluster)
      : cluster_{cluster}, occupancy_{cluster}, memo_{occupancy_} {}

  SelectOutcome select(const SelectRequest& request) override {
    const Shape shape = make_shape(cluster_, request);
    Attempt attempt{cluster_, occupancy_, memo_, request, shape};
    SelectOutcome outcome;
    if (request.mode == SelectMode::kTestOnly) {
      outcome.allocation = attempt.test_only();
      return outcome;
    }
    outcome.allocation = attempt.run({});
    if (outcome.allocation) return outcome;
    if (!request.candidates.empty()) {
      outcome = VictimSearch{cluster_, occupancy_, attempt, request}.search();
    }
    outcome.memory_short = !outcome.allocation && short_of_memory(request, shape);
    return outcome;
  }

  void add(const SelectJob& job) override { occupancy_.add(job); }
  void remove(const SelectJob& job) override { occupancy_.remove(job); }
  void user_suspend(const SelectJob& job) override { occupancy_.release_cores(job); }
  bool user_resume(const SelectJob& job) override { return occupancy_.resume_cores(job); }
  std::vector<std::int64_t> layout() const override { return occupancy_.layout(); }
  bool set_layout(const std::vector<std::int64_t>& layout) override {
    return occupancy_.set_layout(layout);
  }

 private:
  // Whether the job might start if memory were no matter.
  bool short_of_memory(const SelectRequest& request, const Shape& shape) {
    if (shape.memory_kind == MemoryKind::kUnmanaged) return false;
    Shape without = shape;
    without.memory_kind = MemoryKind::kUnmanaged;
    without.memory_mib = 0;
    return Attempt{cluster_, occupancy_, memo_, request, without}.may_fit();
  }

  const Cluster& cluster_;
  Occupancy occupancy_;
  OfferMemo memo_;
};

}  // namespace
}  // namespace cons_tres

std::unique_ptr<Selector> make_cons_tres_selector(const Cluster& cluster) {
  return std::make_unique<cons_tres::ConsTresSelector>(cluster);
}

}  // namespace sched
