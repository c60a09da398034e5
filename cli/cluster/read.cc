#include "cli/cluster/read.h"

#include "slurm/text.h"

namespace cli {

base::Result<Timetables> read_timetables(const Session& session, Output output) {
  base::Result<std::vector<kube::NodeTimetable>> list =
      list_all<kube::NodeTimetable>(session, "", output);
  if (!list) return list.error();
  Timetables timetables;
  for (kube::NodeTimetable& timetable : *list) {
    timetables[timetable.metadata.name] = std::move(timetable);
  }
  return timetables;
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
