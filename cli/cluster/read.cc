#include "cli/cluster/read.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <span>
#include <string_view>

#include "api/wellknown.h"
#include "kube/api/batch_job.h"
#include "slurm/text.h"
#include "view/queue_lines.h"

namespace cli {
namespace {

// Returns the number of the attempt at a batch Job that this job is; 0 without the label. A label
// that is not a number counts as 0, too: the operator writes it, and a user may have edited it.
int attempt_of(const kube::Job& job) {
  const auto label = job.metadata.labels.find(std::string{kube::kLabelAttempt});
  int attempt = 0;
  if (label != job.metadata.labels.end()) {
    const std::string& text = label->second;
    (void)std::from_chars(text.data(), text.data() + text.size(), attempt);
  }
  return attempt;
}

// Returns the text behind one of these kinds and a slash, as kubectl writes them; "" if none stands
// there.
std::string after_kind(std::string_view text, std::span<const std::string_view> kinds) {
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos) return "";
  const auto found = std::find(kinds.begin(), kinds.end(), text.substr(0, slash));
  return found == kinds.end() ? "" : std::string{text.substr(slash + 1)};
}

// The ways in which kubectl lets users write the two kinds. "job" alone is Kubernetes' own, as in
// kubectl.
constexpr std::array<std::string_view, 4> kBatch{"job", "jobs", "job.batch", "jobs.batch"};
constexpr std::array<std::string_view, 4> kOurs{"gjob", "gjobs", "job.kubegang.io",
                                                "jobs.kubegang.io"};

// Returns the text as a job's number (status.jobID); an error if it is not a number. Names of Jobs
// begin with a letter (a rule of the CRD), so a number is never a name. The bound is 2^53, the
// largest integer that every reader of JSON keeps exact.
base::Result<std::int64_t> read_number(const std::string& text) {
  return slurm::parse_integer("job", text, {.min = 1, .max = std::int64_t{1} << 53U});
}

// Says why a batch Job has no kubegang Job, as exactly as its own object tells: it belongs to
// another controller, kubegang has refused it, it is suspended, or the operator has not come to it
// yet.
base::Error no_job_of(const Session& session, const std::string& name) {
  const auto batch = session.client.get<kube::BatchJob>({.ns = session.ns, .name = name});
  if (!batch) return batch.error();
  const std::string whose = "job.batch/" + name;
  if (batch->spec.managed_by != kube::kManagedBy) {
    return base::invalid_argument(
        whose + " is not kubegang's: it lacks spec.managedBy: " + std::string{kube::kManagedBy});
  }
  const auto* accepted = kube::find_condition(batch->status.conditions, kube::kBatchAccepted);
  const bool is_refused = accepted != nullptr && accepted->status == kube::ConditionStatus::kFalse;
  return {base::Code::kNotFound,
          whose + (is_refused            ? " cannot run: " + accepted->message
                   : batch->spec.suspend ? " is suspended (spec.suspend)"
                                         : " has no kubegang job yet; is the operator running?")};
}

// Finds the present attempt, the highest: one batch Job may have several kubegang Jobs, one for
// each attempt. The whole namespace is listed: the API cannot select by owner.
base::Result<kube::Job> find_job_of_batch(const Session& session, const std::string& name,
                                          Output output) {
  const base::Result<std::vector<kube::Job>> jobs =
      list_all<kube::Job>(session, session.ns, output);
  if (!jobs) return jobs.error();
  const kube::Job* present = nullptr;
  for (const kube::Job& job : *jobs) {
    if (view::batch_job_of(job) != name) continue;
    if (present == nullptr || attempt_of(job) > attempt_of(*present)) present = &job;
  }
  if (present == nullptr) return no_job_of(session, name);
  return *present;
}

}  // namespace

kube::InformerOptions watch_options(const std::string& ns, const kube::KnownFields* fields) {
  kube::InformerOptions options;
  options.ns = ns;
  options.fields = fields;
  options.backoff.max = std::chrono::seconds{5};
  return options;
}

// A warning and not an error: everything but the turns can be shown without timetables.
void tell_no_timetables(const base::Error& refusal, Output output) {
  output.err << "kubectl-gang: timetables may not be read, so turns are not shown: "
             << refusal.message << "\n";
}

// The function is good as long as the reader is; what it returns lives as long, too.
view::TimetableOf TimetableReader::lookup() {
  return [this](const std::string& node) { return find(node); };
}

// A few gets for a few nodes, then one list for all the rest: on a large cluster a list for one job
// would be thousands of objects, and a get for each node of a long queue as many calls. nullptr
// means that no timetable lists anything on this node, or that reading failed; status() tells the
// two apart.
const kube::NodeTimetable* TimetableReader::find(const std::string& node) {
  if (!status_) return nullptr;
  auto found = read_.find(node);
  if (found == read_.end() && !has_all_) {
    if (++single_reads_ <= kSingleReadsMax) {
      read_one(node);
    } else {
      read_all();
    }
    found = read_.find(node);
  }
  return found == read_.end() || !found->second ? nullptr : &*found->second;
}

// A node without a timetable is remembered, too, so that it is asked for once.
void TimetableReader::read_one(const std::string& node) {
  base::Result<kube::NodeTimetable> one =
      session_.client.get<kube::NodeTimetable>({.ns = "", .name = node});
  if (one) {
    read_[node] = std::move(*one);
  } else if (one.error().code == base::Code::kNotFound) {
    read_[node] = std::nullopt;
  } else {
    fail(one.error());
  }
}

// Not all clusters let every user read timetables: without them states are those of the jobs' own
// statuses, which do not follow the turns.
void TimetableReader::fail(const base::Error& error) {
  if (error.code != base::Code::kPermissionDenied) {
    status_ = error;
    return;
  }
  has_all_ = true;
  tell_no_timetables(error, output_);
}

// Timetables that have been read stay: callers hold pointers to them.
void TimetableReader::read_all() {
  base::Result<std::vector<kube::NodeTimetable>> list =
      list_all<kube::NodeTimetable>(session_, "", output_);
  if (!list) {
    fail(list.error());
    return;
  }
  has_all_ = true;
  for (kube::NodeTimetable& timetable : *list) {
    const std::string node = timetable.metadata.name;
    read_.try_emplace(node, std::move(timetable));
  }
}

// Lists by number. A server before 1.31, or with an older CRD, does not support the field.
base::Result<std::vector<kube::Job>> list_numbered(const Session& session, const std::string& ns,
                                                   std::int64_t number, Output output,
                                                   const kube::KnownFields* fields) {
  const std::string selector = "status.jobID=" + std::to_string(number);
  auto jobs = list_all<kube::Job>(session, ns, output, fields, selector);
  if (!jobs && jobs.error().code == base::Code::kInvalidArgument) {
    jobs = list_all<kube::Job>(session, ns, output, fields);
  }
  if (!jobs) return jobs.error();
  std::erase_if(*jobs, [&](const kube::Job& job) { return job.status.job_id != number; });
  return jobs;
}

// 1. "job/NAME": the present attempt at a batch Job
// 2. "gjob/NAME": a kubegang Job, as kubectl writes it
// 3. "NAMESPACE/NAME", as `explain` and messages write it
// 4. a number: the server selects by status.jobID
// 5. a name
base::Result<kube::Job> find_job(const Session& session, const std::string& name_or_number,
                                 Output output) {
  if (const std::string batch = after_kind(name_or_number, kBatch); !batch.empty()) {
    return find_job_of_batch(session, batch, output);
  }
  if (const std::string ours = after_kind(name_or_number, kOurs); !ours.empty()) {
    return session.client.get<kube::Job>({.ns = session.ns, .name = ours});
  }
  if (const std::size_t slash = name_or_number.find('/'); slash != std::string::npos) {
    return session.client.get<kube::Job>(
        {.ns = name_or_number.substr(0, slash), .name = name_or_number.substr(slash + 1)});
  }
  const base::Result<std::int64_t> number = read_number(name_or_number);
  if (!number) {
    // No name in Kubernetes has it, so these are tasks of an array.
    if (const std::size_t end = name_or_number.find('_'); end != std::string::npos) {
      return base::Error{base::Code::kNotFound, "there is no job " + name_or_number +
                                                    "; name the array as a whole, " +
                                                    name_or_number.substr(0, end)};
    }
    return session.client.get<kube::Job>({.ns = session.ns, .name = name_or_number});
  }
  base::Result<std::vector<kube::Job>> jobs = list_numbered(session, session.ns, *number, output);
  if (!jobs) return jobs.error();
  if (!jobs->empty()) return std::move(jobs->front());
  return base::Error{base::Code::kNotFound,
                     "there is no job " + name_or_number + " in namespace " + session.ns};
}

// Returns true if find_job() could mean this job by that name, by the same rules. A batch Job's
// name fits all of its attempts, not only the present one. The names are those of the command line,
// so this decides which jobs `queue NAME` shows.
bool is_called(const kube::Job& job, const std::string& name_or_number) {
  if (const std::string batch = after_kind(name_or_number, kBatch); !batch.empty()) {
    return view::batch_job_of(job) == batch;
  }
  if (job.metadata.ns + "/" + job.metadata.name == name_or_number) return true;
  const std::string ours = after_kind(name_or_number, kOurs);
  if (job.metadata.name == (ours.empty() ? name_or_number : ours)) return true;
  const base::Result<std::int64_t> number = read_number(name_or_number);
  return number.ok() && job.status.job_id == *number;
}

// For lines that name a job by the name that kubegang gave it: the user knows the other one.
std::string of_batch_job(const kube::Job& job) {
  const std::string batch = view::batch_job_of(job);
  return batch.empty() ? "" : " (of job.batch/" + batch + ")";
}

}  // namespace cli
