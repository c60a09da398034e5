// `kubectl gang check-crds` against the in-memory API server, with CRDs of which something was
// taken away, as older ones would be.
#include <gmock/gmock.h>
#include <unistd.h>
#include <yaml-cpp/yaml.h>

#include <filesystem>
#include <fstream>

#include "api/partition.h"
#include "cli/testing/program_fixture.h"

namespace cli {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class CheckCrds : public ProgramTest {
 protected:
  CheckCrds() { fs::create_directories(older_); }
  ~CheckCrds() override { fs::remove_all(older_); }

  static YAML::Node spec_of(YAML::Node& crd) {
    return crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
              ["properties"];
  }
  static std::string crd_file(const std::string& plural) {
    return KUBEGANG_SOURCE_DIR "/crds/kubegang.io_" + plural + ".yaml";
  }
  void write(const std::string& plural, const YAML::Node& crd) const {
    std::ofstream{older_ / (plural + ".yaml")} << crd << "\n";
  }
  // The CRD of Jobs without arrays, and without one way to share nodes.
  void write_older_jobs() const {
    YAML::Node crd = YAML::LoadFile(crd_file("jobs"));
    spec_of(crd).remove("array");
    YAML::Node tasks = spec_of(crd)["control"]["properties"]["tasks"]["items"]["properties"];
    tasks.remove("nice");
    YAML::Node sharing = spec_of(crd)["placement"]["properties"]["sharing"]["enum"];
    std::size_t i = 0;
    while (sharing[i].as<std::string>() != "User") ++i;
    sharing.remove(i);
    write("jobs", crd);
  }
  void add_array(const std::string& name, kube::JobState state) {
    add_job("team-a", name,
            {.control = {.tasks = {{.tasks = "3", .nice = 5}}},
             .array = kube::JobArray{.tasks = "0-9"}},
            {.state = state});
  }

  const fs::path older_ =
      fs::path{testing::TempDir()} / ("older-crds-" + std::to_string(::getpid()));
};

TEST_F(CheckCrds, TheClustersOwnCrdsKnowAllFields) {
  add_array("sweep", kube::JobState::kRunning);
  const Ran ran = run({"check-crds", KUBEGANG_SOURCE_DIR "/crds"});
  EXPECT_EQ(ran.code, kExitOk) << ran.out << ran.err;
  EXPECT_EQ(ran.out, "Every object fits these CRDs.\n");
}

TEST_F(CheckCrds, NamesTheFieldsAndValuesThatWouldBeLost) {
  write_older_jobs();
  add_array("sweep", kube::JobState::kRunning);
  add_job("team-b", "alone", {.placement = {.sharing = kube::JobSharing::kUser}}, {});
  add_job("team-b", "plain", {}, {.state = kube::JobState::kPending});
  const Ran ran = run({"check-crds", older_});
  EXPECT_EQ(ran.code, kExitFailed);
  EXPECT_EQ(ran.out,
            "Job team-a/sweep: spec.array, spec.control.tasks[0].nice\n"
            "Job team-b/alone: spec.placement.sharing: User\n");
  EXPECT_THAT(ran.err, HasSubstr("change the 2 objects first"));
}

// Their specs have done what they could.
TEST_F(CheckCrds, JobsThatHaveEndedHoldBackNothing) {
  write_older_jobs();
  add_array("sweep", kube::JobState::kCompleted);
  EXPECT_EQ(run({"check-crds", older_}).code, kExitOk);
}

// Also of kinds that belong to no namespace, and among other documents.
TEST_F(CheckCrds, AManifestOfAReleaseDoes) {
  YAML::Node crd = YAML::LoadFile(crd_file("partitions"));
  spec_of(crd).remove("nodes");
  const fs::path manifest = older_ / "manifest";
  std::ofstream{manifest} << "---\nkind: ConfigMap\n---\n" << crd << "\n---\nkind: Service\n";
  kube::Partition partition;
  partition.metadata.name = "batch";
  partition.spec.nodes.hostlist = "n[1-2]";
  ASSERT_TRUE(client_.create(partition).ok());
  const Ran ran = run({"check-crds", manifest});
  EXPECT_EQ(ran.code, kExitFailed) << ran.err;
  EXPECT_EQ(ran.out, "Partition batch: spec.nodes\n");
  EXPECT_THAT(ran.err, HasSubstr("change the 1 object first"));
}

TEST_F(CheckCrds, AFileWithoutCrdsIsAnError) {
  const Ran ran = run({"check-crds", KUBEGANG_SOURCE_DIR "/examples/partitions.yaml"});
  EXPECT_EQ(ran.code, kExitFailed);
  EXPECT_THAT(ran.err, HasSubstr("no CRD of kubegang.io is in it"));
  EXPECT_THAT(run({"check-crds", "/nowhere"}).err, HasSubstr("/nowhere"));
  EXPECT_EQ(run({"check-crds"}).code, kExitUsage);
}

}  // namespace
}  // namespace cli
