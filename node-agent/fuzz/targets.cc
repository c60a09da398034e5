#include "node-agent/fuzz/targets.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include "base/check.h"
#include "linux/cpu_list.h"
#include "linux/mountinfo.h"
#include "node-agent/freezer/hierarchy.h"
#include "node-agent/freezer/pod_cgroups.h"
#include "node-agent/policy/timetable_json.h"
#include "node-agent/survival/journal.h"
#include "node-agent/testing/temporary_directory.h"

namespace agent {
namespace {

namespace fs = std::filesystem;
using base::Duration;
using base::Instant;

// Every refusal is a sentence on one line.
void check_sentence(const base::Error& error) {
  CHECK(!error.message.empty());
  CHECK(error.message.size() < 10'000);
}

// run(t) is complete, and next_change() and run_time() agree with it, at t and around it.
// Between `t` and the next change nothing changes, so a pod has run for all of that time or for
// none: the three functions are computed apart from each other and must agree on it.
void check_around(const timetable::Timetable& table, Instant t) {
  t = std::clamp(t, timetable::kInstantMin, timetable::kInstantMax);
  const std::span<const std::uint16_t> run = timetable::run_at(table, t);
  CHECK(std::is_sorted(run.begin(), run.end()));
  for (const std::uint16_t pod : run) {
    CHECK(pod < table.pods_count);
    CHECK(timetable::runs_at(table, pod, t));
  }
  const std::optional<Instant> change = timetable::next_change(table, t);
  if (change) {
    CHECK(*change > t);
    const auto after = timetable::run_at(table, *change);
    const auto before = timetable::run_at(table, *change - Duration{1});
    CHECK(std::equal(run.begin(), run.end(), before.begin(), before.end()));
    CHECK(!std::equal(run.begin(), run.end(), after.begin(), after.end()));
  }
  const Instant end = std::min(change.value_or(t + std::chrono::hours{1}), timetable::kInstantMax);
  if (end < t) return;
  // A few pods are enough: all are computed alike, and a table may have 1,024.
  for (std::uint16_t pod = 0; pod < std::min<std::size_t>(table.pods_count, 8); ++pod) {
    const Duration ran = timetable::run_time(table, pod, t, end);
    CHECK(ran == (timetable::runs_at(table, pod, t) ? end - t : Duration{0}));
  }
}

std::string_view take_line(std::string_view& text) {
  const std::size_t at = text.find('\n');
  const std::string_view line = text.substr(0, at);
  text = at == std::string_view::npos ? std::string_view{} : text.substr(at + 1);
  return line;
}

// A tree like kubelet's with one outside of it, and links that lead from the first into the second;
// made once. It has both of kubelet's drivers' spellings, and one below a kubelet root.
class Tree {
 public:
  Tree() {
    for (const char* pod : {"in/kubepods/burstable/podu1", "in/kubepods.slice/kubepods-podu1.slice",
                            "in/kubelet/kubepods/podu1", "out/kubepods/podu1"}) {
      fs::create_directories(root() / pod);
      std::ofstream{root() / pod / "cgroup.freeze"} << "0\n";
    }
    // One link in the middle of a path, and one in the place of a pod itself.
    fs::create_directory_symlink(root() / "out", root() / "in/kubepods/link");
    fs::create_directory_symlink(root() / "out/kubepods/podu1", root() / "in/kubepods/podu1");
  }
  fs::path inside() const { return fs::canonical(root() / "in"); }

 private:
  fs::path root() const { return directory_.path(); }
  testing::TemporaryDirectory directory_;
};

// Whatever the input, only a directory of that pod, inside the tree, may be opened: the agent runs
// as root, and what it opens it freezes.
void check_opened(const base::Result<PodCgroup>& cgroup, const fs::path& inside,
                  std::string_view uid) {
  if (!cgroup) {
    check_sentence(cgroup.error());
    return;
  }
  const fs::path where =
      fs::read_symlink("/proc/self/fd/" + std::to_string(cgroup->directory.get()));
  CHECK(where.string().starts_with(inside.string() + "/"), where.string());
  // The kernel's own word for what was opened, after all links.
  CHECK(is_pod_directory_name(where.filename().string(), uid), where.string());
}

}  // namespace

// A timetable that is accepted must be computable at any instant, the ends of time included: the
// switcher asks at every boundary, and a wrong answer would freeze the wrong pods.
void fuzz_timetable(std::string_view text) {
  const base::Result<kube::NodeTimetable> timetable = timetable_from_json(text);
  if (!timetable) {
    check_sentence(timetable.error());
    return;
  }
  const timetable::Timetable& table = timetable->spec.timetable;
  CHECK(timetable::validate(table).ok());
  for (const Instant t : {timetable::kInstantMin, Instant{}, Instant{std::chrono::hours{490'000}},
                          timetable::kInstantMax}) {
    check_around(table, t);
  }
  // The boundaries between the plan's entries, where off-by-one mistakes would be.
  for (const timetable::PlanEntry& entry : table.plan) {
    check_around(table, entry.until);
    check_around(table, entry.until - Duration{1});
  }
  // The journal keeps the same timetable.
  const base::Result<kube::NodeTimetable> again =
      timetable_from_json(timetable_to_json(*timetable));
  CHECK(again.ok());
  CHECK(again->spec == timetable->spec);
}

// Three lines: the pod's UID, kubelet's cgroup root, and a path from a journal. The first two come
// from the API server and from flags, the third from a file on the node; none may lead outside.
void fuzz_pod_path(std::string_view text) {
  static const Tree tree;
  const std::string uid{take_line(text)};
  const std::string kubelet_root{take_line(text)};
  const std::string path{take_line(text)};
  const base::Result<PodCgroups> cgroups = PodCgroups::open(tree.inside(), kubelet_root);
  if (!cgroups) return check_sentence(cgroups.error());
  for (const kube::QosClass qos :
       {kube::QosClass::kGuaranteed, kube::QosClass::kBurstable, kube::QosClass::kBestEffort}) {
    if (is_pod_uid(uid)) {
      for (const std::string& candidate : candidate_paths(uid, qos, kubelet_root)) {
        CHECK(is_pod_directory_name(fs::path{candidate}.filename().string(), uid), candidate);
      }
    }
    check_opened(cgroups->find(uid, qos), tree.inside(), uid);
  }
  check_opened(cgroups->at(path, uid), tree.inside(), uid);
  (void)os::parse_mountinfo(path);
  if (const auto cpus = os::parse_cpu_list(path)) {
    CHECK(os::parse_cpu_list(os::format_cpu_list(*cpus)) == cpus);
  }
}

// The rest of a crash in the file is refused as a whole or taken as a whole; a pod without UID or
// path could no longer be thawed.
void fuzz_journal(std::string_view text) {
  const base::Result<Journal> journal = parse_journal(text);
  if (!journal) {
    check_sentence(journal.error());
    return;
  }
  CHECK(*parse_journal(format_journal(*journal)) == *journal);
  for (const PodIdentity& pod : journal->pods) CHECK(!pod.uid.empty() && !pod.path.empty());
}

}  // namespace agent
