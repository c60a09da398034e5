// BooksWithout: the selector's books without the jobs that end first, however many, and without the
// victims of a job; or without the jobs on some nodes that end by an instant.
//
// Where no two jobs share a core they are a trial of the selector, which stays as the last question
// left it: the next one takes more jobs away, or puts the last ones back. Where jobs are stacked
// rows must be packed for each question, which is done in a copy of the trial; the copy without
// victims is kept for the next question that comes to as many ends.
//
// Threads: none. Cost: first() Trial::remove() or put_back() for the jobs between the last question
// and this one; where jobs are stacked Trial::copy() besides, unless it is kept. on()
// Trial::remove() for each job that is gone.
#pragma once

#include <cstddef>
#include <map>
#include <memory>

#include "base/time.h"
#include "scheduler/backfill/ends.h"
#include "scheduler/backfill/victims.h"
#include "scheduler/jobs/job_books.h"
#include "scheduler/model/cluster.h"
#include "scheduler/model/node_set.h"
#include "scheduler/select/selector.h"

namespace sched {

class BooksWithout {
 public:
  // The arguments must outlive this object.
  BooksWithout(const Cluster& cluster, JobBooks& books, Ends& ends)
      : cluster_{cluster}, books_{books}, ends_{ends} {}

  // Returns the books without the victims (null = there are none) and without the first `count` of
  // the ends. Valid until the next call. REQUIRES: no trial but this object's own lives; the ends
  // are read, unless nothing is taken away; release() before the victims change.
  Chooser& first(std::size_t count, const Victims* victims);
  // Returns the books at an instant on these nodes, of which alone they may be asked: without the
  // jobs there that end by then. In a large cluster most of those that end by then are elsewhere.
  // Valid until the next call. REQUIRES: as first().
  Chooser& on(const NodeSet& nodes, base::Instant at);
  // Makes the selector's books the real ones again.
  void release();
  // Drops the copies: the books are about to change, or have changed.
  void forget_copies();

 private:
  void take_away(std::size_t count, const Victims* victims);

  const Cluster& cluster_;
  JobBooks& books_;
  Ends& ends_;
  std::unique_ptr<Selector::Trial> trial_;
  const Victims* gone_victims_ = nullptr;  // these are taken away in the trial …
  std::size_t gone_ = 0;                   // … and the number of ends; …
  bool is_on_nodes_ = false;               // … or the jobs of on()
  // Where jobs are stacked: by the number of ends, and of the last question with victims.
  std::map<std::size_t, std::unique_ptr<Chooser>> copies_;
  std::unique_ptr<Chooser> victims_copy_;
};

}  // namespace sched
