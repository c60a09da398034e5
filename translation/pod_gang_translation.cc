#include "translation/pod_gang_translation.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "api/wellknown.h"
#include "kube/api/pod_group.h"
#include "kube/api/time_format.h"
#include "translation/devices.h"
#include "translation/pod_shape.h"
#include "translation/pod_slots.h"
#include "translation/sentences.h"
#include "translation/template_check.h"

namespace control {
namespace {

using Json = nlohmann::json;
using Pods = std::span<const std::shared_ptr<const kube::Pod>>;
using Kind = PodGangVerdict::Kind;
using Sentences = std::vector<std::string>;

constexpr std::int64_t kGangPodsMax = 1024;        // the CRD's, of spec.adopted
constexpr std::size_t kNamePrefixMax = 44;         // of a Job's name
constexpr std::int64_t kWrittenGraceSeconds = 30;  // written into each pod that has none
constexpr std::size_t kSentencesMax = 4;           // those of further pods are mostly the same
constexpr std::string_view kTemplate = "spec.template.";  // as the check of templates names fields

// Returns "" if the pod lacks the annotation. One that is "" means the same: a template that
// renders an empty value asks for nothing.
std::string annotation(const kube::Pod& pod, std::string_view name) {
  const auto found = pod.metadata.annotations.find(std::string{name});
  return found == pod.metadata.annotations.end() ? "" : found->second;
}

// Returns the text as a whole number from 1 to `max`; nullopt if it is anything else.
std::optional<std::int64_t> number(const std::string& text, std::int64_t max) {
  std::int64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, value);
  if (parsed.ec != std::errc{} || parsed.ptr != end || value < 1 || value > max)
    return std::nullopt;
  return value;
}

// Makes one Job of the pods that name a gang, or says why not.
// 1. All pods must say the same in the annotations that are about the gang.
// 2. As long as pods are missing, the gang waits; with too many it is refused, because nothing says
//    which of them are meant.
// 3. Each pod is checked as a template of a job is.
// 4. The Job's size follows from the largest pod, since all slots are alike to the scheduler.
//
// The first pod speaks for the gang; pods come sorted by name, so each leader takes the same one.
class Translator {
 public:
  Translator(Pods pods, const GangName& gang, const PodGroupFacts& group)
      : pods_{pods}, gang_{gang}, group_{group}, first_{*pods.front()} {}

  PodGangVerdict run() {
    // The annotations must agree before the pods are counted: with two sizes it would be undefined
    // when the gang is complete.
    const Size size = check_size();
    check_same();
    if (!problems_.empty()) return refused();
    const auto present = static_cast<std::int64_t>(pods_.size());
    if (present < size.pods) {
      return {.message = "waits for pods: " + std::to_string(present) + " of " +
                         (size.is_least ? "at least " : "") + std::to_string(size.pods) +
                         " pods of " + gang_text() + " exist"};
    }
    if (const std::int64_t most = size.is_least ? kGangPodsMax : size.pods; present > most) {
      problem(std::to_string(present) + " pods name " + gang_text() +
              (size.is_least ? ", and a gang may have " + std::to_string(most)
                             : ", which has " + std::to_string(most) + " by its annotation " +
                                   std::string{kube::kAnnotationPods}) +
              "; delete those that are too many");
      return refused();
    }
    if (size.is_least && group_.grows) {
      return {.message = "waits a moment, since more pods of " + gang_text() + " may come"};
    }
    // Only a complete gang is checked pod by pod: until then its pods may still be replaced.
    for (const auto& pod : pods_) check_pod(*pod);
    PodGangVerdict verdict{.kind = Kind::kComplete, .job = job()};
    return problems_.empty() ? std::move(verdict) : refused();
  }

 private:
  struct Size {
    std::int64_t pods = 1;
    bool is_least = false;  // more may come
  };

  std::string gang_text() const {
    const bool is_group = gang_.by == GangName::By::kPodGroup;
    return (is_group ? "PodGroup \"" : "gang \"") + gang_.name + "\"";
  }

  void problem(std::string sentence) { problems_.push_back(std::move(sentence)); }
  PodGangVerdict refused() const { return {.kind = Kind::kRefused, .message = joined(problems_)}; }

  void problem_of_annotation(std::string_view name, const std::string& text,
                             const std::string& advice) {
    problem("annotation " + std::string{name} + ": \"" + text + "\" " + advice);
  }

  // Returns how many pods complete the gang. The annotation says it exactly; a PodGroup gives only
  // a least number, because the coscheduling plugin starts any surplus pods with the others. After
  // a problem the result is meaningless: run() refuses the gang before it counts.
  // An absent minMember, and the 0 that its CRD lets pass, ask for nothing: one pod is a gang.
  Size check_size() {
    const std::int64_t least = std::max(group_.min_member.value_or(1), 1);
    if (least > kGangPodsMax) {
      problem(gang_text() + ": spec.minMember: " + std::to_string(least) + " is more than the " +
              std::to_string(kGangPodsMax) + " pods that a gang may have");
    }
    const std::string text = annotation(first_, kube::kAnnotationPods);
    if (text.empty()) return {.pods = least, .is_least = gang_.by == GangName::By::kPodGroup};
    const auto size = number(text, kGangPodsMax);
    if (!size) {
      problem_of_annotation(kube::kAnnotationPods, text,
                            "is not a number of pods from 1 to " + std::to_string(kGangPodsMax));
    } else if (*size < least) {
      problem_of_annotation(
          kube::kAnnotationPods, text,
          "is less than spec.minMember of " + gang_text() + ", " + std::to_string(least));
    }
    return {.pods = size.value_or(1)};
  }

  // Compares each pod with the first one only, which finds every difference, and reports one pod
  // for each annotation: if the first is the odd one, all 1,023 others differ from it. The
  // annotation of CPUs is not compared, since a gang takes the largest.
  void check_same() {
    for (const std::string_view name :
         {kube::kAnnotationPods, kube::kAnnotationPartition, kube::kAnnotationQos,
          kube::kAnnotationNodes, kube::kAnnotationTimeLimit}) {
      for (const auto& pod : pods_) {
        if (annotation(*pod, name) == annotation(first_, name)) continue;
        problem("annotation " + std::string{name} + ": pods " + first_.metadata.name + " and " +
                pod->metadata.name + " say different things; all pods of a gang must say the same");
        break;
      }
    }
  }

  // Checks a pod as a template of a job, except for its programs: a launcher calls mpirun.
  void check_pod(const kube::Pod& pod) {
    Json spec = kube::encode(pod)["spec"];
    // Our gate is what brought the pod here, and the default scheduler's name is what the API
    // server writes; both would be refused in a template.
    spec.erase("schedulingGates");
    for (const char* list : {"containers", "initContainers"}) {
      // Launchers are looked for in these two fields alone. Without them check_template() has
      // nothing to find.
      if (!spec.contains(list)) continue;
      for (Json& container : spec[list]) {
        container.erase("command");
        container.erase("args");
      }
    }
    if (spec.value("schedulerName", "") == "default-scheduler") spec.erase("schedulerName");
    const kube::RawJson as_template{Json{{"spec", spec}}};
    Sentences found = check_template(as_template, TemplateOf::kGatedPods).problems;
    const PodShape shape = shape_of_pod(pod, found);
    check_requests(pod, shape.cpus, found);
    if (pod.spec.runtime_class_name != first_.spec.runtime_class_name) {
      found.push_back("spec.runtimeClassName: \"" + pod.spec.runtime_class_name.value_or("") +
                      "\": must be that of pod " + first_.metadata.name + ", \"" +
                      first_.spec.runtime_class_name.value_or("") + "\"");
    }
    if (pod.spec.priority.value_or(0) > 0 && pod.spec.preemption_policy != "Never") {
      found.emplace_back(
          "spec.priorityClassName: kube-scheduler would evict other pods from the gang's nodes for "
          "it; use a class with preemptionPolicy: Never, or none");
    }
    // The maxima may come from different pods: each slot holds the most of each.
    shape_ = {std::max(shape_.cpus, shape.cpus), std::max(shape_.memory, shape.memory),
              std::max(shape_.disk, shape.disk)};
    has_resource_claims_ = has_resource_claims_ || !pod.spec.resource_claims.empty();
    for (const auto& [resource, count] : device_requests(pod.spec)) {
      devices_[resource] = std::max(devices_[resource], count);
    }
    for (std::string& sentence : found) {
      // The check speaks of the template of a kubegang Job, which the author of these pods has
      // never seen.
      if (sentence.starts_with(kTemplate)) sentence.erase(0, kTemplate.size());
      sentence = "pod " + pod.metadata.name + ": " + sentence;
      if (problems_.size() < kSentencesMax) problem(std::move(sentence));
    }
  }

  // Limits and not requests are the fallback, because requests must be 1m for each CPU here
  // (check_requests) and so say nothing of what a pod uses.
  // Its annotation says how many CPUs it uses, else its limits.
  static PodShape shape_of_pod(const kube::Pod& pod, Sentences& found) {
    PodShape shape = shape_of(pod.spec, PodCpus::kLimits, found);
    const std::string text = annotation(pod, kube::kAnnotationCpus);
    if (text.empty()) return shape;
    if (const auto cpus = number(text, kPodCpusMax)) {
      shape.cpus = *cpus;
    } else {
      found.push_back("annotation " + std::string{kube::kAnnotationCpus} + ": \"" + text +
                      "\" is not a number of CPUs from 1 to " + std::to_string(kPodCpusMax));
    }
    return shape;
  }

  // Gangs that take turns are all bound to the node at the same time, and kubelet admits them by
  // the sum of their requests. So a pod may request 1m for each CPU that it uses.
  static void check_requests(const kube::Pod& pod, std::int64_t cpus, Sentences& found) {
    // All containers count, init containers too. The node's accounting counts the larger of the two
    // groups, which is never more than this sum.
    const std::int64_t milli = cpu_requests_of(pod.spec).value();
    if (milli <= cpus) return;
    found.push_back(
        "spec.containers: the CPU requests are " + std::to_string(milli) +
        "m, but gangs that take turns on a node need room in it for all of them: request "
        "1m for each CPU, here " +
        std::to_string(cpus) + "m (an absent request is the limit), and say in the annotation " +
        std::string{kube::kAnnotationCpus} + " or in limits how many CPUs it uses");
  }

  // Returns the Job that stands for the gang. Its pods exist already: what it says about size and
  // shape is for the scheduler, and `adopted` says which pods fill the slots that the scheduler
  // grants.
  kube::Job job() {
    kube::Job job;
    job.metadata.ns = first_.metadata.ns;
    job.metadata.labels[std::string{gang_.by == GangName::By::kPodGroup ? kube::kLabelPodGroup
                                                                        : kube::kLabelGang}] =
        gang_.name;
    std::string uids;
    // The order is that of names, which the check of a Job demands of `adopted` (job_check.cc).
    for (const auto& pod : pods_) {
      const kube::ObjectMeta& metadata = pod->metadata;
      uids += metadata.uid + ",";
      job.spec.adopted.push_back({metadata.name, metadata.uid});
      // When the last of them is deleted, the Job goes too.
      job.metadata.owner_references.push_back(
          {.api_version = "v1", .kind = "Pod", .name = metadata.name, .uid = metadata.uid});
    }
    job.metadata.name = job_name(uids);
    kube::JobSpec& spec = job.spec;
    spec.partitions = split(annotation(first_, kube::kAnnotationPartition));
    if (const std::string qos = annotation(first_, kube::kAnnotationQos); !qos.empty()) {
      spec.schedule.qos = qos;
    }
    spec.pod_policy = kube::PodPolicy::kPerTask;
    spec.network = kube::JobNetwork::kNone;
    // The operator cannot make its pods again.
    spec.lifecycle.requeue = false;
    spec.resources.tasks = static_cast<std::int32_t>(pods_.size());
    set_shape(shape_, spec);
    set_nodes(spec);
    set_time_limit(spec);
    spec.pod_template = pod_template();
    return job;
  }

  // Returns the gang's name with a hash of all UIDs. So the same pods give the same name in each
  // leader: two leaders that both see the gang complete try to create one object, and the second
  // one gets AlreadyExists. A pod that was replaced gives another name, because it is another
  // gang. Label values may have capitals, dots and underscores, and begin with a digit; names of
  // Jobs may not. At most 44 + 2 + 6 characters, which are the 52 that a Job's name may have.
  std::string job_name(const std::string& uids) const {
    std::string prefix = gang_.name.substr(0, kNamePrefixMax);
    for (char& c : prefix) {
      if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
      if (c == '.' || c == '_') c = '-';
    }
    if (prefix[0] < 'a' || prefix[0] > 'z') prefix.insert(0, "j-");
    // Pods are named "<job>-<hash>-<index>"; without its index such a name is that of the Job.
    std::string name = pod_name(prefix, uids, 0, 0);
    name.erase(name.rfind('-'));
    return name;
  }

  // Returns the parts between commas, without empty ones: "a,,b," names two partitions.
  static std::vector<std::string> split(const std::string& text) {
    std::vector<std::string> parts;
    for (std::size_t begin = 0; begin <= text.size();) {
      const std::size_t end = std::min(text.find(',', begin), text.size());
      if (end > begin) parts.push_back(text.substr(begin, end - begin));
      begin = end + 1;
    }
    return parts;
  }

  // More nodes than pods are refused as a minimum, since a node without a pod would be no part of
  // the gang; as a maximum they do no harm.
  // "2" or "2-4", as sbatch's -N takes it.
  void set_nodes(kube::JobSpec& spec) {
    const std::string text = annotation(first_, kube::kAnnotationNodes);
    if (text.empty()) return;  // as few as hold its pods
    const auto pods = static_cast<std::int64_t>(pods_.size());
    const std::size_t dash = text.find('-');
    const auto min = number(text.substr(0, dash), pods);
    const auto max = dash == std::string::npos ? min : number(text.substr(dash + 1), kGangPodsMax);
    if (min && max && *max >= *min) {
      spec.resources.nodes = kube::JobNodes{.min = static_cast<std::int32_t>(*min),
                                            .max = static_cast<std::int32_t>(*max)};
      return;
    }
    problem_of_annotation(
        kube::kAnnotationNodes, text,
        "is not a number of nodes from 1 to " + std::to_string(pods) + " (examples: 2, 2-4)");
  }

  // The partition's default holds without the annotation, as for any kubegang Job.
  void set_time_limit(kube::JobSpec& spec) {
    const std::string text = annotation(first_, kube::kAnnotationTimeLimit);
    if (text.empty()) return;
    const auto limit = kube::parse_duration(text);
    if (limit.ok() && limit->count() > 0) {
      spec.schedule.time_limit = *limit;
      return;
    }
    problem_of_annotation(kube::kAnnotationTimeLimit, text,
                          "is not a time above 0s (example: 1h30m)");
  }

  // Returns the template that tells the scheduler where the pods may run: the fields that choose
  // nodes, the devices of a pod, and for how long a pod may take to end. No pod is made of it. It
  // names the first pod's containers because a template without any is refused.
  kube::RawJson pod_template() const {
    const Json from = kube::encode(first_)["spec"];
    Json spec{{"restartPolicy", "Never"}, {"containers", Json::array()}};
    for (const kube::Container& container : first_.spec.containers) {
      spec["containers"].push_back({{"name", container.name}, {"image", container.image}});
    }
    for (const auto& [resource, count] : devices_) {
      spec["containers"][0]["resources"]["limits"][resource] = std::to_string(count);
    }
    for (const char* field : {"nodeSelector", "tolerations", "runtimeClassName"}) {
      if (from.contains(field)) spec[field] = from[field];
    }
    // That there are some is all that counts, and all that is known about these pods.
    if (has_resource_claims_) {
      spec["resourceClaims"] = Json::array({{{"name", "devices"}}});
    }
    const auto grace = first_.spec.termination_grace_period_seconds;
    if (grace && *grace != kWrittenGraceSeconds) spec["terminationGracePeriodSeconds"] = *grace;
    return kube::RawJson{Json{{"metadata", Json::object()}, {"spec", spec}}};
  }

  Pods pods_;
  const GangName& gang_;
  const PodGroupFacts& group_;
  const kube::Pod& first_;
  PodShape shape_;
  DeviceResources devices_;  // the most of each that a pod asks for
  bool has_resource_claims_ = false;
  Sentences problems_;
};

}  // namespace

GangName gang_of(const kube::Labels& labels, bool heeds_groups) {
  // kubegang's label decides even if labels of the plugin are there, too: users who write it ask
  // for kubegang, whereas a workload controller may set the plugin's for another scheduler.
  using By = GangName::By;
  for (const auto& [key, by] :
       {std::pair{kube::kLabelGang, By::kJobName}, std::pair{kube::kLabelPodGroup, By::kPodGroup},
        std::pair{kube::kLabelPodGroupBefore, By::kPodGroup}}) {
    if (by == By::kPodGroup && !heeds_groups) break;
    const auto label = labels.find(std::string{key});
    if (label != labels.end() && !label->second.empty()) return {by, label->second};
  }
  return {};
}

PodGangVerdict translate_pod_gang(Pods pods, const GangName& gang, const PodGroupFacts& group) {
  return Translator{pods, gang, group}.run();
}

}  // namespace control
