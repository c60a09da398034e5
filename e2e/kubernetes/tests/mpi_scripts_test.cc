// Programs of MPI in batch scripts, with Debian's MPICH and Open MPI as they are, under a real
// kubelet. Their image (mpi-up) is not part of a usual run: make mpi-kubernetes.
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>
#include <string>
#include <utility>

#include "e2e/kubernetes/tests/batch_scripts.h"

namespace kubernetes {
namespace {

constexpr const char* kMpiImage = "registry.e2e/mpi:1";
constexpr milliseconds kShortSlice{100};

class MpiScripts : public Alone<BatchScripts> {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(Alone<BatchScripts>::SetUp());
    const Output made = script("mpi-up");
    ASSERT_EQ(made.exit_code, 0) << made.text;
    set_slice("100ms");
  }
  void TearDown() override {
    set_slice("500ms");
    Alone<BatchScripts>::TearDown();
  }
  Duration slice() const override { return kShortSlice; }

  void set_slice(const std::string& length) {
    patch("/apis/kubegang.io/v1alpha1/schedulerconfigs/default",
          {{"spec", {{"timeSlice", length}}}});
  }

  // A script on all nodes, as an ordinary user whose files are in /stamps.
  void submit_on_all(const std::string& name, const std::string& script) {
    json pod_template = with_image(restricted_template(), kMpiImage);
    pod_template["spec"]["containers"][0]["volumeMounts"][0]["mountPath"] = "/stamps";
    submit_script(name, "PATH=$PATH:/usr/bin\n" + script, pod_template,
                  {{"spec", {{"resources", {{"nodes", {{"min", 3}}}}}}}});
  }
};

// Goal: what MPI computes is right, and it ends, while its gang stands still every other moment.
// Ring, sums and halo exchange are one program, started in the ways that scripts use, again and
// again, for 40 s of the clock; beside it a probe on each node says when the gang ran. MPICH's
// mpiexec starts programs without MPI: those with it may wait forever in MPI_Finalize, also
// without Kubernetes (mpi_turns/turns.c).
TEST_F(MpiScripts, TwoGangsTakeTurnsOfATenthOfASecond) {
  const std::vector<std::string> both{"first", "second"};
  for (const std::string& name : all_nodes()) {
    std::filesystem::create_directories(stamps_in_ + "/" + name);
    ASSERT_EQ(::chmod((stamps_in_ + "/" + name).c_str(), 0777), 0);
  }
  ASSERT_NO_FATAL_FAILURE(make_home());
  enforce("restricted");
  // Many tasks share few CPUs here: those that wait leave them to others. The nodes have one
  // kernel, by which UCX would take them for one machine, and look for shared memory.
  const std::string script =
      "export OMPI_MCA_mpi_yield_when_idle=1 OMPI_MCA_btl=self,tcp UCX_TLS=self,tcp\n"
      "srun --overlap -N3 -n3 sh -c 'exec /kubegang-probe --work-micros=20 --stamps "
      "/stamps/$SLURMD_NODENAME/'$SLURM_JOB_NAME'-x-$SLURM_NODEID.stamps' >/dev/null &\n"
      "probe=$!\n"
      "run() { way=$1; shift; echo \"$way: $(\"$@\" 2>>/stamps/$SLURM_JOB_NAME.err), exit $?\"; }\n"
      "end=$(($(date +%s) + 40))\n"
      "while [ $(date +%s) -lt $end ]; do\n"
      "  run pmi2 srun --overlap -n3 --mpi=pmi2 /turns.mpich 100 quit\n"
      "  run pmix srun --overlap -n3 --mpi=pmix /turns.openmpi 100\n"
      "  run hydra sh -c \"mpiexec.hydra -n 3 sh -c 'echo \\$PMI_RANK' | sort | tr -d '\\\\n'\"\n"
      "  run mpirun mpirun.openmpi -n 3 --map-by node /turns.openmpi 100\n"
      "done >/stamps/$SLURM_JOB_NAME.out\n"
      "kill $probe; wait; true\n";
  for (const std::string& name : both) {
    ASSERT_NO_FATAL_FAILURE(submit_on_all(name, script));
  }
  ASSERT_NO_FATAL_FAILURE(wait_for_turns(both));
  const Instant from = now();
  pass(seconds{20});
  expect_turns_between(from, now(), both, all_nodes());
  for (const std::string& name : both) {
    wait_state(name, "Completed", seconds{240});
    std::istringstream lines{file_in_home(name + ".out")};
    std::map<std::string, int> of_way;
    for (std::string line; std::getline(lines, line);) {
      const std::string way = line.substr(0, line.find(':'));
      ++of_way[way];
      EXPECT_EQ(line, way == "hydra"
                          ? "hydra: 012, exit 0"
                          : way +
                                ": 3 tasks: ring 300, wrong sums 0, the solver is off by "
                                "0, exit 0");
    }
    EXPECT_EQ(of_way.size(), 4U) << file_in_home(name + ".out");
    EXPECT_EQ(job(name).status.starts.value_or(0), 1);
    for (const auto& [way, count] : of_way) {
      std::printf("%s: %d times by %s\n", name.c_str(), count, way.c_str());
    }
    if (HasFailure()) std::printf("%s\n", file_in_home(name + ".err").c_str());
  }
  EXPECT_EQ(turns().overlap_since(from, both), Duration{});
}

// The image has no bash, and its program another name.
TEST_F(MpiScripts, AnExampleRuns) {
  enforce("baseline");
  std::ifstream in{KUBEGANG_SOURCE_DIR "/examples/mpi.sh"};
  std::string text{std::istreambuf_iterator<char>{in}, {}};
  for (const auto& [word, own] : {std::pair<std::string, std::string>{"/bin/bash", "/bin/sh"},
                                  {"./solver\n", "/turns.openmpi 100\n"}}) {
    const std::size_t at = text.find(word);
    ASSERT_NE(at, std::string::npos) << word;
    text.replace(at, word.size(), own);
  }
  const std::string file = stamps_in_ + "/mpi.sh";
  std::ofstream{file} << text;
  const Output ran = run_shell(
      kubectl_gang("submit --namespace " + ns_ + " -p " + own_partition() + " --wait --image " +
                   kMpiImage + " --env OMPI_MCA_btl=self,tcp --env UCX_TLS=self,tcp " + file));
  EXPECT_EQ(ran.exit_code, 0) << ran.text;
  const Output log = run_shell(kubectl("logs -c main -n " + ns_ + " -l kubegang.io/job"));
  EXPECT_NE(log.text.find("3 tasks: ring 300, wrong sums 0, the solver is off by 0"),
            std::string::npos)
      << log.text;
}

}  // namespace
}  // namespace kubernetes
