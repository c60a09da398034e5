// Batch scripts under a real kubelet: the launcher comes by an init container, and the API server
// enforces a Pod Security profile in the namespace.
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <string>

#include "e2e/kubernetes/tests/harness.h"

namespace kubernetes {
namespace {

constexpr int kUser = 1000;

class BatchScripts : public Cluster {
 protected:
  void TearDown() override {
    Cluster::TearDown();
    (void)call(kube::Method::kDelete, "/api/v1/persistentvolumes/" + name_of("home"));
    (void)call(kube::Method::kDelete, "/apis/kubegang.io/v1alpha1/accounts/" + name_of("account"));
  }

  void enforce(const std::string& profile) {
    patch("/api/v1/namespaces/" + ns_,
          {{"metadata", {{"labels", {{"pod-security.kubernetes.io/enforce", profile}}}}}});
  }

  // A claim "home" whose files this process sees in stamps_in_. The profiles allow claims, and no
  // folders of a node.
  void make_home() {
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

  // Returns a template as `restricted` demands it, with the claim at /home/ann.
  static json restricted_template() {
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

  static json plain_template() {
    return {{"spec",
             {{"automountServiceAccountToken", false},
              {"containers", json::array({{{"name", "main"}, {"image", kBusyboxImage}}})}}}};
  }

  static json with_image(json pod_template, const std::string& image) {
    pod_template["spec"]["containers"][0]["image"] = image;
    return pod_template;
  }

  void submit_script(const std::string& name, const std::string& script, const json& pod_template,
                     const json& patch = json::object()) {
    json object{{"apiVersion", "kubegang.io/v1alpha1"},
                {"kind", "Job"},
                {"metadata", {{"name", name}, {"namespace", ns_}}},
                {"spec",
                 {{"partitions", {own_partition()}},
                  {"resources", {{"nodes", {{"min", 1}}}}},
                  {"batch", {{"script", (script.starts_with("#!") ? "" : "#!/bin/sh\n") + script}}},
                  {"template", pod_template}}}};
    object.merge_patch(patch);
    ASSERT_NO_FATAL_FAILURE(apply(object));
  }

  std::string log_of(const std::string& name) {
    return run_shell(kubectl("logs -c main -n " + ns_ +
                             " --tail=-1 -l kubegang.io/task=0,kubegang.io/job=" + name))
        .text;
  }

  std::string file_in_home(const std::string& name) const {
    std::ifstream in{stamps_in_ + "/" + name};
    std::stringstream text;
    text << in.rdbuf();
    return text.str();
  }
};

// Goal: the claim's files, the log and the exit code are as in Slurm, although the image does not
// know the user. Two nodes: the second pod waits, and ends with the script.
TEST_F(BatchScripts, RunUnderTheProfileRestricted) {
  ASSERT_NO_FATAL_FAILURE(make_home());
  enforce("restricted");
  ASSERT_NO_FATAL_FAILURE(submit_script(
      "train", "pwd; id -u; srun -N1 -n1 echo a step; echo last; exit 3\n", restricted_template(),
      {{"spec",
        {{"resources", {{"nodes", {{"min", 2}}}}},
         {"batch", {{"workingDirectory", "/home/ann"}}}}}}));
  ASSERT_NO_FATAL_FAILURE(wait_state("train", "Failed"));
  EXPECT_EQ(job("train").status.exit_code, 3);
  const std::string wanted = "/home/ann\n1000\na step\nlast\n";
  EXPECT_EQ(log_of("train"), wanted);
  EXPECT_EQ(file_in_home("slurm-" + std::to_string(*job("train").status.job_id) + ".out"), wanted);
}

// The default template of `submit`: root in the image, no folder that can be written but the
// image's own, 64 MiB of shared memory unless the launcher's part makes it larger.
TEST_F(BatchScripts, RunUnderTheProfileBaseline) {
  enforce("baseline");
  ASSERT_NO_FATAL_FAILURE(submit_script(
      "train",
      "id -u; sleep 1; cat slurm-$SLURM_JOB_ID.out >copy; cat copy; echo $HOME $USER\n"
      "df -k /dev/shm | awk 'END {print $2}'\n",
      plain_template(), {{"spec", {{"resources", {{"memoryPerNode", "256Mi"}}}}}}));
  ASSERT_NO_FATAL_FAILURE(wait_state("train", "Completed"));
  // The image has neither /etc/passwd nor /tmp.
  EXPECT_EQ(log_of("train"), "0\n0\n/dev/shm " + ns_ + "\n262144\n");
}

TEST_F(BatchScripts, ARequeuedScriptBeginsAgainAndAppends) {
  ASSERT_NO_FATAL_FAILURE(make_home());
  enforce("restricted");
  ASSERT_NO_FATAL_FAILURE(submit_script(
      "train", "echo run ${SLURM_RESTART_COUNT:-0}\n[ -n \"$SLURM_RESTART_COUNT\" ] || sleep 600\n",
      restricted_template(),
      {{"spec", {{"batch", {{"workingDirectory", "/home/ann"}, {"output", "out"}}}}}}));
  ASSERT_NO_FATAL_FAILURE(wait_until("it has begun", [&] { return file_in_home("out") != ""; }));
  patch(job_path("train"), {{"spec", {{"control", {{"requeueRequest", 1}}}}}});
  ASSERT_NO_FATAL_FAILURE(wait_state("train", "Completed"));
  EXPECT_EQ(file_in_home("out"), "run 0\nrun 1\n");
}

// Counted by the launcher, from the init container on, and sent to the script alone.
TEST_F(BatchScripts, AScriptGetsItsSignalBeforeTheLimit) {
  ASSERT_NO_FATAL_FAILURE(make_home());
  enforce("restricted");
  ASSERT_NO_FATAL_FAILURE(submit_script(
      "late", "trap 'echo got USR1; exit 0' USR1\nfor i in $(seq 600); do sleep 0.1; done\n",
      restricted_template(),
      {{"spec",
        {{"schedule", {{"timeLimit", "60s"}}},
         {"batch",
          {{"workingDirectory", "/home/ann"},
           {"output", "out"},
           {"signal", {{"name", "SIGUSR1"}, {"before", "57s"}, {"target", "Script"}}}}}}}}));
  ASSERT_NO_FATAL_FAILURE(wait_state("late", "Completed"));
  EXPECT_EQ(file_in_home("out"), "got USR1\n");
}

// The script hears SIGTERM, has the kill wait (2 s) to say something, and its word is in the file.
TEST_F(BatchScripts, AScriptIsEndedAtItsLimit) {
  ASSERT_NO_FATAL_FAILURE(make_home());
  enforce("restricted");
  ASSERT_NO_FATAL_FAILURE(submit_script(
      "late", "trap 'echo got TERM; exit 0' TERM\nfor i in $(seq 600); do sleep 0.1; done\n",
      restricted_template(),
      {{"spec",
        {{"schedule", {{"timeLimit", "3s"}}},
         {"batch", {{"workingDirectory", "/home/ann"}, {"output", "out"}}}}}}));
  ASSERT_NO_FATAL_FAILURE(wait_state("late", "Timeout"));
  ASSERT_NO_FATAL_FAILURE(wait_until("its pods are gone", [&] { return pods("late").empty(); }));
  EXPECT_NE(file_in_home("out").find("got TERM\n"), std::string::npos) << file_in_home("out");
}

// A name that the user has given and that cannot be opened is a failure with Slurm's number.
TEST_F(BatchScripts, AFileThatCannotBeOpenedIsAFailure) {
  enforce("baseline");
  ASSERT_NO_FATAL_FAILURE(submit_script("train", "echo never\n", plain_template(),
                                        {{"spec", {{"batch", {{"output", "/nowhere/out"}}}}}}));
  ASSERT_NO_FATAL_FAILURE(wait_state("train", "Failed"));
  EXPECT_EQ(job("train").status.exit_code, 181);
  EXPECT_NE(log_of("train").find("/nowhere/out"), std::string::npos) << log_of("train");
}

// Goal: srun is found in every kind of shell, also where the profile sets PATH again, and BASH_ENV,
// which is how the functions of Lmod stay; on a read-only root.
TEST_F(BatchScripts, FindSrunInLoginShells) {
  ASSERT_NO_FATAL_FAILURE(make_home());
  enforce("restricted");
  json pod_template = with_image(restricted_template(), kBashImage);
  pod_template["spec"]["containers"][0]["securityContext"]["readOnlyRootFilesystem"] = true;
  const std::string each =
      "srun echo $0 found; sh -c 'srun echo sh found'; bash -lc 'module load x; srun echo -lc "
      "found'\n";
  const std::string wanted = " found\nsh found\nmodule load x\n-lc found\n";
  for (const std::string begin :
       {"#!/bin/bash -l\nmodule purge\n", "#!/bin/sh -l\n", "#!/bin/bash\n",
        "#!/bin/sh\n. /etc/profile\nset -eu\n", "#!/bin/bash\nsource /etc/profile\n"}) {
    const std::string name = "shell-" + std::to_string(begin.size());
    ASSERT_NO_FATAL_FAILURE(
        submit_script(name, begin + each, pod_template,
                      {{"spec", {{"batch", {{"workingDirectory", "/home/ann"}}}}}}));
    ASSERT_NO_FATAL_FAILURE(wait_state(name, "Completed"));
    EXPECT_NE(log_of(name).find(wanted), std::string::npos) << begin << log_of(name);
  }
}

// Nodes with kubelet 1.35 and containerd 2.1, or newer, where the chart is installed with
// `launcher.imageVolume: auto` (install-chart).
class ImageVolumes : public BatchScripts {
 protected:
  void SetUp() override {
    const char* const containerd = std::getenv("KUBEGANG_CONTAINERD");
    if (containerd == nullptr || std::string{containerd} != "2") {
      GTEST_SKIP() << "the nodes mount no images: make e2e-image-volume";
    }
    BatchScripts::SetUp();
  }
  // The image is mounted, and nothing is copied.
  void expect_mounted(const std::string& name) {
    for (const json& pod : pods(name)) {
      const json& spec = pod["spec"];
      EXPECT_FALSE(spec.contains("initContainers")) << spec.dump();
      EXPECT_TRUE(std::ranges::any_of(spec["volumes"], [](const json& volume) {
        return volume["name"] == "kubegang-launcher" && volume.contains("image");
      })) << spec.dump();
    }
  }
};

TEST_F(ImageVolumes, BringTheLauncherOfAScript) {
  ASSERT_NO_FATAL_FAILURE(make_home());
  enforce("restricted");
  json pod_template = restricted_template();
  pod_template["spec"]["containers"][0]["securityContext"]["readOnlyRootFilesystem"] = true;
  ASSERT_NO_FATAL_FAILURE(submit_script(
      "train", "id -u; srun echo a step; scontrol show hostnames; touch /kubegang/x || exit 3\n",
      pod_template));
  ASSERT_NO_FATAL_FAILURE(wait_state("train", "Failed"));
  EXPECT_EQ(job("train").status.exit_code, 3);
  EXPECT_TRUE(log_of("train").starts_with("1000\na step\n" + node(1) + "\n")) << log_of("train");
  expect_mounted("train");
}

// Three pods, one after the other and again: they meet, and the second start finds the image.
TEST_F(ImageVolumes, BringTheLaunchersOfThreePods) {
  ASSERT_NO_FATAL_FAILURE(make_home());
  enforce("restricted");
  for (const std::string name : {"first", "second"}) {
    ASSERT_NO_FATAL_FAILURE(submit_script(name, "srun -l echo up | sort\n", restricted_template(),
                                          {{"spec", {{"resources", {{"nodes", {{"min", 3}}}}}}}}));
    ASSERT_NO_FATAL_FAILURE(wait_state(name, "Completed"));
    EXPECT_EQ(log_of(name), "0: up\n1: up\n2: up\n");
    expect_mounted(name);
  }
}

// CoreDNS knows the nodes' names, too, as a site's name server does (coredns-up). Names that its
// pods ask for before they are there are denied, and that is kept for seconds.
class ScriptNames : public BatchScripts {};

// Goal: programs that were written for Slurm take the names of nodes for their addresses: MPI, and
// scripts with `scontrol show hostnames | head -n1`. In the job they are those of its pods, as any
// user, wherever one asks, and steps go over all of them.
TEST_F(ScriptNames, OfNodesAreThePodsOnThem) {
  ASSERT_NO_FATAL_FAILURE(make_home());
  enforce("restricted");
  ASSERT_NO_FATAL_FAILURE(submit_script(
      "names",
      "srun sh -c 'for n in $(scontrol show hostnames); do\n"
      "  echo $SLURMD_NODENAME $(hostname) $n $(getent ahostsv4 $n | head -n1 | cut -d\" \" -f1)\n"
      "done' | sort\n",
      with_image(restricted_template(), kGlibcImage),
      {{"spec", {{"resources", {{"nodes", {{"min", 3}}}}}}}}));
  ASSERT_NO_FATAL_FAILURE(wait_until("its pods have addresses", [&] {
    return std::ranges::count_if(
               pods("names"), [](const json& pod) { return pod["status"].contains("podIP"); }) == 3;
  }));
  std::map<std::string, std::string> addresses;
  for (const json& pod : pods("names")) {
    addresses[pod["spec"]["nodeName"].get<std::string>()] =
        pod["status"]["podIP"].get<std::string>();
  }
  ASSERT_NO_FATAL_FAILURE(wait_state("names", "Completed"));
  std::string wanted;
  for (const auto& [from, own] : addresses) {
    const Output of_site = run_shell("busybox nslookup " + from + " 172.30.0.1");
    EXPECT_NE(of_site.text.find("Address: 172.30.0."), std::string::npos) << of_site.text;
    for (const auto& [name, address] : addresses) {
      wanted += from + " " + from + " " + name + " " + address + "\n";
    }
  }
  EXPECT_EQ(log_of("names"), wanted);
}

// Goal: launchers meet as soon as all are there. A pod that begins before the first one asks for
// names that no program of the script needs, and for each again when CoreDNS has forgotten the
// denial.
TEST_F(ScriptNames, NoLauncherIsDeniedTheNameOfTheFirstPod) {
  enforce("baseline");
  for (const std::string name : {"meet-a", "meet-b", "meet-c"}) {
    ASSERT_NO_FATAL_FAILURE(submit_script(name, "srun true\n", plain_template(),
                                          {{"spec", {{"resources", {{"nodes", {{"min", 3}}}}}}}}));
    ASSERT_NO_FATAL_FAILURE(wait_state(name, "Completed"));
  }
  const std::string file = state_directory() + "/logs/coredns.log";
  std::ifstream log{file};
  ASSERT_TRUE(log) << file;
  int early = 0;
  for (std::string line; std::getline(log, line);) {
    if (line.find("." + ns_ + ".svc.") == std::string::npos) continue;
    EXPECT_EQ(line.find("\"A IN"), std::string::npos) << line;
    EXPECT_EQ(line.find("\"AAAA IN"), std::string::npos) << line;
    ++early;
  }
  RecordProperty("denied", early);
}

// Goal: torchrun, Ray and the like, whose processes all connect to the first node by its name.
// A server with an input that has ended closes its side at once, and busybox's client ends then,
// even if it has sent nothing yet: so the servers' input stays open.
TEST_F(ScriptNames, AllTasksReachTheFirstNode) {
  enforce("baseline");
  ASSERT_NO_FATAL_FAILURE(submit_script(
      "train",
      "export MASTER_ADDR=$(scontrol show hostnames | head -n1)\n"
      "srun sh -c 'if [ $SLURM_PROCID = 0 ]; then\n"
      "  mkfifo $TMPDIR/open; exec <>$TMPDIR/open; nc -l -p 29501; nc -l -p 29502; exit\n"
      "fi\n"
      "address=$(getent ahostsv4 $MASTER_ADDR | head -n1 | cut -d\" \" -f1)\n"
      "until echo rank $SLURM_PROCID of $SLURM_NTASKS | nc $address 2950$SLURM_PROCID; do\n"
      "  sleep 0.1\n"
      "done 2>/dev/null'\n",
      with_image(plain_template(), kGlibcImage),
      {{"spec", {{"resources", {{"nodes", {{"min", 3}}}}}}}}));
  ASSERT_NO_FATAL_FAILURE(wait_state("train", "Completed"));
  EXPECT_EQ(log_of("train"), "rank 1 of 3\nrank 2 of 3\n");
}

// Goal: a user with nothing but a script. The administrator gives the partition an image and a
// home, and the namespace an identity; the user's pods are then that user's, whatever they say.
class PodDefaults : public BatchScripts {
 protected:
  void give_home() {
    ASSERT_NO_FATAL_FAILURE(make_home());
    enforce("restricted");
    patch(
        "/apis/kubegang.io/v1alpha1/partitions/" + own_partition(),
        {{"spec",
          {{"podDefaults",
            {{"image", kBusyboxImage},
             {"volumes", {{{"name", "home"}, {"persistentVolumeClaim", {{"claimName", "home"}}}}}},
             {"volumeMounts", {{{"name", "home"}, {"mountPath", "/home/ann"}}}},
             {"env", {{{"name", "SITE"}, {"value", "here"}}}},
             {"securityContext", {{"seccompProfile", {{"type", "RuntimeDefault"}}}}}}}}}});
  }
  void give_identity() {
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
  // Returns submit's output; the script runs in the home.
  Output submit_with(const std::string& options, const std::string& script) {
    const std::string file = stamps_in_ + "/job.sh";
    std::ofstream{file} << "#!/bin/sh\n" << script;
    return run_shell(kubectl_gang("submit --namespace " + ns_ + " -p " + own_partition() +
                                  " -D /home/ann " + options + " " + file));
  }
};

// Scripts of examples/ as they are, but for bash, which no image here has. Programs stand in for
// torchrun, Ray and the driver: each meets the others at the address that it is given.
class ScriptExamples : public PodDefaults {
 protected:
  void SetUp() override {
    PodDefaults::SetUp();
    ASSERT_NO_FATAL_FAILURE(give_home());
    ASSERT_NO_FATAL_FAILURE(give_identity());
    // nc resolves no names.
    give_program("address", "getent ahostsv4 $1 | head -n1 | cut -d' ' -f1\n");
  }
  void give_program(const std::string& name, const std::string& text) const {
    const std::string file = stamps_in_ + "/" + name;
    std::ofstream{file} << "#!/bin/sh\n" << text;
    ASSERT_EQ(::chmod(file.c_str(), 0755), 0);
  }
  // Returns what it has written to `out`.
  std::string run_example(const std::string& name) {
    std::ifstream in{KUBEGANG_SOURCE_DIR "/examples/" + name};
    std::string text{std::istreambuf_iterator<char>{in}, {}};
    const std::string line = "#!/bin/bash\n";
    EXPECT_TRUE(text.starts_with(line)) << name;
    text.erase(0, std::min(text.size(), line.size()));
    const Output submitted = submit_with(
        std::string{"--wait --image="} + kGlibcImage + " --env=PATH=/home/ann:/bin -o out", text);
    EXPECT_EQ(submitted.exit_code, 0) << submitted.text << file_in_home("out");
    return file_in_home("out");
  }
};

TEST_F(ScriptExamples, Torchrun) {
  give_program("torchrun",
               "[ \"$1 $2 $3 $4 $6\" = \"--nnodes=3 --nproc-per-node=1 --rdzv-id=$SLURM_JOB_ID "
               "--rdzv-backend=c10d train.py\" ] || exit 1\n"
               "if [ $SLURM_PROCID = 0 ]; then nc -l -p 2951; nc -l -p 2952; exit; fi\n"
               "meet=${5#--rdzv-endpoint=}\n"
               "until echo rank $SLURM_PROCID of $SLURM_NTASKS |\n"
               "  nc $(address ${meet%:29500}) 295$SLURM_PROCID; do sleep 0.1; done 2>/dev/null\n");
  EXPECT_EQ(run_example("torchrun.sh"), "rank 1 of 3\nrank 2 of 3\n");
}

TEST_F(ScriptExamples, Ray) {
  std::ofstream{stamps_in_ + "/cluster"};
  ASSERT_EQ(::chmod((stamps_in_ + "/cluster").c_str(), 0666), 0);
  give_program("ray",
               "cd /home/ann\n"
               "case $2 in\n"
               "--head) while nc -l -p 6379 >>cluster; do :; done ;;\n"
               "--address=*:6379)\n"
               "  head=${2#--address=}\n"
               "  until grep -q $(hostname) cluster; do\n"
               "    echo $(hostname) $3 | nc $(address ${head%:6379}) 6379; sleep 0.2\n"
               "  done\n"
               "  sleep 600 ;;\n"
               "esac 2>/dev/null\n");
  give_program("python3",
               "cd /home/ann; until [ $(sort -u cluster | wc -l) = 2 ]; do sleep 0.1; done\n"
               "sort -u cluster\n");
  const std::string out = run_example("ray.sh");
  const std::string wanted = node(2) + " --num-cpus=2\n" + node(3) + " --num-cpus=2\n";
  EXPECT_NE(out.find(wanted), std::string::npos) << out;
}

TEST_F(PodDefaults, AScriptAloneIsEnough) {
  ASSERT_NO_FATAL_FAILURE(give_home());
  ASSERT_NO_FATAL_FAILURE(give_identity());
  const Output submitted =
      submit_with("--wait -o out", "id -u; id -g; echo $USER $HOME $SITE; pwd; echo; exit 4\n");
  EXPECT_EQ(submitted.exit_code, 4) << submitted.text;
  const std::string wanted = "1000\n100\nann /home/ann here\n/home/ann\n\n";
  EXPECT_EQ(file_in_home("out"), wanted);
  const std::string id = std::to_string(
      get("/apis/kubegang.io/v1alpha1/namespaces/" + ns_ + "/jobs")["items"][0]["status"]["jobID"]
          .get<int>());
  EXPECT_EQ(run_shell(kubectl_gang("logs -n " + ns_ + " " + id)).text, wanted);
  const Output told = run_shell(kubectl_gang("explain -n " + ns_ + " " + id));
  EXPECT_NE(told.text.find("image registry.e2e/busybox:1; volumes home; variables SITE"),
            std::string::npos)
      << told.text;
}

// Reported while the job waits, which takes no room from others.
TEST_F(PodDefaults, ATemplateCannotChooseAnotherUser) {
  ASSERT_NO_FATAL_FAILURE(give_home());
  ASSERT_NO_FATAL_FAILURE(give_identity());
  json root = plain_template();
  root["spec"]["securityContext"] = {{"runAsUser", 0}};
  ASSERT_NO_FATAL_FAILURE(submit_script("root", "id -u\n", root));
  wait_until("it is refused", [&] {
    return status_text("root").find("runAsUser: 1000 is the namespace's identity") !=
           std::string::npos;
  });
  EXPECT_TRUE(pods("root").empty());
}

TEST_F(PodDefaults, WithoutAnIdentityThereIsNoHome) {
  ASSERT_NO_FATAL_FAILURE(give_home());
  ASSERT_NO_FATAL_FAILURE(submit_script("nobody", "id -u\n", plain_template()));
  wait_until("it is refused", [&] {
    return status_text("nobody").find("ask your administrator for an identity") !=
           std::string::npos;
  });
  EXPECT_TRUE(pods("nobody").empty());
}

// A claim of one's own, and a log that is followed while the job runs.
TEST_F(PodDefaults, SubmitMountsAClaimAndLogsFollowsTheJob) {
  ASSERT_NO_FATAL_FAILURE(make_home());
  const Output submitted = submit_with(
      "--parsable --image registry.e2e/busybox:1 --env A='$B' "
      "--volume home:/home/ann:ro",
      "#SBATCH -o /dev/null\necho $A; sleep 2; touch x || echo no\n");
  ASSERT_EQ(submitted.exit_code, 0) << submitted.text;
  const std::string id = submitted.text.substr(0, submitted.text.find('\n'));
  const Output log = run_shell(kubectl_gang("logs -f -n " + ns_ + " " + id));
  EXPECT_EQ(log.text.find("$B\n"), 0U) << log.text;
  EXPECT_NE(log.text.find("no\n"), std::string::npos) << log.text;
}

}  // namespace
}  // namespace kubernetes
