#include "scheduler/select/cons_tres/cons_tres.h"

#include <algorithm>
#include <utility>

#include "scheduler/select/cons_tres/attempt.h"
#include "scheduler/select/cons_tres/occupancy.h"
#include "scheduler/select/cons_tres/shape.h"
#include "scheduler/select/cons_tres/victims.h"

namespace sched {
namespace cons_tres {
namespace {

// Books of a trial, kept beside it: they answer questions of many jobs after the trial has gone on.
// They have a memo of offers of their own, since offers follow from the books.
class BooksCopy final : public Chooser {
 public:
  BooksCopy(const Cluster& cluster, std::unique_ptr<Occupancy> occupancy)
      : cluster_{cluster}, occupancy_{std::move(occupancy)}, memo_{*occupancy_} {}

  SelectOutcome select(const SelectRequest& request) override {
    const Shape shape = make_shape(cluster_, request);
    Attempt attempt{cluster_, *occupancy_, memo_, request, shape};
    SelectOutcome outcome;
    outcome.allocation = attempt.run({.takes_extra_row = request.takes_extra_row});
    return outcome;
  }

 private:
  const Cluster& cluster_;
  const std::unique_ptr<Occupancy> occupancy_;
  OfferMemo memo_;
};

// The selector's own books with jobs taken away. Questions go to the selector as usual, and see the
// books without these jobs until the trial ends.
class TrialOfBooks final : public Selector::Trial {
 public:
  TrialOfBooks(const Cluster& cluster, Occupancy& occupancy)
      : cluster_{cluster}, occupancy_{occupancy}, trial_{occupancy} {}

  void remove(const SelectJob& job, Keep keep) override { trial_.remove(job, keep); }
  bool put_back() override { return trial_.put_back(); }
  // A copy has no jobs, so it cannot answer where these are looked at one by one.
  std::unique_ptr<Chooser> copy() override {
    if (Attempt::looks_at_jobs(cluster_)) return nullptr;
    return std::make_unique<BooksCopy>(cluster_, occupancy_.packed_copy());
  }

 private:
  const Cluster& cluster_;
  Occupancy& occupancy_;
  OccupancyTrial trial_;
};

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
    const bool fits = outcome.allocation.has_value();
    if (fits && request.missing == nullptr) return outcome;
    // R7.1: victims are looked for only after the plain tests have failed, or for licenses.
    if (!request.candidates.empty()) {
      outcome = VictimSearch{cluster_, occupancy_, attempt, request, fits}.search();
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
    return std::make_unique<TrialOfBooks>(cluster_, occupancy_);
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
