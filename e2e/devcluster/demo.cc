#include "e2e/devcluster/demo.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>

#include "e2e/devcluster/apply.h"
#include "e2e/devcluster/cluster_view.h"
#include "e2e/devcluster/demo/report.h"
#include "e2e/devcluster/demo/screen.h"
#include "e2e/devcluster/freeze_watch.h"
#include "e2e/devcluster/job_rows.h"
#include "e2e/probe/analysis.h"
#include "kube/api/time_format.h"
#include "kube/http_transport.h"
#include "kube/transport_config.h"
#include "slurm/hostlist.h"

namespace devcluster {
namespace {

using base::Code;
using base::Error;
using nlohmann::json;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr int kExitFailed = 1;
constexpr int kExitInterrupted = 130;
// For agents and for each job. A start takes a few seconds; a busy machine gets ten times that.
constexpr seconds kReadyPatience{30};
constexpr seconds kGonePatience{5};
// Long enough to know what one gang does alone.
constexpr seconds kAlone{3};
// After JobReady was seen, so that the start itself is not measured.
constexpr milliseconds kAloneMargin{200};
// Writes are counted from 10 s after both jobs were ready: those of the second start have been made
// by then.
constexpr seconds kWritesCountedAfter{10};
constexpr milliseconds kFrame{100};
constexpr milliseconds kReadEvery{250};
// Columns of the picture for each turn.
constexpr std::int64_t kCellsPerSlice = 4;

// The demo as a script (play()) over one thread that shows the cluster while it waits: every wait
// goes through pass(), which draws a frame at a time and notices Ctrl-C. The picture is made of
// what a user could read: jobs and timetables from the API server, and the stamps that the probes
// write.
class Demo {
 public:
  // `user`: over the network with the kubeconfig, as a user's kubectl.
  Demo(const kube::Clock& clock, Devcluster& cluster, kube::Transport& user,
       const DemoOptions& options, Interrupts& interrupts)
      : clock_{clock},
        cluster_{cluster},
        user_{user},
        options_{options},
        interrupts_{interrupts},
        terminal_{Screen::terminal_of_stdout()},
        began_{clock.wall()} {}

  base::Result<Report> play();
  void say(const std::string& line);

 private:
  base::Status prepare();
  base::Status submit(const json& job);
  base::Status wait_until_ready(const std::string& job);
  base::Status wait_for(const std::string& what, base::Duration patience,
                        const std::function<bool()>& condition);
  base::Status pass(base::Duration time);
  base::Status remove_jobs();
  Report measure(base::Instant alone_from, base::Instant alone_to, base::Instant both_ready) const;

  void show();
  void refresh();
  void draw(base::Instant now);
  void print_changes(base::Instant now);
  base::Duration frame() const;
  std::vector<probe::Gang> gangs() const;

  const kube::Clock& clock_;
  Devcluster& cluster_;
  kube::Transport& user_;
  const DemoOptions& options_;
  Interrupts& interrupts_;
  const std::optional<Terminal> terminal_;
  const base::Instant began_;

  const FreezeWatch freezes_{clock_, cluster_.kubelet()};
  Screen screen_;
  std::vector<std::string> job_names_;
  ClusterView view_;
  base::Duration read_at_{};
  std::string phase_;
  std::string last_line_;
  bool over_ = false;
};

// Seconds since the demo began, in a column of fixed width. base::Duration counts microseconds.
std::string since(base::Duration time) {
  char text[32];
  std::snprintf(text, sizeof text, "%7.2f s  ", static_cast<double>(time.count()) / 1e6);
  return text;
}

// Prints a line that stays above the picture.
void Demo::say(const std::string& line) {
  screen_.keep();
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

// Waits, and shows the cluster meanwhile. Returns kCancelled if Ctrl-C ends the wait early.
base::Status Demo::pass(base::Duration time) {
  const base::Duration end = clock_.monotonic() + time;
  for (base::Duration now = clock_.monotonic(); now < end; now = clock_.monotonic()) {
    if (interrupts_.wait(std::min(frame(), end - now))) return Error{Code::kCancelled, "stopped"};
    // A frame may take long on a slow terminal; the end does not move for it.
    show();
  }
  return {};
}

// Waits until the condition holds. Returns kTimeout with the sentence `what` if it does not within
// `patience`.
base::Status Demo::wait_for(const std::string& what, base::Duration patience,
                            const std::function<bool()>& condition) {
  const base::Duration end = clock_.monotonic() + patience;
  while (!condition()) {
    if (clock_.monotonic() >= end) return Error{Code::kTimeout, what};
    if (const base::Status status = pass(frame()); !status.ok()) return status;
  }
  return {};
}

// How often the picture is drawn: four times in a slice, so that no turn is missed, and between 10
// and 100 ms, which an eye and a CPU can bear.
// The same pace for the lines of print_changes(): a change of turns must not be missed there
// either.
base::Duration Demo::frame() const {
  const base::Duration quarter = options_.slice / kCellsPerSlice;
  return std::clamp<base::Duration>(quarter, milliseconds{10}, kFrame);
}

// Reads the cluster, four times a second at most: the states between two reads follow from the
// timetables, so the picture is exact all the same.
void Demo::refresh() {
  const base::Duration now = clock_.monotonic();
  if (now - read_at_ < kReadEvery) return;
  read_at_ = now;
  base::Result<ClusterView> view = read_cluster(cluster_.transport());
  // If the read fails the picture stays as it was: the API server is in this process, so it is not
  // away.
  if (view.ok()) view_ = std::move(view).value();
}

void Demo::show() {
  if (over_) return;  // the last picture is one of jobs that run
  refresh();
  const base::Instant now = clock_.wall();
  if (terminal_) {
    draw(now);
  } else {
    print_changes(now);
  }
}

std::vector<probe::Gang> Demo::gangs() const {
  std::vector<probe::Gang> out;
  // Freezes as the kernel showed them; without them the end of settling would be guessed from the
  // stamps.
  const auto first_freezes = freezes_.first_freezes();
  for (const std::string& name : job_names_) {
    out.push_back(cluster_.stamps().gang(name, first_freezes));
  }
  return out;
}

// On a terminal: the queue, and a strip for each node of which gang ran when.
void Demo::draw(base::Instant now) {
  const std::vector<std::string> nodes = cluster_.node_names();
  std::size_t name_length = 0;
  for (const std::string& node : nodes) name_length = std::max(name_length, node.size());
  const base::Duration cell = options_.slice / kCellsPerSlice;
  Picture picture{
      .title = "kubegang: two gangs take turns, slice " + kube::format_duration(options_.slice) +
               "   " + since(now - began_) + phase_,
      .jobs = job_rows(view_.jobs, view_.timetables, now),
      .strips = node_strips(nodes, gangs(), now, cell, strip_columns(*terminal_, name_length)),
      .cell_length = cell,
      // Two commands, because one would be cut at 80 columns.
      .footer = {kStateLegend, "Look inside, in another terminal:",
                 "export KUBECONFIG=" + options_.shown_directory + "/kubeconfig",
                 "kubectl get partitions,gjobs,nodetimetables"}};
  if (!options_.page.empty()) picture.footer.push_back("In a browser: " + options_.page);
  screen_.draw(render(picture, *terminal_));
}

// "first R  second S": printed when it becomes another one.
void Demo::print_changes(base::Instant now) {
  std::string line;
  for (const JobRow& row : job_rows(view_.jobs, view_.timetables, now)) {
    line +=
        row.name + " " + row.state + (row.state == "PD" ? " " + row.nodes_or_reason : "") + "  ";
  }
  // Only changes, so that a log of the demo stays short.
  if (line == last_line_ || line.empty()) return;
  if (last_line_.empty()) std::printf("%s\n", kStateLegend);
  last_line_ = line;
  std::printf("%s%s\n", since(now - began_).c_str(), line.c_str());
  std::fflush(stdout);
}

// Returns the configuration with the demo's slice, and a partition of all nodes of this cluster.
base::Status Demo::prepare() {
  for (const char* file : {"/scheduler-config.yaml", "/partitions.yaml"}) {
    base::Result<std::vector<json>> objects = read_manifests(options_.examples_directory + file);
    if (!objects.ok()) return objects.error();
    for (json& object : *objects) {
      if (object["kind"] == "SchedulerConfig") {
        object["spec"]["timeSlice"] = kube::format_duration(options_.slice);
      }
      if (object["kind"] == "Partition") {
        object["spec"]["nodes"]["hostlist"] = slurm::compress_hostlist(cluster_.node_names());
      }
      if (const auto status = apply_object(user_, object); !status.ok()) return status;
    }
  }
  phase_ = "the agents report";
  return wait_for("not all agents have reported after 30 s", kReadyPatience,
                  [&] { return agents_ready(view_) == cluster_.config().nodes.size(); });
}

// As a user would: apply it and wait until it runs.
base::Status Demo::submit(const json& job) {
  const std::string name = job["metadata"]["name"].get<std::string>();
  phase_ = "job " + name + " starts";
  if (const auto status = apply_object(user_, job); !status.ok()) return status;
  job_names_.push_back(name);
  return wait_until_ready(name);
}

// startTime is written when all pods have settled (JobReady). If that does not come, the
// scheduler's own reason is part of the error.
base::Status Demo::wait_until_ready(const std::string& name) {
  const auto status = wait_for("job " + name + " is not ready", kReadyPatience, [&] {
    const kube::Job* job = view_.job(name);
    // Read from the last look at the cluster, which pass() brings up to date.
    return job != nullptr && job->status.start_time.has_value();
  });
  if (status.ok() || status.error().code == Code::kCancelled) return status;
  const kube::Job* job = view_.job(name);
  return Error{
      Code::kTimeout,
      status.error().message + " after 30 s: " +
          (job == nullptr ? "it is gone" : job->status.reason + " " + job->status.message)};
}

// The end is a part of the demo: pods of gangs that take turns must be gone soon, also frozen ones.
base::Status Demo::remove_jobs() {
  // The picture of the turns stays on the screen while the jobs go.
  over_ = true;
  for (const std::string& name : job_names_) {
    const base::Result<json> deleted =
        call_api(user_, kube::Method::kDelete,
                 "/apis/kubegang.io/v1alpha1/namespaces/default/jobs/" + name, nullptr);
    if (!deleted.ok() && deleted.error().code != Code::kNotFound) return deleted.error();
  }
  return wait_for("pods are left 5 s after their jobs were deleted", kGonePatience, [&] {
    const auto pods = pod_names(cluster_.transport());
    return pods.ok() && pods->empty();
  });
}

// 1. from the stamps: when each gang ran, how exactly it switched, what overlapped; the time in
//    which the first job was alone tells how much of a CPU a probe gets without turns
// 2. from the API server: writes of pods and of timetables' specs per switch, which must be none
Report Demo::measure(base::Instant alone_from, base::Instant alone_to,
                     base::Instant both_ready) const {
  // Taken once: the stamps grow while they are read, and figures of one report must be of the same
  // time.
  const base::Instant until = clock_.wall();
  Report report{.slice = options_.slice};
  report.findings = probe::analyse({.slice = options_.slice,
                                    .gangs = gangs(),
                                    .until = until,
                                    .unsliced = probe::Interval{alone_from, alone_to}});
  const base::Instant from = both_ready + kWritesCountedAfter;
  std::int64_t writes = 0;
  for (const WriteRecord& write : cluster_.api_server().writes_since(from)) {
    const bool timetable_spec =
        write.kind.resource == "nodetimetables" && write.kind.subresource.empty();
    writes += write.kind.resource == "pods" || timetable_spec ? 1 : 0;
  }
  const auto nodes = static_cast<std::int64_t>(cluster_.config().nodes.size());
  // At least one, so that a demo without any turn does not divide by zero; complaints() reports
  // that.
  const std::int64_t switches = std::max<std::int64_t>(1, (until - from) / options_.slice * nodes);
  // Writes of statuses of jobs and timetables do not count: run times are shown while jobs run.
  report.api_writes_per_switch = static_cast<double>(writes) / static_cast<double>(switches);
  return report;
}

// 1. the configuration and the partition
// 2. the first job, alone for a while
// 3. the second job
// 4. both take turns
// 5. the measurement
// 6. the end: both jobs are deleted and their pods are gone
base::Result<Report> Demo::play() {
  base::Result<std::vector<json>> jobs =
      read_manifests(options_.examples_directory + "/gang-jobs.yaml");
  if (!jobs.ok()) return jobs.error();
  if (jobs->size() != 2) {
    return base::invalid_argument("examples/demo/gang-jobs.yaml: want two jobs");
  }
  // Both need all nodes, or they would run side by side.
  for (json& job : *jobs) {
    job["spec"]["resources"]["nodes"]["min"] = cluster_.config().nodes.size();
  }
  if (const auto status = prepare(); !status.ok()) return status.error();

  if (const auto status = submit((*jobs)[0]); !status.ok()) return status.error();
  phase_ = "job " + job_names_[0] + " is alone";
  // The first job without a rival: what one probe does when nothing takes turns.
  const base::Instant alone_from = clock_.wall() + kAloneMargin;
  if (const auto status = pass(kAlone); !status.ok()) return status.error();
  const base::Instant alone_to = clock_.wall();

  if (const auto status = submit((*jobs)[1]); !status.ok()) return status.error();
  // From here on the two settle together and then take turns.
  const base::Instant both_ready = clock_.wall();
  phase_ = "both take turns";
  if (const auto status = pass(options_.duration); !status.ok()) return status.error();

  Report report = measure(alone_from, alone_to, both_ready);
  if (const auto status = remove_jobs(); !status.ok()) return status.error();
  return report;
}

}  // namespace

// Jobs are applied over the network with the kubeconfig, as a user's kubectl would; only reading
// goes into the API server directly.
int play_demo(const kube::Clock& clock, Devcluster& cluster, const DemoOptions& options,
              Interrupts& interrupts) {
  const auto config = kube::load_kubeconfig(cluster.kubeconfig_path());
  auto user = config.ok() ? kube::HttpTransport::create(*config, clock) : config.error();
  if (!user.ok()) {
    std::fprintf(stderr, "demo failed: %s\n", user.error().message.c_str());
    return kExitFailed;
  }
  const std::string path = cluster.config().directory + "/report.json";
  std::error_code ignored;
  std::filesystem::remove(path, ignored);  // of an earlier run: this one may not get that far
  Demo demo{clock, cluster, **user, options, interrupts};
  const base::Result<Report> report = demo.play();
  if (!report.ok()) {
    demo.say(report.error().code == Code::kCancelled ? "stopped"
                                                     : "demo failed: " + report.error().message);
    return report.error().code == Code::kCancelled ? kExitInterrupted : kExitFailed;
  }
  std::ofstream file{path};
  file << report_json(*report).dump(2) << "\n";
  file.close();
  if (!file) {
    demo.say("demo failed: cannot write " + path);
    return kExitFailed;
  }
  // Run by sudo, the report would belong to root.
  give_to_invoking_user(path);
  demo.say("");
  for (const std::string& line : report_lines(*report)) demo.say(line);
  // Every complaint is printed; a hard one makes the exit code 1, so that a script can run the demo
  // as a test.
  bool failed = false;
  for (const Complaint& complaint : complaints(*report)) {
    demo.say((complaint.hard ? "FAILED: " : "remark: ") + complaint.sentence);
    failed = failed || complaint.hard;
  }
  demo.say("report: " + options.shown_directory + "/report.json");
  return failed ? kExitFailed : 0;
}

}  // namespace devcluster
