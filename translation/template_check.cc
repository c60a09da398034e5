#include "translation/template_check.h"

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>

#include "api/wellknown.h"
#include "kube/api/json_text.h"
#include "slurm/launchers.h"
#include "translation/freeze_hazards.h"
#include "translation/kept_text.h"
#include "translation/pod_shape.h"
#include "translation/uncounted.h"

namespace control {
namespace {

constexpr std::string_view kSpec = "spec.template.spec.";

using Sentences = std::vector<std::string>;

// The check exists because scripts that come from Slurm mostly call srun, which there starts the
// job's tasks. Here one pod is one task, and the call would fail on each pod after the gang has
// waited for its nodes.
// A launcher inside a pod would find no other hosts to start on, and fail in ways that are hard to
// read; it is refused with a sentence instead.
void check_launchers(const kube::Container& container, const std::string& where,
                     TemplateFacts& facts) {
  const auto found = launcher_of(container);
  if (!found) return;
  const std::string launcher{*found};
  Sentences& problems = slurm::works_within_a_pod(*found) ? facts.launchers : facts.problems;
  problems.push_back(where + ": the command calls " + launcher +
                     ", but the job's pods are its tasks already and there is no " + launcher +
                     " to start more; run the program itself, it starts once per pod");
}

// A container that kubelet restarts by itself would come back without its gang: the others wait for
// a peer that has lost its state. freeze_hazards.h lists what a frozen pod cannot bear.
void check_container(const kube::Container& container, const std::string& where,
                     TemplateFacts& facts) {
  Sentences& problems = facts.problems;
  for (const FreezeHazard& hazard : freeze_hazards(container)) {
    problems.push_back(where + "." + std::string{hazard.field} + ": " + std::string{hazard.why} +
                       "; remove it");
  }
  // A hook of another kind starts nothing in the pod, but kubelet does not report a container as
  // running before the hook has returned, and until then the pod is not frozen.
  const bool has_post_start = container.lifecycle && container.lifecycle->post_start;
  if (has_post_start && container.lifecycle->post_start->exec.empty()) {
    problems.push_back(where +
                       ".lifecycle.postStart: the pod takes no turns while the hook is called; "
                       "remove it");
  }
  if (container.restart_policy) {
    problems.push_back(where + ".restartPolicy: \"" + *container.restart_policy +
                       "\": containers of a job are not restarted by kubelet; remove it");
  }
  check_launchers(container, where, facts);
}

// `names` has those of all lists so far: init containers and containers share one set of names.
void check_containers(const std::vector<kube::Container>& containers, std::string_view list,
                      std::set<std::string>& names, TemplateFacts& facts) {
  Sentences& problems = facts.problems;
  // Each container is checked although there are too many: the list has a bound of its own, that of
  // a whole object.
  if (containers.size() > kTemplateContainersMax) {
    problems.push_back(std::string{kSpec} + std::string{list} + ": more than " +
                       std::to_string(kTemplateContainersMax) +
                       " containers are not possible; remove some");
  }
  for (std::size_t i = 0; i < containers.size(); ++i) {
    const std::string where =
        std::string{kSpec} + std::string{list} + "[" + std::to_string(i) + "]";
    // The API server would refuse the pods for either mistake, which a user would only see once the
    // job has nodes and none of its pods can be made.
    if (containers[i].name.empty()) {
      problems.push_back(where + ".name: a container needs a name; give it one");
    } else if (!names.insert(containers[i].name).second) {
      problems.push_back(where + ".name: \"" + containers[i].name +
                         "\" is the name of another container too; rename one of them");
    }
    check_container(containers[i], where, facts);
  }
}

// Fields that do the work of those that no template may have.
struct Instead {
  std::string_view active_deadline;
  std::string_view node_name;
  std::string_view affinity;
  std::string_view scheduling_gates;
};

Instead instead_for(TemplateOf owner) {
  switch (owner) {
    case TemplateOf::kJob:
      return {"spec.schedule.timeLimit", "spec.placement.hostlist",
              "spec.placement or the template's nodeSelector", "spec.control.hold"};
    case TemplateOf::kBatchJob:
      return {"spec.activeDeadlineSeconds of the Job", "the template's nodeSelector",
              "the template's nodeSelector", "spec.suspend of the Job"};
    case TemplateOf::kGatedPods:
      return {kube::kAnnotationTimeLimit, "nodeSelector", "nodeSelector", "kubegang's gate alone"};
  }
  std::abort();
}

// Refuses what would break the promise that the scheduler places the gang and the freezer stops it
// as a whole. The fields are of four kinds:
// - a pod that ends or restarts by itself (restartPolicy, activeDeadlineSeconds)
// - a pod that another rule places or delays (nodeName, affinity, topology spread, schedulerName,
// schedulingGates)
// - a pod that the freezer cannot stop alone (hostPID)
// - lists without a bound, which the operator keeps for each waiting job.
void check_pod(const kube::PodSpec& spec, const nlohmann::json& raw, const Instead& instead,
               Sentences& problems) {
  const auto refuse = [&](bool present, std::string_view field, std::string_view sentence) {
    if (present)
      problems.push_back(std::string{kSpec} + std::string{field} + ": " + std::string{sentence});
  };
  refuse(spec.restart_policy && *spec.restart_policy != "Never", "restartPolicy",
         "\"" + spec.restart_policy.value_or("") +
             "\": must be Never, the job is restarted as a whole");
  const auto use = [](std::string sentence, std::string_view what) {
    return std::move(sentence) + "; use " + std::string{what};
  };
  refuse(spec.active_deadline_seconds.has_value(), "activeDeadlineSeconds",
         use("goes on while a pod is frozen", instead.active_deadline));
  refuse(spec.node_name.has_value(), "nodeName",
         use("\"" + spec.node_name.value_or("") + "\": the scheduler chooses the nodes",
             instead.node_name));
  refuse(!spec.affinity.empty(), "affinity", use("is not supported", instead.affinity));
  refuse(!spec.topology_spread_constraints.empty(), "topologySpreadConstraints",
         "are not supported: the scheduler places the whole gang; remove them");
  refuse(spec.host_pid, "hostPID",
         "is not supported: other processes would be frozen with the pod; remove it");
  refuse(
      spec.scheduler_name && *spec.scheduler_name != "kubegang", "schedulerName",
      "\"" + spec.scheduler_name.value_or("") + "\": must be left out, kubegang places the pods");
  refuse(spec.priority_class_name && spec.priority_class_name->starts_with("system-"),
         "priorityClassName",
         "\"" + spec.priority_class_name.value_or("") +
             "\": must not be a system class; use another or none");
  refuse(!spec.scheduling_gates.empty(), "schedulingGates",
         use("are not supported: a gang starts as a whole", instead.scheduling_gates));
  const std::string limit = "more than " + std::to_string(kTemplateListMax) + " entries, or " +
                            std::to_string(kTemplateListBytesMax) +
                            " bytes of text in them, are not possible; remove some";
  refuse(!is_small(spec.node_selector), "nodeSelector", limit);
  refuse(!is_small(spec.tolerations), "tolerations", limit);
  refuse(raw.contains("ephemeralContainers"), "ephemeralContainers",
         "are not part of a template; remove them");
  refuse(spec.termination_grace_period_seconds && *spec.termination_grace_period_seconds < 0,
         "terminationGracePeriodSeconds", "must not be negative");
}

// Refuses two volumes of one claim: kubelet up to 1.34 waits forever for a pod that mounts both.
void check_claims(const nlohmann::json& pod_spec, Sentences& problems) {
  if (!pod_spec.contains("volumes")) return;
  std::map<std::string, std::string> volume_of;
  for (const nlohmann::json& volume : pod_spec["volumes"]) {
    const std::string claim =
        kube::text_at(kube::object_at(volume, "persistentVolumeClaim"), "claimName");
    if (claim.empty()) continue;
    const std::string name = kube::text_at(volume, "name");
    const auto [first, added] = volume_of.emplace(claim, name);
    if (added) continue;
    problems.push_back(std::string{kSpec} + "volumes: \"" + head(first->second) + "\" and \"" +
                       head(name) + "\" are both claim \"" + head(claim) +
                       "\", which a pod may have once; mount one of them in both places");
    return;
  }
}

}  // namespace

// These lists are kept for each waiting job, so they have a bound (faults.md, section 5). Larger
// ones are refused (check_pod), so nothing that counts is lost.
// Returns true if such a list may be kept.
bool is_small(const kube::Labels& node_selector) {
  if (node_selector.size() > kTemplateListMax) return false;
  std::size_t bytes = 0;
  for (const auto& [name, value] : node_selector) bytes += name.size() + value.size();
  return bytes <= kTemplateListBytesMax;
}

// Judges the text in them, too: a single value may be as long as the API server takes a whole
// object.
bool is_small(const std::vector<kube::Toleration>& tolerations) {
  if (tolerations.size() > kTemplateListMax) return false;
  std::size_t bytes = 0;
  for (const kube::Toleration& one : tolerations) {
    bytes += one.key.size() + one.op.size() + one.value.size() + one.effect.size();
  }
  return bytes <= kTemplateListBytesMax;
}

// Command and arguments are one list of words to the container, whichever of the two has them.
std::optional<std::string_view> launcher_of(const kube::Container& container) {
  std::vector<std::string> words = container.command;
  words.insert(words.end(), container.args.begin(), container.args.end());
  const auto call = slurm::launcher_in_command(words);
  return call ? std::optional{call->launcher} : std::nullopt;
}

// Returns what is wrong with a template by itself, and the facts of it that later checks need. A
// template that does not decode has no facts.
TemplateFacts check_template(const kube::RawJson& pod_template, TemplateOf owner) {
  TemplateFacts facts;
  // For comparing templates within one process only (PodTrials), so any hash will do.
  facts.text_hash = std::hash<std::string>{}(pod_template.text());
  const auto decoded = kube::decode_template(pod_template);
  if (!decoded.ok()) {
    facts.problems.push_back(decoded.error().message + "; correct the template");
    return facts;
  }
  const kube::PodSpec& spec = decoded->spec;
  // Fields that the decoded type does not have, such as ephemeralContainers, are seen in the JSON
  // alone.
  const nlohmann::json raw = pod_template.json();
  if (spec.containers.empty()) {
    facts.problems.push_back(std::string{kSpec} +
                             "containers: there is none; name at least one container");
  }
  std::set<std::string> names;
  check_containers(spec.init_containers, "initContainers", names, facts);
  check_containers(spec.containers, "containers", names, facts);
  const nlohmann::json raw_spec = kube::object_at(raw, "spec");
  check_pod(spec, raw_spec, instead_for(owner), facts.problems);
  // Pods of others wait for it in any cluster, and what is kept of them has no volumes.
  if (owner == TemplateOf::kJob) check_claims(raw_spec, facts.problems);
  for (std::string& problem : uncounted_of(spec, kSpec)) {
    facts.problems.push_back(std::move(problem));
  }
  // Empty if it was refused above as too large.
  if (is_small(spec.node_selector)) facts.node_selector = spec.node_selector;
  if (is_small(spec.tolerations)) facts.tolerations = spec.tolerations;
  facts.devices = device_requests(spec);
  facts.has_resource_claims = !spec.resource_claims.empty();
  facts.runtime_class = head(spec.runtime_class_name);
  facts.may_evict = spec.priority_class_name && spec.preemption_policy != "Never";
  facts.grace_seconds = spec.termination_grace_period_seconds;
  facts.init_containers_count = spec.init_containers.size();
  for (const kube::Container& container : spec.containers) {
    const auto limit = container.resources.limits.find("memory");
    facts.memory.push_back({container.name, limit == container.resources.limits.end()
                                                ? std::nullopt
                                                : std::optional{limit->second.bytes()}});
  }
  for (const kube::Container& container : spec.init_containers) {
    const auto limit = container.resources.limits.find("memory");
    if (limit == container.resources.limits.end()) continue;
    facts.init_memory = std::max(facts.init_memory, limit->second.bytes());
  }
  // For sentences about amounts that the job does not take from the template.
  std::vector<std::string> ignored;
  facts.disk = kube::Bytes{shape_of(spec, PodCpus::kRequestsFirst, ignored).disk};
  return facts;
}

}  // namespace control
