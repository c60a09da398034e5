#include "scheduler/queue/dependencies.h"

#include <algorithm>
#include <cstddef>

namespace sched {
namespace {

bool waits_for_others(const Job& job) {
  return job.pending() && state_of(job.terms, job.request->dependency.any) == TermState::kOpen;
}

// One of the terms is enough, and is met.
bool needs_no_more(const Job& job) {
  return job.request->dependency.any && state_of(job.terms, true) == TermState::kMet;
}

bool names_nobody(const DependencyTerm& term) {
  return term.kind == DependencyKind::kSingleton || term.job.number() == 0;
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
      return "the tasks of " + job + " to succeed";
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

// The first term that is open, or, if the job can never start, the first that has failed.
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

// A walk along the open terms of the jobs that are waited for, directly or not.
std::optional<std::string> Dependencies::refused(const JobRequest& request) const {
  std::set<JobId> seen;
  std::vector<JobId> ahead;
  const auto follow = [&](const DependencyTerm& term) {
    if (term.kind != DependencyKind::kSingleton && seen.insert(term.job).second) {
      ahead.push_back(term.job);
    }
  };
  for (const DependencyTerm& term : request.dependency.terms) {
    if (term.kind == DependencyKind::kAfterCorr) {
      return "aftercorr is not there yet; use afterok, which waits for all tasks";
    }
    if (term.job == request.id && term.kind != DependencyKind::kSingleton) {
      return "the job cannot wait for itself (job " + to_string(request.id) + ")";
    }
    follow(term);
  }
  while (!ahead.empty()) {
    const Job* job = books_.find(ahead.back());
    ahead.pop_back();
    if (job == nullptr || !waits_for_others(*job)) continue;
    for (std::size_t i = 0; i < job->terms.size(); ++i) {
      if (job->terms[i] != TermState::kOpen) continue;
      const DependencyTerm& term = job->request->dependency.terms[i];
      if (term.kind != DependencyKind::kSingleton && term.job == request.id) {
        return "job " + to_string(job->id) + " waits for this job, so this job cannot wait for it";
      }
      follow(term);
    }
  }
  return std::nullopt;
}

void Dependencies::add(Job& job, const std::vector<KnownJob>& known) {
  const std::vector<DependencyTerm>& terms = job.request->dependency.terms;
  job.terms.assign(terms.size(), TermState::kOpen);
  if (counts_names_) names_[name_of(job)].jobs.insert(job.id);
  if (terms.empty()) return;
  changed_.insert(job.id);
  for (std::uint32_t i = 0; i < terms.size() && !needs_no_more(job); ++i) {
    const DependencyTerm& term = terms[i];
    if (names_nobody(term) || books_.find(term.job) != nullptr) {
      open(job, i);
      continue;
    }
    const auto fact = std::ranges::find(known, term.job, &KnownJob::job);
    if (fact == known.end()) {
      set(job, i, TermState::kMet);
    } else {
      open_known(job, i, *fact);
    }
  }
}

void Dependencies::restore(Job& job, const std::map<JobId, KnownJob>& known) {
  const std::vector<DependencyTerm>& terms = job.request->dependency.terms;
  job.terms.resize(terms.size(), TermState::kOpen);
  if (counts_names_) names_[name_of(job)].jobs.insert(job.id);
  if (terms.empty()) return;
  // What was met before has had its consequences: the job's age counts from then on.
  if (state_of(job.terms, job.request->dependency.any) != TermState::kMet) changed_.insert(job.id);
  for (std::uint32_t i = 0; i < terms.size() && !needs_no_more(job); ++i) {
    if (job.terms[i] != TermState::kOpen) continue;
    const DependencyTerm& term = terms[i];
    const auto fact = known.find(term.job);
    if (names_nobody(term) || books_.find(term.job) != nullptr) {
      open(job, i);
    } else if (fact != known.end()) {
      open_known(job, i, fact->second);
    } else {
      const bool by_outcome =
          term.kind == DependencyKind::kAfterOk || term.kind == DependencyKind::kAfterNotOk;
      set(job, i, by_outcome ? TermState::kFailed : TermState::kMet);
    }
  }
}

// What is so already settles the term at once.
void Dependencies::open(Job& job, std::uint32_t term) {
  const DependencyTerm& asked = job.request->dependency.terms[term];
  if (asked.kind == DependencyKind::kSingleton) {
    count_names();
    if (is_alone(job)) return set(job, term, TermState::kMet);
    return;
  }
  const Job* other = books_.find(asked.job);
  if (other != nullptr && is_terminal(other->state) && asked.kind != DependencyKind::kAfter) {
    return set(job, term, outcome(asked.kind, other->state));
  }
  const Edge edge{asked.job, job.id, term};
  if (other != nullptr && !other->pending() && asked.kind == DependencyKind::kAfter) {
    const base::Instant due = other->allocated_at + asked.delay;
    if (due <= now_) return set(job, term, TermState::kMet);
    timers_.emplace(due, edge);
  }
  edges_.insert(edge);
}

// The caller alone knows the job.
void Dependencies::open_known(Job& job, std::uint32_t term, const KnownJob& known) {
  const DependencyTerm& asked = job.request->dependency.terms[term];
  const Edge edge{asked.job, job.id, term};
  const base::Instant due = known.started.value_or(base::Instant{}) + asked.delay;
  if (!is_terminal(known.state)) {
    edges_.insert(edge);
  } else if (asked.kind == DependencyKind::kAfter && due > now_) {
    edges_.insert(edge);
    timers_.emplace(due, edge);
  } else {
    set(job, term, outcome(asked.kind, known.state));
  }
}

void Dependencies::set(Job& job, std::uint32_t term, TermState state) {
  job.terms[term] = state;
  changed_.insert(job.id);
  if (needs_no_more(job)) remove(job);
}

// Another name is another queue of singletons.
void Dependencies::change(Job& job, const JobRequest& request, const std::vector<KnownJob>& known) {
  const Name before = name_of(job);
  const bool differs = job.request->dependency != request.dependency;
  if (differs) remove(job);
  books_.set_request(job, request);
  if (counts_names_ && name_of(job) != before) {
    names_[name_of(job)].jobs.insert(job.id);
    names_[before].jobs.erase(job.id);
    left(before);
  }
  if (differs) add(job, known);
}

// Timers of the job find no edge any more.
void Dependencies::remove(const Job& job) {
  const std::vector<DependencyTerm>& terms = job.request->dependency.terms;
  for (std::uint32_t i = 0; i < job.terms.size(); ++i) {
    edges_.erase(Edge{terms[i].job, job.id, i});
  }
}

// Of the terms that name the job, those for which state_of_term() says something.
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
}

// One that was canceled before it started counts as started when it was. A record that is erased
// before its end was canceled, too.
void Dependencies::over(const Job& job) {
  if (counts_names_) {
    names_[name_of(job)].jobs.erase(job.id);
    left(name_of(job));
  }
  if (std::exchange(returns_, std::nullopt) == job.id) return;
  over_elsewhere(job.id, is_terminal(job.state) ? job.state : JobState::kCancelled);
}

void Dependencies::over_elsewhere(JobId id, JobState state) {
  settle(id, [&](const DependencyTerm& term, const Edge&) -> std::optional<TermState> {
    if (term.kind == DependencyKind::kAfter) return std::nullopt;
    return outcome(term.kind, state);
  });
  // The delay of one that started goes on.
  const Job* job = books_.find(id);
  const bool has_started = job != nullptr && job->allocated_at != base::Instant{};
  see_started(id, has_started ? job->allocated_at : now_);
}

TermState Dependencies::outcome(DependencyKind kind, JobState state) {
  const bool succeeded = state == JobState::kCompleted;
  const bool met = kind == DependencyKind::kAfterOk      ? succeeded
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
    if (is_terminal(job->state)) continue;
    Namesakes& all = names_[name_of(*job)];
    all.jobs.insert(job->id);
    if (job->allocated()) ++all.allocated;
  }
}

// Slurm lets the next one start while the last one is being cleaned up; here it waits for that.
bool Dependencies::is_alone(const Job& job) const {
  const Namesakes& all = names_.at(name_of(job));
  return all.allocated == 0 && *all.jobs.begin() == job.id;
}

// A job has given up its nodes, or is over: the first that waits may be alone now. A job that is
// requeued waits again, under its number.
void Dependencies::left(const Name& name) {
  const auto at = names_.find(name);
  if (at->second.jobs.empty()) {
    names_.erase(at);
    return;
  }
  if (at->second.allocated > 0) return;
  Job& first = *books_.find(*at->second.jobs.begin());
  if (needs_no_more(first)) return;
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
    if (!edges_.contains(edge) || (other != nullptr && other->pending())) continue;
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
    if (!job->pending()) continue;
    if (job->terms.size() != asked.terms.size()) {
      return "job " + to_string(job->id) + ": terms and request differ";
    }
    if (needs_no_more(*job)) continue;
    for (std::uint32_t i = 0; i < job->terms.size(); ++i) {
      if (job->terms[i] != TermState::kOpen) continue;
      if (asked.terms[i].kind == DependencyKind::kSingleton) continue;
      if (!edges_.contains(Edge{asked.terms[i].job, job->id, i})) {
        return "job " + to_string(job->id) + ": waits for a job that does not know it";
      }
      ++open;
    }
  }
  return open == edges_.size() ? "" : "jobs are waited for by jobs that do not wait";
}

}  // namespace sched
