#include "cli/cluster/read.h"

#include "slurm/text.h"

namespace cli {

TimetableOf TimetableReader::lookup() {
  return [this](const std::string& node) { return find(node); };
}

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

// Not all clusters let everybody read timetables: without them states are those of the jobs' own
// statuses, which do not follow the turns.
void TimetableReader::fail(const base::Error& error) {
  if (error.code != base::Code::kPermissionDenied) {
    status_ = error;
    return;
  }
  has_all_ = true;
  output_.err << "kubectl-gang: timetables may not be read, so turns are not shown: "
              << error.message << "\n";
}

// What has been read stays: callers hold pointers to it.
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

base::Result<kube::Job> find_job(const Session& session, const std::string& name_or_number,
                                 Output output) {
  // Names begin with a letter, so a number is never a name.
  const base::Result<std::int64_t> number =
      slurm::parse_integer("job", name_or_number, {.min = 1, .max = std::int64_t{1} << 53U});
  if (!number) {
    return session.client.get<kube::Job>({.ns = session.ns, .name = name_or_number});
  }
  const base::Result<std::vector<kube::Job>> jobs =
      list_all<kube::Job>(session, session.ns, output);
  if (!jobs) return jobs.error();
  for (const kube::Job& job : *jobs) {
    if (job.status.job_id == *number) return job;
  }
  return base::Error{base::Code::kNotFound,
                     "there is no job " + name_or_number + " in namespace " + session.ns};
}

}  // namespace cli
