#include "e2e/kubernetes/tests/batch_scripts.h"

#include <sys/stat.h>

#include <fstream>
#include <sstream>

namespace kubernetes {

void BatchScripts::TearDown() {
  Cluster::TearDown();
  (void)call(kube::Method::kDelete, "/api/v1/persistentvolumes/" + name_of("home"));
  (void)call(kube::Method::kDelete, "/apis/kubegang.io/v1alpha1/accounts/" + name_of("account"));
}

void BatchScripts::enforce(const std::string& profile) {
  patch("/api/v1/namespaces/" + ns_,
        {{"metadata", {{"labels", {{"pod-security.kubernetes.io/enforce", profile}}}}}});
}

void BatchScripts::make_home() {
  ASSERT_EQ(::chmod(stamps_in_.c_str(), 0777), 0);
  const json size{{"storage", "1Gi"}};
  ASSERT_NO_FATAL_FAILURE(apply({{"apiVersion", "v1"},
                                 {"kind", "PersistentVolume"},
                                 {"metadata", {{"name", name_of("home")}}},
                                 {"spec",
                                  {{"capacity", size},
                                   {"accessModes", {"ReadWriteMany"}},
                                   {"storageClassName", ""},
                                   {"claimRef", {{"namespace", ns_}, {"name", "home"}}},
                                   {"hostPath", {{"path", stamps_in_}}}}}}));
  ASSERT_NO_FATAL_FAILURE(apply({{"apiVersion", "v1"},
                                 {"kind", "PersistentVolumeClaim"},
                                 {"metadata", {{"name", "home"}, {"namespace", ns_}}},
                                 {"spec",
                                  {{"storageClassName", ""},
                                   {"volumeName", name_of("home")},
                                   {"accessModes", {"ReadWriteMany"}},
                                   {"resources", {{"requests", size}}}}}}));
  ASSERT_NO_FATAL_FAILURE(wait_until("the claim is bound", [&] {
    const json claim = get("/api/v1/namespaces/" + ns_ + "/persistentvolumeclaims/home");
    return claim["status"].value("phase", "") == "Bound";
  }));
}

json BatchScripts::restricted_template() {
  const json container{{"name", "main"},
                       {"image", kBusyboxImage},
                       {"volumeMounts", {{{"name", "home"}, {"mountPath", "/home/ann"}}}},
                       {"securityContext",
                        {{"allowPrivilegeEscalation", false},
                         {"capabilities", {{"drop", {"ALL"}}}},
                         {"runAsNonRoot", true},
                         {"runAsUser", kUser},
                         {"seccompProfile", {{"type", "RuntimeDefault"}}}}}};
  return {
      {"spec",
       {{"automountServiceAccountToken", false},
        {"containers", json::array({container})},
        {"volumes", {{{"name", "home"}, {"persistentVolumeClaim", {{"claimName", "home"}}}}}}}}};
}

json BatchScripts::plain_template() {
  return {{"spec",
           {{"automountServiceAccountToken", false},
            {"containers", json::array({{{"name", "main"}, {"image", kBusyboxImage}}})}}}};
}

json BatchScripts::with_image(json pod_template, const std::string& image) {
  pod_template["spec"]["containers"][0]["image"] = image;
  return pod_template;
}

json BatchScripts::script_job(const std::string& name, const std::string& script,
                              const json& pod_template, const json& patch) const {
  json object{{"apiVersion", "kubegang.io/v1alpha1"},
              {"kind", "Job"},
              {"metadata", {{"name", name}, {"namespace", ns_}}},
              {"spec",
               {{"partitions", {own_partition()}},
                {"resources", {{"nodes", {{"min", 1}}}}},
                {"batch", {{"script", (script.starts_with("#!") ? "" : "#!/bin/sh\n") + script}}},
                {"template", pod_template}}}};
  object.merge_patch(patch);
  return object;
}

void BatchScripts::submit_script(const std::string& name, const std::string& script,
                                 const json& pod_template, const json& patch) {
  ASSERT_NO_FATAL_FAILURE(apply(script_job(name, script, pod_template, patch)));
}

std::string BatchScripts::log_of(const std::string& name) {
  return run_shell(kubectl("logs -c main -n " + ns_ +
                           " --tail=-1 -l kubegang.io/task=0,kubegang.io/job=" + name))
      .text;
}

std::string BatchScripts::file_in_home(const std::string& name) const {
  std::ifstream in{stamps_in_ + "/" + name};
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

void PodDefaults::give_home() {
  ASSERT_NO_FATAL_FAILURE(make_home());
  enforce("restricted");
  patch("/apis/kubegang.io/v1alpha1/partitions/" + own_partition(),
        {{"spec",
          {{"podDefaults",
            {{"image", kBusyboxImage},
             {"volumes", {{{"name", "home"}, {"persistentVolumeClaim", {{"claimName", "home"}}}}}},
             {"volumeMounts", {{{"name", "home"}, {"mountPath", "/home/ann"}}}},
             {"env", {{{"name", "SITE"}, {"value", "here"}}}},
             {"securityContext", {{"seccompProfile", {{"type", "RuntimeDefault"}}}}}}}}}});
}

void PodDefaults::give_identity() {
  const json identity{{"user", "ann"}, {"uid", kUser}, {"gid", 100}, {"home", "/home/ann"}};
  ASSERT_NO_FATAL_FAILURE(
      apply({{"apiVersion", "kubegang.io/v1alpha1"},
             {"kind", "Account"},
             {"metadata", {{"name", name_of("account")}}},
             {"spec", {{"namespaces", {{{"name", ns_}, {"identity", identity}}}}}}}));
  ASSERT_NO_FATAL_FAILURE(wait_until("the account is accepted", [&] {
    return get("/apis/kubegang.io/v1alpha1/accounts/" + name_of("account"))
        .value("status", json::object())
        .contains("accepted");
  }));
}

Output PodDefaults::submit_with(const std::string& options, const std::string& script) {
  const std::string file = stamps_in_ + "/job.sh";
  std::ofstream{file} << "#!/bin/sh\n" << script;
  return run_shell(kubectl_gang("submit --namespace " + ns_ + " -p " + own_partition() +
                                " -D /home/ann " + options + " " + file));
}

}  // namespace kubernetes
