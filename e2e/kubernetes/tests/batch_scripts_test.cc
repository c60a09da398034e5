// Batch scripts under a real kubelet: the launcher comes by an init container, and the API server
// enforces a Pod Security profile in the namespace.
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "e2e/kubernetes/tests/batch_scripts.h"

namespace kubernetes {
namespace {

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
      "train", "echo run ${SLURM_RESTART_COUNT:-0}; until [ -e go ]; do sleep 0.1; done\n",
      restricted_template(),
      {{"spec", {{"batch", {{"workingDirectory", "/home/ann"}, {"output", "out"}}}}}}));
  ASSERT_NO_FATAL_FAILURE(wait_until("it has begun", [&] { return file_in_home("out") != ""; }));
  patch(job_path("train"), {{"spec", {{"control", {{"requeueRequest", 1}}}}}});
  ASSERT_NO_FATAL_FAILURE(wait_until("it runs again, and the pods of before are gone", [&] {
    return file_in_home("out") == "run 0\nrun 1\n" && pods("train").size() == 1;
  }));
  ASSERT_NO_FATAL_FAILURE(wait_until("its log is that of this start", [&] {
    return run_shell(kubectl_gang("logs -n " + ns_ + " train")).text == "run 1\n";
  }));
  // Pods, and what they have said, go with their start.
  const Output before = run_shell(kubectl_gang("logs --previous -n " + ns_ + " train 2>&1"));
  EXPECT_EQ(before.exit_code, 1);
  EXPECT_EQ(before.text,
            "kubectl-gang logs: job train (Running) has no pods of an earlier start: they go when "
            "it starts again\n");
  std::ofstream{stamps_in_ + "/go"};
  ASSERT_NO_FATAL_FAILURE(wait_state("train", "Completed"));
}

// A step loses a pod and ends, and then its job does, which runs no more tasks.
class StepsThatLoseAPod : public BatchScripts {
 protected:
  // A script on all nodes: a step whose tasks say `up`, and `on` once there is a file `go`; and
  // then what the step's exit code was.
  void begin_step(const std::string& options) {
    ASSERT_NO_FATAL_FAILURE(make_home());
    enforce("restricted");
    ASSERT_NO_FATAL_FAILURE(submit_script(
        "train",
        "srun -l " + options +
            " sh -c 'echo up; until [ -e go ]; do sleep 0.1; done; echo on' >step 2>&1\n"
            "echo srun $?\n[ -e go ] || sleep 600\n",
        restricted_template(),
        {{"spec",
          {{"resources", {{"nodes", {{"min", 3}}}}},
           {"batch", {{"workingDirectory", "/home/ann"}, {"output", "out"}}},
           {"lifecycle", {{"requeue", false}}}}}}));
    ASSERT_NO_FATAL_FAILURE(wait_for_lines({"0: up", "1: up", "2: up"}));
  }
  void wait_for_lines(const std::vector<std::string>& lines) {
    wait_until("the step says " + lines.front(), [&] {
      return std::ranges::all_of(lines, [said = file_in_home("step")](const std::string& line) {
        return said.find(line + "\n") != std::string::npos;
      });
    });
  }
  void expect_no_process() {
    for (const json& pod : pods("train")) EXPECT_TRUE(processes_of(pod).empty()) << pod.dump();
  }
};

TEST_F(StepsThatLoseAPod, EndWithTheirJob) {
  ASSERT_NO_FATAL_FAILURE(begin_step(""));
  for (const int pid : processes_of(pod_on("train", node(2)))) ::kill(pid, SIGKILL);
  ASSERT_NO_FATAL_FAILURE(wait_for_lines({"srun: error: Node failure on " + node(2)}));
  ASSERT_NO_FATAL_FAILURE(wait_state("train", "Failed"));
  EXPECT_EQ(file_in_home("step").find(": on\n"), std::string::npos) << file_in_home("step");
  ASSERT_NO_FATAL_FAILURE(wait_until("its pods have ended", [&] {
    const std::vector<json> all = pods("train");
    return std::ranges::none_of(
        all, [](const json& pod) { return pod["status"]["phase"] == "Running"; });
  }));
  expect_no_process();
}

// SOURCE: srun(1), --no-kill. The node is gone with all of its processes, and the job goes on as
// long as no kubelet says whether they run.
TEST_F(StepsThatLoseAPod, GoOnWithoutItIfTheyMay) {
  ASSERT_NO_FATAL_FAILURE(begin_step("--no-kill"));
  ASSERT_NO_FATAL_FAILURE(power_off(3));
  ASSERT_NO_FATAL_FAILURE(wait_for_lines({"srun: error: Node failure on " + node(3)}));
  std::ofstream{stamps_in_ + "/go"};
  ASSERT_NO_FATAL_FAILURE(wait_for_lines({"0: on", "1: on"}));
  ASSERT_NO_FATAL_FAILURE(
      wait_until("the script goes on", [&] { return file_in_home("out") == "srun 137\n"; }));
  ASSERT_NO_FATAL_FAILURE(power_on(3));
  ASSERT_NO_FATAL_FAILURE(wait_state("train", "Completed", seconds{120}));
  ASSERT_NO_FATAL_FAILURE(wait_nodes_ready());
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
class ScriptNames : public BatchScripts {
 protected:
  // Each line is of a task: when its pod's first process began (in ticks), and when the task did
  // (in seconds, and something else), by the clock that all nodes share. Returns the seconds from
  // the last of those processes to the last task.
  static double seconds_to_meet(const std::string& log) {
    double container = 0;
    double task = 0;
    double ticks = 0;
    double uptime = 0;
    std::istringstream lines{log};
    for (std::string line; std::getline(lines, line);) {
      EXPECT_EQ(std::sscanf(line.c_str(), "%lf %lf", &ticks, &uptime), 2) << line;
      container = std::max(container, ticks / static_cast<double>(::sysconf(_SC_CLK_TCK)));
      task = std::max(task, uptime);
    }
    return task - container;
  }
};

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
  std::vector<double> met_after;
  for (const std::string name : {"meet-a", "meet-b", "meet-c"}) {
    ASSERT_NO_FATAL_FAILURE(submit_script(
        name, "srun sh -c 'echo $(cut -d\" \" -f22 /proc/1/stat) $(cat /proc/uptime)'\n",
        plain_template(), {{"spec", {{"resources", {{"nodes", {{"min", 3}}}}}}}}));
    ASSERT_NO_FATAL_FAILURE(wait_state(name, "Completed"));
    met_after.push_back(seconds_to_meet(log_of(name)));
    std::printf("%s: tasks on all nodes %.2f s after the last container\n", name.c_str(),
                met_after.back());
  }
  std::ranges::sort(met_after);
  EXPECT_LE(met_after[1], 1.0) << "the median";
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

}  // namespace
}  // namespace kubernetes
