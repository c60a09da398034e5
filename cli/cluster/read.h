// Reads objects for commands: an object that does not decode is named on stderr and left out.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "cli/cluster/session.h"
#include "cli/program.h"
#include "kube/informer_core.h"
#include "view/job_time.h"

namespace cli {

// Returns all objects of a kind but Jobs that only ask (spec.testOnly); ns "" = all namespaces (or
// the kind has none). Reads only `fields` of each; null: all that T has. With a field selector the
// server sends only those that fit it, in one answer: an API server before 1.34 reads all objects
// from etcd to make pages.
template <kube::ApiObject T>
base::Result<std::vector<T>> list_all(const Session& session, const std::string& ns, Output output,
                                      const kube::KnownFields* fields = nullptr,
                                      const std::string& field_selector = "") {
  kube::ListOptions options{
      .ns = ns, .field_selector = field_selector, .fields = fields, .reads_ahead = true};
  if (!field_selector.empty()) options.page_items_max = 0;
  base::Result<kube::ObjectList<T>> list = session.client.list<T>(options);
  if (!list) return list.error();
  for (const kube::Undecodable& broken : list->undecodable) {
    output.err << "kubectl-gang: left out: " << broken.error.message << "\n";
  }
  if constexpr (std::is_same_v<T, kube::Job>) {
    std::erase_if(list->items, [](const T& job) { return job.spec.test_only.value_or(false); });
  }
  return std::move(list->items);
}

// For a watch that people look at: after an error they want to see it soon. ns "" = all namespaces
// (or the kind has none); `fields` as in list_all.
kube::InformerOptions watch_options(const std::string& ns,
                                    const kube::KnownFields* fields = nullptr);

// Says on stderr that states do not follow the turns, and why.
void tell_no_timetables(const base::Error& refusal, Output output);

// The timetables of the nodes that are asked about: the first ones one by one, all at once when
// there are many. `session` must live longer.
class TimetableReader {
 public:
  TimetableReader(const Session& session, Output output) : session_{session}, output_{output} {}

  // For job_moment(); valid as long as this. Null after an error, too.
  view::TimetableOf lookup();
  // Returns the first error that reading met. Without the right to read timetables there are none,
  // and stderr says so.
  const base::Status& status() const { return status_; }

 private:
  static constexpr int kSingleReadsMax = 50;

  const kube::NodeTimetable* find(const std::string& node);
  void read_one(const std::string& node);
  void read_all();
  void fail(const base::Error& error);

  const Session& session_;
  const Output output_;
  base::Status status_{};
  int single_reads_ = 0;
  bool has_all_ = false;
  std::map<std::string, std::optional<kube::NodeTimetable>> read_;  // nullopt: there is none
};

// Returns the jobs of a namespace ("" = all) that have this number (status.jobID): an array has one
// of its own, and the numbers of its tasks are not looked for. The server sends only them if it can
// select by the number, all jobs otherwise.
base::Result<std::vector<kube::Job>> list_numbered(const Session& session, const std::string& ns,
                                                   std::int64_t number, Output output,
                                                   const kube::KnownFields* fields = nullptr);

// Finds a job by its name, by its number (status.jobID) in the session's namespace, or as
// "job/NAME" by the Job of the batch group whose present attempt it is. kNotFound: no such job.
base::Result<kube::Job> find_job(const Session& session, const std::string& name_or_number,
                                 Output output);

// Returns true if find_job would take `job` for this name or number; "job/NAME" has all attempts.
bool is_called(const kube::Job& job, const std::string& name_or_number);

// Returns " (of job.batch/NAME)" if a Job of the batch group controls it, else "".
std::string of_batch_job(const kube::Job& job);

}  // namespace cli
