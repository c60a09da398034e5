#include "cli/cluster/after_submit.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <type_traits>
#include <utility>

#include "api/account.h"
#include "api/partition.h"
#include "api/qos.h"
#include "api/wellknown.h"
#include "cli/yaml_text.h"
#include "kube/api/meta.h"
#include "slurm/text.h"
#include "translation/pod_identity.h"

namespace cli {
namespace {

// Polled and not watched: few requests for one job, and no stream that has to be taken up again
// after an outage.
constexpr base::Duration kWaitPollEvery = std::chrono::seconds{1};
constexpr base::Duration kNumberPollEvery = std::chrono::milliseconds{100};
// A new leader takes over within 15 s of the old one's death, and reads all jobs first.
constexpr base::Duration kNumberWaitMax = std::chrono::seconds{60};
// The operator writes a job's number before the first pass over the queue has a reason for it.
constexpr base::Duration kReasonWaitMax = std::chrono::seconds{2};
// An exit code of a process has 8 bits.
constexpr int kExitCodeMax = 255;

// Returns the exit code of the command if the job has ended, and says how it ended; nullopt if not.
// A job whose program ended with 3 gives 3; one that was canceled before it started gives 1.
std::optional<int> exit_code_after(const kube::Job& job, Output output) {
  const kube::JobStatus& status = job.status;
  if (!status.state || !kube::is_final(*status.state)) return std::nullopt;
  output.out << "job.kubegang.io/" << job.metadata.name << " " << kube::to_string(*status.state)
             << "\n";
  if (*status.state == kube::JobState::kCompleted) return kExitOk;
  const auto code = status.exit_code.value_or(0);
  // A job that was canceled or timed out has failed although it may have no exit code of its own.
  return code > 0 && code <= kExitCodeMax ? static_cast<int>(code) : kExitFailed;
}

// Returns why the job will never start; nullopt if it may.
std::optional<std::string> refusal_of(const kube::JobStatus& status) {
  const kube::Condition* const accepted = kube::find_condition(status.conditions, kube::kAccepted);
  if (accepted != nullptr && accepted->status == kube::ConditionStatus::kFalse) {
    return accepted->message;
  }
  if (status.reason == "BadConstraints") return status.message;
  return std::nullopt;
}

// Returns "there is no partition "x"; name one of: a, b", the operator's sentence.
template <typename T>
base::Status check_there(const Session& session, const std::vector<std::string>& wanted,
                         const std::string& what) {
  if (wanted.empty()) return {};
  const auto list = session.client.list<T>();
  // Users may be allowed to submit and not to list: then the submission shows it.
  if (!list && list.error().code == base::Code::kPermissionDenied) return {};
  if (!list) return list.error();
  // Without accounts every name is taken and means nothing (the operator's check_account).
  if (std::is_same_v<T, kube::Account> && list->items.empty()) return {};
  std::string names;
  for (const T& each : list->items) names += (names.empty() ? "" : ", ") + each.metadata.name;
  for (const std::string& name : wanted) {
    const bool is_there = std::any_of(list->items.begin(), list->items.end(),
                                      [&](const T& each) { return each.metadata.name == name; });
    if (is_there) continue;
    return base::invalid_argument("there is no " + what + " " + slurm::in_quotes(name) +
                                  (names.empty() ? "" : "; name one of: " + names));
  }
  return {};
}

}  // namespace

bool is_outage(const base::Error& error) {
  return error.code == base::Code::kUnavailable || error.code == base::Code::kTimeout;
}

// The answer may be several writes: the number first, then why the job waits. An outage of the API
// server is waited for like a missing operator.
base::Result<kube::Job> wait_for_number(const Session& session, const kube::Job& submitted,
                                        Output output, Speaker speaker) {
  const kube::ObjectKey key = kube::key_of(submitted.metadata);
  const base::Duration begin = session.clock.monotonic();
  std::optional<base::Duration> numbered_at;
  bool outage_told = false;
  kube::Job last = submitted;
  for (;;) {
    base::Result<kube::Job> job = session.client.get<kube::Job>(key);
    const base::Duration now = session.clock.monotonic();
    if (!job && !is_outage(job.error())) return job;
    if (!job && !std::exchange(outage_told, true)) {
      output.err << speaker << ": " << job.error().message << "; still waiting\n";
    }
    if (job) {
      if (const std::optional<std::string> why = refusal_of(job->status)) {
        const base::Status taken = take_back(session, submitted);
        return base::invalid_argument(
            *why + (taken ? "" : "; the job could not be deleted: " + taken.error().message));
      }
      last = std::move(*job);
      const kube::JobStatus& status = last.status;
      if (status.job_id && !numbered_at) numbered_at = now;
      const bool waits = !status.state || *status.state == kube::JobState::kPending;
      if (!waits || (status.job_id && !status.reason.empty())) return last;
    }
    if (numbered_at ? now - *numbered_at >= kReasonWaitMax : now - begin >= kNumberWaitMax) {
      return last;
    }
    if (const base::Status slept = session.sleeper.sleep(kNumberPollEvery, {}); !slept) {
      return slept.error();
    }
  }
}

base::Result<kube::Job> number_or_take_back(const Session& session, const kube::Job& submitted,
                                            Output output, Speaker speaker) {
  base::Result<kube::Job> numbered = wait_for_number(session, submitted, output, speaker);
  if (numbered && numbered->status.job_id) return numbered;
  const bool is_refused = !numbered && numbered.error().code == base::Code::kInvalidArgument;
  if (is_refused) return numbered;
  const base::Status taken = take_back(session, submitted);
  return base::Error{base::Code::kUnavailable,
                     (numbered ? "no operator has numbered it within 60 s"
                               : "its number is not known: " + numbered.error().message) +
                         (taken ? "; the job is deleted again"
                                : "; it could not be deleted: " + taken.error().message)};
}

base::Status take_back(const Session& session, const kube::Job& submitted) {
  return session.client.remove<kube::Job>(kube::key_of(submitted.metadata),
                                          {.uid = submitted.metadata.uid});
}

// SOURCE: sbatch.1, --wait: does not exit before the job has ended, and exits with its exit code.
// A job may run for days, so an API server that is away for a while is reported once and outlived.
base::Result<int> wait_for_end(const Session& session, const kube::Job& submitted, Output output) {
  const kube::ObjectKey key = kube::key_of(submitted.metadata);
  bool outage_told = false;
  for (;;) {
    const base::Result<kube::Job> job = session.client.get<kube::Job>(key);
    if (job) {
      // If the job was deleted, by a user or after its TTL, and made again, waiting for the new one
      // would answer another question.
      if (job->metadata.uid != submitted.metadata.uid) {
        return base::Error{base::Code::kNotFound,
                           "job " + kube::to_string(key) + " is gone, another has its name"};
      }
      if (const std::optional<int> code = exit_code_after(*job, output)) return *code;
      outage_told = false;
    } else if (!is_outage(job.error())) {
      return job.error();
    } else if (!std::exchange(outage_told, true)) {
      output.err << "kubectl-gang submit: " << job.error().message << "; still waiting\n";
    }
    if (const base::Status slept = session.sleeper.sleep(kWaitPollEvery, {}); !slept) {
      return slept.error();
    }
  }
}

// A job without a partition needs a default one.
base::Status check_names(const Session& session, const kube::Job& job) {
  const auto optional_list = [](const std::optional<std::string>& name) {
    return name && !name->empty() ? std::vector<std::string>{*name} : std::vector<std::string>{};
  };
  base::Status status = check_there<kube::Partition>(session, job.spec.partitions, "partition");
  if (status) {
    status = check_there<kube::Qos>(session, optional_list(job.spec.schedule.qos), "QOS");
  }
  if (status) {
    status =
        check_there<kube::Account>(session, optional_list(job.spec.schedule.account), "account");
  }
  if (!status || !job.spec.partitions.empty()) return status;
  const auto partitions = session.client.list<kube::Partition>();
  if (!partitions) return {};
  const bool has_default =
      std::any_of(partitions->items.begin(), partitions->items.end(),
                  [](const kube::Partition& each) { return each.spec.is_default.value_or(false); });
  if (has_default) return {};
  return base::invalid_argument("no partition is the default; name one with -p");
}

base::Result<std::string> pod_defaults_comments(const Session& session, const kube::Job& job) {
  if (!control::takes_pod_defaults(job.spec)) return std::string{};
  const auto partitions = session.client.list<kube::Partition>();
  if (!partitions) return partitions.error();
  const auto accounts = session.client.list<kube::Account>();
  if (!accounts) return accounts.error();
  std::optional<kube::PodIdentity> identity;
  for (const kube::Account& each : accounts->items) {
    const auto& accepted = each.status.accepted;
    if (accepted && !identity) identity = control::identity_of(*accepted, job.metadata.ns);
  }
  std::string comments;
  const std::vector<std::string>& names = job.spec.partitions;
  for (const kube::Partition& each : partitions->items) {
    const auto& accepted = each.status.accepted;
    const std::string& name = each.metadata.name;
    if (!accepted || (!accepted->pod_defaults && !identity)) continue;
    const bool is_asked =
        names.empty() ? accepted->is_default.value_or(false) : std::ranges::count(names, name) > 0;
    if (!is_asked) continue;
    nlohmann::json pod = job.spec.pod_template.json();
    const base::Status added =
        control::add_pod_defaults(pod["spec"], job, {name, accepted->pod_defaults, identity});
    if (!added) return added.error();
    comments += "# With the podDefaults of partition " + name +
                " and the namespace's identity, spec.template.spec is:\n";
    std::istringstream lines{yaml_text(pod["spec"])};
    for (std::string line; std::getline(lines, line);) comments += "#   " + line + "\n";
  }
  return comments;
}

}  // namespace cli
