#include "scheduler/queue/dependencies.h"

#include <algorithm>
#include <cstddef>

#include "base/check.h"

namespace sched {
namespace {

bool waits_for_others(const Job& job) {
  return job.pending() && job.count() > 0 &&
         state_of(job.terms, job.request->dependency.any) == TermState::kOpen;
}

// One of the terms is enough, and is met.
bool needs_no_more(const Job& job) {
  return job.request->dependency.any && state_of(job.terms, true) == TermState::kMet;
}

bool names_nobody(const DependencyTerm& term) {
  return term.kind == DependencyKind::kSingleton || term.job.number() == 0;
}

// Returns the tasks of an array that wait as the array, or that no record is kept of.
const ArrayFacts* array_of(const JobBooks& books, JobId task) {
  if (!task.is_task()) return nullptr;
  const Job* array = books.find(task.array());
  return array != nullptr && array->array ? &*array->array : nullptr;
}

// Returns true if none of the tasks waits for its start that are jobs of their own.
bool own_have_begun(const JobBooks& books, const Job& array) {
  return std::ranges::none_of(array.tasks->own,
                              [&](JobId id) { return books.find(id)->pending(); });
}

// Returns true if no task of the array waits for its start.
bool has_begun(const JobBooks& books, const Job& array) {
  return array.count() == 0 && own_have_begun(books, array);
}

std::string what_is_waited_for(const DependencyTerm& term) {
  const std::string job =
      term.job.number() == 0 ? "a job that does not exist yet" : "job " + to_string(term.job);
  switch (term.kind) {
    case DependencyKind::kAfter:
      return job + " to start";
    case DependencyKind::kAfterAny:
      return job + " to end";
    case DependencyKind::kAfterOk:
      return job + " to succeed";
    case DependencyKind::kAfterNotOk:
      return job + " to fail";
    case DependencyKind::kAfterCorr:
      return "its task of " + job + " to succeed";
    case DependencyKind::kSingleton:
      break;
  }
  return "the other jobs of its user and name";
}

std::string what_has_failed(const DependencyTerm& term) {
  const bool wants_failure = term.kind == DependencyKind::kAfterNotOk;
  return "job " + to_string(term.job) + (wants_failure ? " has not failed" : " has not succeeded");
}

}  // namespace

// Returns the first term that is open, or, if the job can never start, the first that has failed.
std::string dependency_message(const Job& job) {
  const std::vector<DependencyTerm>& terms = job.request->dependency.terms;
  const bool failed = state_of(job.terms, job.request->dependency.any) == TermState::kFailed;
  const TermState wanted = failed ? TermState::kFailed : TermState::kOpen;
  const auto at = std::ranges::find(job.terms, wanted) - job.terms.begin();
  const DependencyTerm& first = terms[static_cast<std::size_t>(at)];
  if (failed) return "can never start: " + what_has_failed(first);
  std::string message = "waits for " + what_is_waited_for(first);
  const auto more = std::ranges::count(job.terms, TermState::kOpen) - 1;
  if (more == 0) return message;
  const std::string joined = job.request->dependency.any ? ", or for " : ", and for ";
  return message + joined + std::to_string(more) + " more";
}

Dependencies::Dependencies(JobBooks& books, const base::Instant& now) : books_{books}, now_{now} {
  books_.on_begin([this](const Job& job) { begun(job); });
  books_.on_end([this](const Job& job) {
    if (!counts_names_) return;
    --names_[name_of(job)].allocated;
    left(name_of(job));
  });
  books_.on_over([this](Job& job) {
    remove(job);
    over(job);
  });
}

// Walks along the open terms of the jobs that are waited for, directly or indirectly.
std::optional<std::string> Dependencies::refused(const JobRequest& request) const {
  std::set<JobId> seen;
  std::vector<JobId> ahead;
  // An array, or a task of one, is named with the other too.
  const auto names = [](const DependencyTerm& term, JobId id) {
    if (term.kind == DependencyKind::kSingleton) return false;
    return term.job == id ||
           (term.job.array() == id.array() && !(term.job.is_task() && id.is_task()));
  };
  const auto follow = [&](const DependencyTerm& term) {
    if (term.kind != DependencyKind::kSingleton && seen.insert(term.job).second) {
      ahead.push_back(term.job);
    }
  };
  for (const DependencyTerm& term : request.dependency.terms) {
    if (names(term, request.id)) {
      return "the job cannot wait for itself (job " + to_string(request.id) + ")";
    }
    follow(term);
  }
  // Without a job that waits for it there is no circle. So a chain that is submitted job by job is
  // not walked along each time.
  const JobId whole = request.id.array();
  const auto waiter = edges_.lower_bound(Edge{whole, JobId{0}, 0});
  if (waiter == edges_.end() || std::get<0>(*waiter).array() != whole) return std::nullopt;
  while (!ahead.empty()) {
    const Job* job = books_.find(ahead.back());
    // A task that waits as its array waits for what that waits for.
    if (job == nullptr) job = books_.find(ahead.back().array());
    ahead.pop_back();
    if (job == nullptr) continue;
    // Tasks that are jobs of their own may wait for others than their array does.
    if (job->is_array()) {
      for (const JobId task : job->tasks->own) {
        if (seen.insert(task).second) ahead.push_back(task);
      }
    }
    if (!waits_for_others(*job)) continue;
    for (std::size_t i = 0; i < job->terms.size(); ++i) {
      if (job->terms[i] != TermState::kOpen) continue;
      const DependencyTerm& term = job->request->dependency.terms[i];
      if (names(term, request.id)) {
        return "job " + to_string(job->id) + " waits for this job, so this job cannot wait for it";
      }
      follow(term);
    }
  }
  return std::nullopt;
}

// Sets the number of terms, which nothing else changes. A job that has started waits for none, and
// neither does an array of which no task waits.
void Dependencies::fit_terms(Job& job) {
  const bool waits = !job.allocated() && job.count() > 0;
  job.terms.resize(job.request->dependency.terms.size(),
                   waits ? TermState::kOpen : TermState::kMet);
}

void Dependencies::add(Job& job, const std::vector<KnownJob>& known_jobs) {
  Known known;
  for (const KnownJob& each : known_jobs) known.emplace(each.job, each);
  const std::vector<DependencyTerm>& terms = job.request->dependency.terms;
  job.terms.clear();
  fit_terms(job);
  if (counts_names_) names_[name_of(job)].jobs.insert(job.id);
  if (job.is_array()) open_again(job.id);
  if (terms.empty()) return;
  changed_.insert(job.id);
  for (std::uint32_t i = 0; i < terms.size() && !needs_no_more(job); ++i) {
    const DependencyTerm& term = terms[i];
    if (names_nobody(term) || is_known(term.job)) {
      open(job, i);
      continue;
    }
    if (known.contains(term.job)) {
      open_known(job, i, known);
    } else {
      set(job, i, TermState::kMet);
    }
  }
}

void Dependencies::restore(Job& job, const Known& known) {
  const std::vector<DependencyTerm>& terms = job.request->dependency.terms;
  if (counts_names_) names_[name_of(job)].jobs.insert(job.id);
  if (terms.empty()) return;
  // A job whose terms were met before has had the consequences: its age counts from then on.
  if (state_of(job.terms, job.request->dependency.any) != TermState::kMet) changed_.insert(job.id);
  for (std::uint32_t i = 0; i < terms.size() && !needs_no_more(job); ++i) {
    if (job.terms[i] != TermState::kOpen) continue;
    const DependencyTerm& term = terms[i];
    if (names_nobody(term) || is_known(term.job)) {
      open(job, i);
    } else if (known.contains(term.job)) {
      open_known(job, i, known);
    } else {
      const bool by_outcome = term.kind == DependencyKind::kAfterOk ||
                              term.kind == DependencyKind::kAfterNotOk ||
                              term.kind == DependencyKind::kAfterCorr;
      set(job, i, by_outcome ? TermState::kFailed : TermState::kMet);
    }
  }
}

// An array, and each task that it has or had.
bool Dependencies::is_known(JobId id) const {
  if (books_.find(id) != nullptr) return true;
  const ArrayFacts* array = array_of(books_, id);
  return array != nullptr && (array->waiting.contains(*id.task()) ||
                              array->outcomes.of(*id.task()) != TaskOutcome::kNotEnded);
}

// Returns the job that the term names; with aftercorr, if that is an array, its task of the same
// number if it has one.
JobId Dependencies::waited_for(const Job& job, const DependencyTerm& term) const {
  if (term.kind != DependencyKind::kAfterCorr || !job.id.is_task()) return term.job;
  const JobId twin = JobId::of_task(term.job, *job.id.task());
  return books_.find(term.job) == nullptr || is_known(twin) ? twin : term.job;
}

// Now it is known which tasks the array has. Jobs may have waited for one before.
void Dependencies::open_again(JobId array) {
  std::vector<Edge> edges;
  for (auto at = edges_.lower_bound(Edge{array, JobId{0}, 0});
       at != edges_.end() && std::get<0>(*at).array() == array; ++at) {
    if (std::get<0>(*at).is_task() || std::get<1>(*at).is_task()) edges.push_back(*at);
  }
  for (const Edge& edge : edges) {
    if (edges_.erase(edge) > 0) open(*books_.find(std::get<1>(edge)), std::get<2>(edge));
  }
}

// The task waits for what its array waits for, and with aftercorr for its twin, even if the other
// array has changed meanwhile. If it was the last one, its array waits for no job.
void Dependencies::split(Job& array, Job& task) {
  if (counts_names_) names_[name_of(task)].jobs.insert(task.id);
  const Dependency& asked = task.request->dependency;
  for (std::size_t i = 0; i < task.terms.size(); ++i) {
    const DependencyTerm& term = asked.terms[i];
    if (term.kind == DependencyKind::kAfterCorr && is_known(term.job)) {
      task.terms[i] = TermState::kOpen;
    } else if (failed_twins_.erase({task.id, static_cast<std::uint32_t>(i)}) > 0) {
      task.terms[i] = TermState::kFailed;
    }
  }
  for (std::uint32_t i = 0; i < task.terms.size() && !needs_no_more(task); ++i) {
    if (task.terms[i] != TermState::kOpen) continue;
    if (asked.terms[i].kind != DependencyKind::kSingleton) open(task, i);
  }
  // Terms that were met before have had their consequences; the task takes over those of failed
  // ones, too.
  const TermState state = state_of(task.terms, asked.any);
  if (state == TermState::kFailed) changed_.insert(task.id);
  // Terms that are met in this step are reported of the task: its array, if it was the last one,
  // waits no more, and reports nothing.
  const bool were_met = state_of(array.terms, asked.any) == TermState::kMet;
  if (state == TermState::kMet && were_met && !changed_.contains(array.id)) {
    changed_.erase(task.id);
  }
  if (array.count() > 0) return;
  remove(array);
  if (counts_names_) names_[name_of(array)].jobs.erase(array.id);
}

// The tasks that still wait as their array have no counterparts in the other one, which has ended.
// They wait for all of it to succeed (recorded); if they wait in vain, each is a job by itself.
TermState Dependencies::outcome_of_rest(const Job& job, JobState other) {
  if (outcome(DependencyKind::kAfterCorr, other) == TermState::kFailed) {
    job.array->waiting.each([&](int task) { splits_.insert(JobId::of_task(job.id, task)); });
  }
  return TermState::kMet;
}

// Makes a job of each task of the array that waits by aftercorr for one that has ended: it waits no
// more, or forever.
void Dependencies::split_ended(const Job& job, const Job& other) {
  job.array->waiting.each([&](int task) {
    if (other.array->outcomes.of(task) == TaskOutcome::kNotEnded) return;
    splits_.insert(JobId::of_task(job.id, task));
  });
}

// A fact that holds already settles the term at once.
void Dependencies::open(Job& job, std::uint32_t term) {
  const DependencyTerm& asked = job.request->dependency.terms[term];
  if (asked.kind == DependencyKind::kSingleton) {
    count_names();
    if (is_alone(job)) return set(job, term, TermState::kMet);
    return;
  }
  const JobId named = waited_for(job, asked);
  const Job* other = books_.find(named);
  if (other == nullptr && named.is_task()) {
    const ArrayFacts* array = array_of(books_, named);
    const TaskOutcome ended = array ? array->outcomes.of(*named.task()) : TaskOutcome::kNotEnded;
    const bool waits = array != nullptr && array->waiting.contains(*named.task());
    if (ended != TaskOutcome::kNotEnded) return set(job, term, outcome(asked.kind, ended));
    if (array != nullptr && !waits) return set(job, term, TermState::kMet);  // there is none
  }
  if (other != nullptr && job.is_array() && other->is_array() &&
      asked.kind == DependencyKind::kAfterCorr) {
    split_ended(job, *other);
    if (is_terminal(other->state)) return set(job, term, outcome_of_rest(job, other->state));
  }
  if (other != nullptr && is_terminal(other->state) && asked.kind != DependencyKind::kAfter) {
    return set(job, term, outcome(asked.kind, other->state));
  }
  const Edge edge{named, job.id, term};
  const bool has_started =
      other != nullptr && (other->is_array() ? has_begun(books_, *other) : !other->pending());
  if (has_started && asked.kind == DependencyKind::kAfter) {
    const base::Instant due = (other->is_array() ? now_ : other->allocated_at) + asked.delay;
    if (due <= now_) return set(job, term, TermState::kMet);
    timers_.emplace(due, edge);
  }
  edges_.insert(edge);
}

// The caller alone knows the job. With aftercorr, tasks that the caller names have ended otherwise
// than their array.
void Dependencies::open_known(Job& job, std::uint32_t term, const Known& known) {
  const DependencyTerm& asked = job.request->dependency.terms[term];
  const KnownJob& fact = known.at(asked.job);
  const Edge edge{waited_for(job, asked), job.id, term};
  const base::Instant due = fact.started.value_or(base::Instant{}) + asked.delay;
  if (!is_terminal(fact.state)) {
    edges_.insert(edge);
  } else if (asked.kind == DependencyKind::kAfter && due > now_) {
    edges_.insert(edge);
    timers_.emplace(due, edge);
  } else if (asked.kind == DependencyKind::kAfterCorr && job.is_array()) {
    set(job, term, split_known(job, term, known));
  } else {
    const auto twin = known.find(std::get<0>(edge));
    set(job, term, outcome(asked.kind, (twin == known.end() ? fact : twin->second).state));
  }
}

// If the tasks of the array do not all wait in vain, each that does becomes a job by itself.
TermState Dependencies::split_known(const Job& job, std::uint32_t term, const Known& known) {
  const DependencyTerm& asked = job.request->dependency.terms[term];
  std::set<JobId> failed;
  job.array->waiting.each([&](int number) {
    const auto twin = known.find(JobId::of_task(asked.job, number));
    const KnownJob& fact = twin == known.end() ? known.at(asked.job) : twin->second;
    if (outcome(asked.kind, fact.state) == TermState::kMet) return;
    failed.insert(JobId::of_task(job.id, number));
  });
  if (std::ssize(failed) == job.array->waiting.size()) return TermState::kFailed;
  for (const JobId task : failed) failed_twins_.emplace(task, term);
  splits_.merge(failed);
  return TermState::kMet;
}

void Dependencies::set(Job& job, std::uint32_t term, TermState state) {
  job.terms[term] = state;
  changed_.insert(job.id);
  if (needs_no_more(job)) remove(job);
}

// Another name is another queue of singletons. An array of which no task waits is in none.
void Dependencies::change(Job& job, const JobRequest& request, const std::vector<KnownJob>& known) {
  if (job.count() == 0) {
    books_.set_request(job, request);
    job.terms.clear();
    return fit_terms(job);
  }
  const Name before = name_of(job);
  const bool differs = job.request->dependency != request.dependency;
  if (differs) remove(job);
  books_.set_request(job, request);
  if (counts_names_ && name_of(job) != before) {
    names_[name_of(job)].jobs.insert(job.id);
    names_[before].jobs.erase(job.id);
    left(before);
    if (!differs) left(name_of(job));  // it may be alone there
  }
  if (differs) add(job, known);
}

// Timers of the job then find no edge.
void Dependencies::remove(const Job& job) {
  const std::vector<DependencyTerm>& terms = job.request->dependency.terms;
  CHECK(job.terms.size() == terms.size(), to_string(job.id));
  std::erase_if(failed_twins_, [&](const auto& each) { return each.first.array() == job.id; });
  for (std::uint32_t i = 0; i < terms.size(); ++i) {
    edges_.erase(Edge{waited_for(job, terms[i]), job.id, i});
    // The other array may be away for a while.
    edges_.erase(Edge{terms[i].job, job.id, i});
  }
}

// Settles the terms that name the job and for which state_of_term() has an answer.
void Dependencies::settle(JobId id, const auto& state_of_term) {
  for (auto at = edges_.lower_bound(Edge{id, JobId{0}, 0});
       at != edges_.end() && std::get<0>(*at) == id;) {
    const Edge edge = *at;
    Job& job = *books_.find(std::get<1>(edge));
    const std::uint32_t term = std::get<2>(edge);
    const std::optional<TermState> state = state_of_term(job.request->dependency.terms[term], edge);
    if (state) {
      edges_.erase(at);
      set(job, term, *state);
    }
    // set() may have removed more edges of that job.
    at = edges_.upper_bound(edge);
  }
}

// A start without a delay, or the beginning of one.
void Dependencies::see_started(JobId id, base::Instant since) {
  settle(id, [&](const DependencyTerm& term, const Edge& edge) -> std::optional<TermState> {
    if (term.kind != DependencyKind::kAfter) return std::nullopt;
    if (since + term.delay <= now_) return TermState::kMet;
    timers_.emplace(since + term.delay, edge);
    return std::nullopt;
  });
}

void Dependencies::begun(const Job& job) {
  if (counts_names_) ++names_[name_of(job)].allocated;
  see_started(job.id, job.allocated_at);
  if (job.whole != nullptr && has_begun(books_, *job.whole)) see_started(job.whole->id, now_);
}

// One that was canceled before it started counts as started when it was. A record that is erased
// before its end was canceled, too.
void Dependencies::over(const Job& job) {
  if (counts_names_) {
    names_[name_of(job)].jobs.erase(job.id);
    left(name_of(job));
  }
  if (std::exchange(returns_, std::nullopt) == job.id) return;
  if (job.is_array()) {
    waiting_over(job);
    if (!job.tasks->own.empty()) {
      if (own_have_begun(books_, job)) see_started(job.id, now_);
      return;
    }
  }
  over_elsewhere(job.id, is_terminal(job.state) ? job.state : JobState::kCancelled);
  if (job.whole == nullptr) return;
  ended_of(job.whole->id);
  if (has_begun(books_, *job.whole)) see_started(job.whole->id, now_);
}

// Returns those that are waited for by themselves.
std::set<JobId> Dependencies::named_tasks(JobId array) const {
  std::set<JobId> named;
  for (auto at = edges_.lower_bound(Edge{array, JobId{0}, 0});
       at != edges_.end() && std::get<0>(*at).array() == array; ++at) {
    if (std::get<0>(*at).is_task()) named.insert(std::get<0>(*at));
  }
  return named;
}

// The tasks that wait as the array are over.
void Dependencies::waiting_over(const Job& array) {
  for (const JobId id : named_tasks(array.id)) {
    if (!array.array->waiting.contains(*id.task())) continue;
    const TaskOutcome ended = array.array->outcomes.of(*id.task());
    over_elsewhere(id, ended == TaskOutcome::kFailed ? JobState::kFailed : JobState::kCancelled);
  }
  ended_of(array.id);
}

// A task of the array has ended.
void Dependencies::ended_of(JobId array) {
  for (auto at = edges_.lower_bound(Edge{array, JobId{0}, 0});
       at != edges_.end() && std::get<0>(*at) == array; ++at) {
    const Job& job = *books_.find(std::get<1>(*at));
    const DependencyTerm& term = job.request->dependency.terms[std::get<2>(*at)];
    const bool each_for_one = term.kind == DependencyKind::kAfterCorr && job.is_array();
    if (each_for_one) split_ended(job, *books_.find(array));
  }
}

void Dependencies::over_elsewhere(JobId id, JobState state) {
  const Job* job = books_.find(id);
  if (job == nullptr && !id.is_task()) {
    for (const JobId task : named_tasks(id)) over_elsewhere(task, state);
  }
  settle(id, [&](const DependencyTerm& term, const Edge& edge) -> std::optional<TermState> {
    if (term.kind == DependencyKind::kAfter) return std::nullopt;
    // An array that still waits as such has tasks that the other one does not have.
    const bool each_for_one = term.kind == DependencyKind::kAfterCorr && job != nullptr &&
                              job->is_array() && books_.find(std::get<1>(edge))->is_array();
    if (!each_for_one) return outcome(term.kind, state);
    const Job& rest = *books_.find(std::get<1>(edge));
    return is_terminal(job->state) ? outcome_of_rest(rest, job->state) : TermState::kFailed;
  });
  // The delay of one that started goes on.
  const bool has_started = job != nullptr && job->allocated_at != base::Instant{};
  see_started(id, has_started ? job->allocated_at : now_);
}

TermState Dependencies::outcome(DependencyKind kind, JobState state) {
  return outcome(kind, outcome_of(state));
}

TermState Dependencies::outcome(DependencyKind kind, TaskOutcome ended) {
  const bool succeeded = ended == TaskOutcome::kSucceeded;
  const bool wants_success = kind == DependencyKind::kAfterOk || kind == DependencyKind::kAfterCorr;
  const bool met = wants_success                         ? succeeded
                   : kind == DependencyKind::kAfterNotOk ? !succeeded
                                                         : true;
  return met ? TermState::kMet : TermState::kFailed;
}

// --- singletons ---

// Most clusters never see one, and pay nothing for the names of their jobs.
void Dependencies::count_names() {
  if (counts_names_) return;
  counts_names_ = true;
  for (const auto& [order, job] : books_.table().all()) {
    if (is_terminal(job->state) || job->count() == 0) continue;
    Namesakes& all = names_[name_of(*job)];
    all.jobs.insert(job->id);
    if (job->allocated()) ++all.allocated;
  }
}

// Slurm lets the next one start while the last one is being cleaned up; here it waits for that. A
// task that was alone with its array may wait for nodes although an earlier one became a job of its
// own before.
bool Dependencies::is_alone(const Job& job) const {
  const Namesakes& all = names_.at(name_of(job));
  if (all.allocated > 0 || *all.jobs.begin() != job.id) return false;
  return job.whole == nullptr || std::ranges::none_of(job.whole->tasks->own, [&](JobId id) {
    const Job& task = *books_.find(id);
    return task.pending() && name_of(task) == name_of(job) && was_alone(task);
  });
}

bool Dependencies::was_alone(const Job& job) {
  const std::vector<DependencyTerm>& terms = job.request->dependency.terms;
  for (std::size_t i = 0; i < terms.size(); ++i) {
    if (terms[i].kind == DependencyKind::kSingleton && job.terms[i] == TermState::kMet) return true;
  }
  return false;
}

// A job has given up its nodes, or is over: the first that waits may be alone now. A job that is
// requeued waits again, under its number.
void Dependencies::left(const Name& name) {
  const auto at = names_.find(name);
  if (at == names_.end()) return;  // the array of the tasks that waited was the last
  if (at->second.jobs.empty()) {
    names_.erase(at);
    return;
  }
  Job& first = *books_.find(*at->second.jobs.begin());
  if (needs_no_more(first) || !is_alone(first)) return;
  for (std::uint32_t i = 0; i < first.terms.size(); ++i) {
    const bool waits_alone = first.terms[i] == TermState::kOpen &&
                             first.request->dependency.terms[i].kind == DependencyKind::kSingleton;
    if (waits_alone) set(first, i, TermState::kMet);
  }
}

// --- delays ---

std::optional<base::Instant> Dependencies::next_due() const {
  if (timers_.empty()) return std::nullopt;
  return timers_.begin()->first;
}

// A job that was requeued meanwhile counts from its next start on.
void Dependencies::fire_timers() {
  while (!timers_.empty() && timers_.begin()->first <= now_) {
    const Edge edge = timers_.extract(timers_.begin()).value().second;
    const Job* other = books_.find(std::get<0>(edge));
    const bool waits = other != nullptr && other->pending() && !other->is_array();
    if (!edges_.contains(edge) || waits) continue;
    Job& job = *books_.find(std::get<1>(edge));
    const std::uint32_t term = std::get<2>(edge);
    const base::Duration delay = job.request->dependency.terms[term].delay;
    if (other != nullptr && other->allocated_at + delay > now_) continue;  // it has a later timer
    edges_.erase(edge);
    set(job, term, TermState::kMet);
  }
}

std::string Dependencies::check_invariants() const {
  std::size_t open = 0;
  for (const auto& [order, job] : books_.table().all()) {
    const Dependency& asked = job->request->dependency;
    if (job->terms.size() != asked.terms.size()) {
      return "job " + to_string(job->id) + ": terms and request differ";
    }
    if (!job->pending() || job->count() == 0) continue;
    if (needs_no_more(*job)) continue;
    for (std::uint32_t i = 0; i < job->terms.size(); ++i) {
      if (job->terms[i] != TermState::kOpen) continue;
      if (asked.terms[i].kind == DependencyKind::kSingleton) continue;
      const DependencyTerm& term = asked.terms[i];
      if (!edges_.contains(Edge{waited_for(*job, term), job->id, i}) &&
          !edges_.contains(Edge{term.job, job->id, i})) {
        return "job " + to_string(job->id) + ": waits for a job that does not know it";
      }
      ++open;
    }
  }
  return open == edges_.size() ? "" : "jobs are waited for by jobs that do not wait";
}

}  // namespace sched
