#include "node-agent/policy/timetable_gate.h"

#include <set>

namespace agent {

namespace {

std::string version_text(const kube::NodeTimetableSpec& spec) {
  return "term " + std::to_string(spec.term) + " revision " + std::to_string(spec.revision);
}

}  // namespace

std::string_view to_string(GateVerdict verdict) {
  switch (verdict) {
    case GateVerdict::kObeyed:
      return "obeyed";
    case GateVerdict::kUnchanged:
      return "unchanged";
    case GateVerdict::kStaleTerm:
      return "stale_term";
    case GateVerdict::kStaleRevision:
      return "stale_revision";
    case GateVerdict::kInvalid:
      return "invalid";
  }
  return "unknown";
}

// The operator writes valid timetables, so this is against other writers and against a newer
// operator whose fields mean something else. timetable::validate() checks the cycle; here are the
// pods' names.
base::Status validate(const kube::NodeTimetable& timetable) {
  const kube::NodeTimetableSpec& spec = timetable.spec;
  if (spec.term < 0 || spec.revision < 0) {
    return base::invalid_argument("spec: term " + std::to_string(spec.term) + " or revision " +
                                  std::to_string(spec.revision) + " is negative");
  }
  if (base::Status status = timetable::validate(spec.timetable); !status) {
    return status.error().with_context("spec");
  }
  std::set<kube::ObjectKey> seen;
  for (std::size_t i = 0; i < spec.pods.size(); ++i) {
    const kube::TimetablePod& pod = spec.pods[i];
    const std::string where = "spec.pods[" + std::to_string(i) + "]";
    if (pod.ns.empty() || pod.name.empty() || pod.job_uid.empty()) {
      return base::invalid_argument(where + ": namespace, name or jobUID is empty");
    }
    // Two indices of one pod would let it be on by one and off by the other.
    if (!seen.insert({pod.ns, pod.name}).second) {
      return base::invalid_argument(where + ": pod " + pod.ns + "/" + pod.name + " listed twice");
    }
  }
  return {};
}

// 1. The timetable that is in force already changes nothing.
// 2. An older one is refused if it comes from the watch, which a stale cache may serve; by a quorum
//    read it is obeyed (architecture.md 5). Revisions are compared only within one object and one
//    term.
// 3. An invalid one is refused, and the last valid one stays in force.
// For example 3/7 (term 3, revision 7) is in force. From the watch 3/8 and 4/1 are obeyed, 3/6 and
// 2/9 are not. If the object was deleted and made again, 3/1 is obeyed: its UID is another one.
GateVerdict TimetableGate::offer(const kube::NodeTimetable& timetable, Source source) {
  if (in_force_) {
    const kube::NodeTimetable& current = *in_force_;
    const bool same_object = current.metadata.uid == timetable.metadata.uid;
    if (same_object && current.spec == timetable.spec) {
      complaint_.clear();
      return GateVerdict::kUnchanged;
    }
    // The term counts leaders of the operator and holds across objects. The revision counts within
    // one object and term, so it is compared only there.
    const bool older_term = timetable.spec.term < current.spec.term;
    const bool older_revision = same_object && timetable.spec.term == current.spec.term &&
                                timetable.spec.revision < current.spec.revision;
    if ((older_term || older_revision) && source == Source::kWatch) {
      complaint_ = version_text(timetable.spec) + " is older than " + version_text(current.spec) +
                   " that is in force: asking the API server whether it has gone back";
      return older_term ? GateVerdict::kStaleTerm : GateVerdict::kStaleRevision;
    }
  }
  if (const base::Status status = validate(timetable); !status) {
    complaint_ =
        "revision " + std::to_string(timetable.spec.revision) + ": " + status.error().message;
    return GateVerdict::kInvalid;
  }
  complaint_.clear();
  in_force_ = std::make_shared<const kube::NodeTimetable>(timetable);
  return GateVerdict::kObeyed;
}

void TimetableGate::withdraw() {
  in_force_.reset();
  complaint_.clear();
}

}  // namespace agent
