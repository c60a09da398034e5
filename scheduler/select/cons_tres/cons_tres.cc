#include "scheduler/select/cons_tres/cons_tres.h"

#include <algorithm>

#include "scheduler/select/cons_tres/attempt.h"
#include "scheduler/select/cons_tres/occupancy.h"
#include "scheduler/select/cons_tres/shape.h"
#include "scheduler/select/cons_tres/victims.h"

namespace sched {
namespace cons_tres {
namespace {

// Joins the parts. Occupancy keeps the books, Shape resolves a request, Attempt makes the tests,
// and VictimSearch repeats them on books without some of the jobs. The memo lives as long as the
// books, so that equal jobs of a queue share their offers.
class ConsTresSelector final : public Selector {
 public:
  explicit ConsTresSelector(const Cluster& cluster)
      : cluster_{cluster}, occupancy_{cluster}, memo_{occupancy_} {}

  SelectOutcome select(const SelectRequest& request) override {
    const Shape shape = make_shape(cluster_, request);
    Attempt attempt{cluster_, occupancy_, memo_, request, shape};
    SelectOutcome outcome;
    // The question is if the job could ever run on these nodes, if they were empty: no row, no job
    // and no victim counts.
    if (request.mode == SelectMode::kTestOnly) {
      outcome.allocation = attempt.test_only();
      return outcome;
    }
    outcome.allocation = attempt.run({.takes_extra_row = request.takes_extra_row});
    if (outcome.allocation) return outcome;
    // R7.1: victims are looked for only after the plain tests have failed.
    if (!request.candidates.empty()) {
      outcome = VictimSearch{cluster_, occupancy_, attempt, request}.search();
    }
    return outcome;
  }

  // Bookkeeping is the occupancy's alone. Gang suspensions never come here (R4.13): they change
  // neither cores nor memory.
  void add(const SelectJob& job) override { occupancy_.add(job); }
  void remove(const SelectJob& job) override { occupancy_.remove(job); }
  void user_suspend(const SelectJob& job) override { occupancy_.release_cores(job); }
  bool user_resume(const SelectJob& job) override { return occupancy_.resume_cores(job); }
  void node_changed(int rank) override { occupancy_.node_changed(rank); }
  std::unique_ptr<Trial> begin_trial() override {
    return std::make_unique<OccupancyTrial>(occupancy_);
  }

 private:
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
