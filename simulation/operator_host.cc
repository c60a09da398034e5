#include "simulation/operator_host.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "kube/clock_watch.h"

namespace simulation {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

// kubelet starts the container again; a replica that lost its Lease exits by itself.
constexpr Time kComesBackAfter = seconds{1};
constexpr Time kLongestWait = seconds{5};
// The time without any leader before a process leads whose clock is off.
constexpr Time kLeadAnyhowAfter = std::chrono::minutes{1};
// A write takes up to 10 ms to the server, and its answer as long again. The loop runs up to 5 ms
// after news has come, so that several pieces of news are sometimes handled together and sometimes
// one by one.
constexpr std::uint64_t kWriteMicrosMax = 10'000;
constexpr std::uint64_t kLoopMicrosMax = 5'000;
// Sizes of breaks: how much time is not counted, in millionths, and how long a commit stays in
// memory only.
constexpr std::int64_t kDriftOfTheBreak = -200'000;
constexpr Time kAnsweredEarly = seconds{2};

// A write of a status or a timetable that was not done.
bool is_failure(const control::Outcome& outcome) {
  return std::visit(
      [](const auto& one) {
        if constexpr (requires { one.result.ok(); }) {
          return !one.result.ok();
        } else if constexpr (requires { one.status.ok(); }) {
          return !one.status.ok();
        } else {
          return false;
        }
      },
      outcome);
}

// Returns true if the write says which pods follow others at their places, and nothing else that
// pods wait for.
bool gives_a_place(const control::PatchStatus<kube::Job>& patch) {
  const std::string& before = patch.from->status.member_indexes;
  const std::string& now = patch.to->status.member_indexes;
  return patch.point == control::WritePoint::kReady && !before.empty() && before != now;
}

// Returns true for the status of a job that is not a commit point.
bool only_informs(const control::Effect& effect) {
  const auto* patch = std::get_if<control::PatchStatus<kube::Job>>(&effect);
  return patch != nullptr && patch->point == control::WritePoint::kStatus;
}

// Draws a time of up to that many microseconds, at least one: nothing takes no time.
Time some(base::Prng& prng, std::uint64_t micros_max) {
  return microseconds{1 + static_cast<std::int64_t>(prng.below(micros_max + 1))};
}

}  // namespace

// Takes effects; each reaches the API server after a while, and its outcome the loop after another.
class OperatorHost::SlowWriter final : public control::Writer {
 public:
  explicit SlowWriter(OperatorHost& host) : host_{host} {}

  void submit(control::Effect effect) override {
    const bool slow = host_.now_ < host_.slow_until_;
    const auto most =
        slow ? static_cast<std::uint64_t>(host_.write_delay_max_.count()) : kWriteMicrosMax;
    effects.push_back({std::move(effect), host_.now_ + some(host_.prng_, most)});
    if (slow) ++host_.tally_.faults["write slow"];
  }
  int at_once() const override { return 16; }

  struct OnItsWay {
    control::Effect effect;
    Time at;
    bool has_looked = false;  // that the process leads
  };
  struct Answer {
    control::Outcome outcome;
    Time at;
  };
  std::vector<OnItsWay> effects;
  std::deque<Answer> answers;

 private:
  OperatorHost& host_;
};

// One process of the operator: it stands for election, and leads or does not. It compares its clock
// with the API server's.
struct OperatorHost::Process {
  // Identities are unique per process (architecture.md 3), so each one has a number of its own.
  explicit Process(OperatorHost& host)
      : clock_watch{host.clock_},
        transport{host.link_, host.clock_, clock_watch},
        client{transport, host.clock_, host.sleeper_, client_options(2)},
        elector{
            kube::Client{transport, host.clock_, host.sleeper_, client_options(2)},
            host.clock_,
            {.lease = operator_lease(),
             .identity = host.name_ + "-" + std::to_string(++host.incarnation_),
             .seed = host.prng_.next()},
            {.on_started = [&host](std::int32_t transitions) { host.begin_to_lead(transitions); },
             .on_lost = [&host] { host.ends_at_ = host.now_; },
             .may_hold = [&host](base::Duration free_for) { return host.is_fit(free_for); }}} {}

  kube::ClockWatch clock_watch;
  kube::ClockWatchTransport transport;
  kube::Client client;
  kube::LeaderElector elector;
  Time elector_at{0};
  bool distrusts_clock = false;
};

// The parts of operator/process that exist while it leads, with feeds and writes that take time.
struct OperatorHost::Leading {
  Leading(OperatorHost& host, std::int32_t transitions)
      : inbox{waker},
        writer{host},
        actuator{host.process_->client},
        informers{host.process_->client,
                  host.clock_,
                  inbox,
                  templates,
                  [](std::string_view, const base::Error&) {},
                  {}},
        loop{host.clock_,
             inbox,
             writer,
             templates,
             {.log =
                  [&host](const std::string& message, const std::string& fields) {
                    if (host.log_) host.log_(host.name_ + ": " + message + " " + fields);
                  },
              .warn =
                  [&host](const std::string& message, const std::string& fields) {
                    if (host.log_) host.log_(host.name_ + ": WARN " + message + " " + fields);
                  },
              .event = {},
              .ended = [&host](const std::string&) { host.ends_at_ = host.now_; }}} {
    // The term comes first, since the first step needs it, as in operator/process.
    loop.lead(transitions);
    if (host.process_->distrusts_clock) loop.distrust_clock();
    for (auto& [name, step] : informers.steps()) {
      host.link_.add_feed([run = step] { return run({}); });
    }
  }

  kube::Waker waker;
  control::Inbox inbox;
  control::TemplateBook templates;
  SlowWriter writer;
  control::Actuator actuator;
  control::Informers informers;
  control::ControlLoop loop;
  Time loop_at = kNoTime;
  base::Instant newest{};  // that the loop has seen on its clock
  int idle_steps = 0;      // in a row, that wrote nothing and asked for another one at once
};

OperatorHost::OperatorHost(std::string name, devcluster::ApiServer& server, const Time& now,
                           const Breaks& breaks, Tally& tally, std::uint64_t seed, Log log)
    : name_{std::move(name)},
      now_{now},
      breaks_{breaks},
      tally_{tally},
      log_{std::move(log)},
      prng_{seed},
      clock_{now},
      server_{server},
      link_{server, now, breaks, tally, name_, seed + 1} {
  if (breaks_.is(Break::kTimeLost)) clock_.drift(kDriftOfTheBreak);
}

OperatorHost::~OperatorHost() = default;

// A new process remembers nothing. It stands for election at its first step, under an identity that
// differs from that of the process before (Process), so it cannot mistake the Lease of its
// predecessor for its own.
void OperatorHost::start() {
  starts_at_ = kNoTime;
  process_ = std::make_unique<Process>(*this);
  process_->elector_at = now_;
}

// Called by the elector, in step(). `transitions` is how often the Lease has changed hands; the
// loop derives from it the term that fences the writes of earlier leaders (architecture.md 3).
void OperatorHost::begin_to_lead(std::int32_t transitions) {
  leading_ = std::make_unique<Leading>(*this, transitions);
  if (log_) log_(name_ + ": leads, transitions " + std::to_string(transitions));
}

// Returns true if the process may take the Lease, as operator/process decides it.
bool OperatorHost::is_fit(base::Duration free_for) {
  if (leading_) return true;
  process_->distrusts_clock = process_->clock_watch.is_in_doubt();
  if (!process_->distrusts_clock || free_for >= kLeadAnyhowAfter) return true;
  ++tally_.faults["does not lead by a wrong clock"];
  return false;
}

// Returns true if the leader must end, as operator/process decides it: its clock is off, or it led
// all the same and the clock is right again.
bool OperatorHost::clock_is_wrong() {
  const kube::ClockWatch& watch = process_->clock_watch;
  return process_->distrusts_clock ? !watch.is_in_doubt() : watch.off().has_value();
}

// Decisions that it has not sent are lost with it; so is every answer.
void OperatorHost::end(Time back_at) {
  if (!process_) return;
  link_.drop_feeds();
  leading_.reset();
  process_.reset();
  starts_at_ = back_at;
  ends_at_ = kNoTime;
  paused_until_ = loop_hangs_until_ = Time{0};
  disarm();
  postponed_.clear();
  if (log_) log_(name_ + ": ended");
}

// SIGKILL. Counted as a fault, unlike end() after a lost Lease, which is how the operator should
// behave.
void OperatorHost::kill(Time back_at) {
  if (!process_) return;
  ++tally_.faults["operator killed"];
  end(back_at);
}

void OperatorHost::kill_at_write(int count, bool after, Time down_for) {
  kill_in_ = count;
  kill_after_ = after;
  kill_down_for_ = down_for;
}

void OperatorHost::pause_at_write(int count, bool after, Time until) {
  pause_in_ = count;
  pause_after_ = after;
  pause_at_write_until_ = until;
}

// The tally tells a paused leader from a paused stand-by: only the former tests anything, and a
// campaign in which it never happened would prove nothing.
void OperatorHost::pause(Time until) {
  if (!process_) return;
  ++tally_.faults[leading_ ? "leader paused" : "stand-by paused"];
  paused_until_ = until;
}

void OperatorHost::hang_loop(Time until) {
  if (!leading_) return;
  ++tally_.faults["leader's loop hung"];
  loop_hangs_until_ = std::max(loop_hangs_until_, until);
  leading_->loop_at = std::max(leading_->loop_at, until);
}

void OperatorHost::slow_writes(Time until, Time delay_max) {
  slow_until_ = until;
  write_delay_max_ = delay_max;
}

// Answers count, too: the loop acts again when it hears them, so the operator is not at rest
// before.
bool OperatorHost::has_writes_under_way() const {
  return leading_ && (!leading_->writer.effects.empty() || !leading_->writer.answers.empty());
}

bool OperatorHost::distrusts_clock() const {
  return process_ != nullptr && process_->distrusts_clock;
}

bool OperatorHost::stands_still() const {
  return leading_ && clock_.wall() < leading_->newest;
}

const control::ControlLoop* OperatorHost::loop() const {
  return leading_ ? &leading_->loop : nullptr;
}

// Each outage that holds now, and a second for what is normal.
Time OperatorHost::hears_and_stores_within() const {
  const Weather& weather = link_.weather;
  Time within = seconds{1};
  within += std::max(weather.partitioned_until - now_, Time{0});
  within += std::max(std::max(paused_until_, loop_hangs_until_) - now_, Time{0});
  if (pause_in_) within += std::max(pause_at_write_until_ - now_, Time{0});
  if (now_ < weather.delayed_until) within += weather.delay_max;
  if (now_ < slow_until_) within += write_delay_max_;
  return within;
}

// Writes that have left the machine go on while the process is paused; everything else waits.
Time OperatorHost::next() const {
  if (!process_) return starts_at_;
  Time next = kNoTime;
  if (leading_) {
    for (const auto& effect : leading_->writer.effects) next = std::min(next, effect.at);
    for (const Postponed& one : postponed_) next = std::min(next, one.at);
  }
  // The elector, the loop, the informers and the reading of answers are the process itself.
  if (now_ < paused_until_) return std::min(next, paused_until_);
  next = std::min({next, ends_at_, process_->elector_at});
  if (leading_) {
    next = std::min({next, link_.next_feed(), leading_->loop_at});
    for (const auto& answer : leading_->writer.answers) next = std::min(next, answer.at);
  }
  return std::max(next, now_);
}

// 1. a process starts
// 2. writes that are due are carried out, and answers come in
// 3. the election: a leader that has lost its Lease ends, as the real one does
// 4. the informers, and the control loop once all of them have synced
void OperatorHost::step() {
  if (!process_ && now_ >= starts_at_) start();
  if (!process_) return;
  if (leading_) step_writes();  // also of a paused one: they have left the machine
  if (!process_ || now_ < paused_until_) return;
  if (now_ >= process_->elector_at) {
    process_->elector_at =
        now_ + std::max<base::Duration>(process_->elector.step(), milliseconds{1});
  }
  if (now_ >= ends_at_) return end(now_ + kComesBackAfter);
  if (!leading_) return;
  if (link_.run_feeds())
    leading_->loop_at = std::min(leading_->loop_at, now_ + some(prng_, kLoopMicrosMax));
  leading_->loop_at = std::max(leading_->loop_at, loop_hangs_until_);
  if (now_ < leading_->loop_at) return;
  // A leader that decided by half of the objects would take the rest for deleted.
  if (!leading_->informers.have_synced()) {
    leading_->loop_at = kNoTime;  // the next feed wakes it
    return;
  }
  if (clock_is_wrong()) return end(now_ + kComesBackAfter);
  leading_->newest = std::max(leading_->newest, clock_.wall());
  const std::size_t writes = leading_->writer.effects.size();
  const base::Instant due = leading_->loop.step();
  const bool wrote = leading_->writer.effects.size() > writes;
  leading_->idle_steps = wrote || due > clock_.wall() ? 0 : leading_->idle_steps + 1;
  // The step may have been fenced: a stored object carries a higher term than this leader's.
  if (now_ >= ends_at_) return end(now_ + kComesBackAfter);
  leading_->loop_at =
      std::max(std::min(clock_.when_wall(due), now_ + kLongestWait), now_ + base::Duration{1});
}

bool OperatorHost::never_rests() const {
  constexpr int kIdleStepsMax = 20;
  return leading_ && leading_->idle_steps > kIdleStepsMax;
}

// Writes overtake each other, since there are several writers.
void OperatorHost::step_writes() {
  carry_out_postponed();
  SlowWriter& writer = leading_->writer;
  for (std::size_t i = 0; i < writer.effects.size();) {
    if (writer.effects[i].at > now_) {
      ++i;
      continue;
    }
    const bool pauses = pauses_now();
    if (pauses && !pause_after_) {
      writer.effects[i].at = paused_until_;
      writer.effects[i].has_looked = true;
      continue;
    }
    SlowWriter::OnItsWay one = std::move(writer.effects[i]);
    writer.effects.erase(writer.effects.begin() + static_cast<std::ptrdiff_t>(i));
    if (!carry_out(std::move(one.effect), one.has_looked)) return;
  }
  if (now_ < paused_until_) return;
  while (!writer.answers.empty() && writer.answers.front().at <= now_) {
    leading_->inbox.completed(std::move(writer.answers.front().outcome));
    writer.answers.pop_front();
    leading_->loop_at = std::max(now_, loop_hangs_until_);
  }
}

// Returns true if the process is paused at the write that comes now.
bool OperatorHost::pauses_now() {
  if (!pause_in_ || now_ < paused_until_ || !process_->elector.is_leader()) return false;
  if (now_ >= pause_at_write_until_) pause_in_.reset();
  if (!pause_in_ || --*pause_in_ > 0) return false;
  pause_in_.reset();
  ++tally_
        .faults[pause_after_ ? "operator paused after a write" : "operator paused before a write"];
  paused_until_ = pause_at_write_until_;
  return true;
}

// Sends one write. Returns false if the process was killed before or after it, which is the
// difference that a successor must not be able to suffer from.
bool OperatorHost::carry_out(control::Effect effect, bool has_looked) {
  // A writer's thread looks before it sends (process.cc); what a paused process had sent is under
  // way and arrives.
  const bool sent_by_paused = has_looked || now_ < paused_until_;
  // A write that is not sent has no answer either: the process is about to end.
  if (!sent_by_paused && !process_->elector.is_leader()) return true;
  const bool dies = kill_in_ && --*kill_in_ <= 0;
  if (dies) died_at_write_ = kill_down_for_;
  if (dies && !kill_after_) {
    ++tally_.faults["operator killed before a write"];
    end(now_ + kill_down_for_);
    return false;
  }
  // Break::kChargesForgotten: which jobs have nodes, and what was charged for them so far, is left
  // out of the record. A leader that takes over cannot know of these charges and makes them again.
  auto* usage = std::get_if<control::PutUsage>(&effect);
  if (usage != nullptr && breaks_.is(Break::kChargesForgotten)) {
    kube::UsageRecord record = *usage->object;
    record.spec.jobs.clear();
    usage->object = std::move(record);
  }
  control::Outcome outcome = answer_to(effect);
  if (dies) {
    ++tally_.faults["operator killed after a write"];
    end(now_ + kill_down_for_);
    return false;
  }
  // The loop takes the write to be under way forever without its outcome.
  if (breaks_.is(Break::kOutcomeLost) && is_failure(outcome)) return true;
  const Time at =
      // Answers keep the order in which the writes were carried out.
      std::max(now_ + some(prng_, kWriteMicrosMax),
               leading_->writer.answers.empty() ? Time{0} : leading_->writer.answers.back().at);
  leading_->writer.answers.push_back({std::move(outcome), at});
  return true;
}

// Break::k…NotStored: the operator hears that its commit is stored before it is, so that what
// follows from the commit does not wait for it.
control::Outcome OperatorHost::answer_to(const control::Effect& effect) {
  // A postponed commit of the same job is stored first, so that this write, which was computed from
  // it, does not meet the state before it.
  if (const auto* patch = std::get_if<control::PatchStatus<kube::Job>>(&effect)) {
    carry_out_postponed(patch->from->metadata.uid);
  }
  // This break is about timetables alone: no pod is made before its start is stored.
  const auto* pod = std::get_if<control::CreatePod>(&effect);
  if (pod != nullptr && breaks_.is(Break::kTableNotStored)) {
    carry_out_postponed(pod->job->metadata.uid);
  }
  const auto* table = std::get_if<control::PutTimetable>(&effect);
  const bool is_swallowed =
      (breaks_.is(Break::kWriteSwallowed) && only_informs(effect)) ||
      (breaks_.is(Break::kTableSwallowed) && table != nullptr && table->exists);
  if (!is_answered_early(effect) && !is_swallowed) return leading_->actuator.carry_out(effect);
  ++tally_.faults["commit answered before it is stored"];
  if (!is_swallowed) postponed_.push_back({now_ + kAnsweredEarly, effect});
  // The answer comes from a dry run, so it is the one that the API server would really give.
  link_.set_dry_run(true);
  control::Outcome outcome = leading_->actuator.carry_out(effect);
  link_.set_dry_run(false);
  return outcome;
}

// Returns true if the active break answers this write before it is stored. Only these commit points
// (architecture.md 3) have a break; each has a checker that must notice it.
bool OperatorHost::is_answered_early(const control::Effect& effect) const {
  const auto* patch = std::get_if<control::PatchStatus<kube::Job>>(&effect);
  if (patch == nullptr) return false;
  const bool starts_early =
      breaks_.is(Break::kStartNotStored) || breaks_.is(Break::kTableNotStored);
  return (patch->point == control::WritePoint::kStart && starts_early) ||
         (patch->point == control::WritePoint::kEnding && breaks_.is(Break::kEndingNotStored)) ||
         (gives_a_place(*patch) && breaks_.is(Break::kPlaceNotStored)) ||
         (patch->point == control::WritePoint::kFinal && breaks_.is(Break::kEndNotStored));
}

// Carries them out in the order in which they were answered, so that commits of one job do not
// overtake each other.
void OperatorHost::carry_out_postponed(const std::string& uid) {
  for (std::size_t i = 0; i < postponed_.size();) {
    const auto& patch = std::get<control::PatchStatus<kube::Job>>(postponed_[i].effect);
    if (postponed_[i].at > now_ && patch.from->metadata.uid != uid) {
      ++i;
      continue;
    }
    (void)leading_->actuator.carry_out(postponed_[i].effect);
    postponed_.erase(postponed_.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

}  // namespace simulation
