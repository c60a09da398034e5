// The API server's part of the table of bad manifests: schemas everywhere, CEL rules where they are
// evaluated (a real server); what neither refuses must reach the operator.
#include "e2e/contract/bad_manifests.h"

#include <set>

#include "e2e/contract/contract_fixture.h"
#include "kube/testing/api_server/yaml_json.h"

namespace contract {
namespace {

// Goal: each mistake that a manifest can have is refused by the API server or by the operator, with
// a sentence that names it; a table of files says by which. The operator's half of the table is
// operator/world_tests/bad_manifests_test.cc.
class BadManifests : public ApiServerContract {
 protected:
  void SetUp() override {
    ApiServerContract::SetUp();
    // The base class has skipped the test.
    if (!server_) return;
    for (const char* kind :
         {"partitions", "jobs", "qos", "accounts", "schedulerconfigs", "nodetimetables"}) {
      const auto documents = devcluster::read_yaml_file(std::string{KUBEGANG_SOURCE_DIR} +
                                                        "/crds/kubegang.io_" + kind + ".yaml");
      ASSERT_TRUE(documents.ok()) << documents.error().message;
      const Reply reply = post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
                               json::parse(documents->front()));
      // On a real server kubegang may be installed already.
      ASSERT_TRUE(reply.status == 201 || reply.status == 409) << reply.body;
      ASSERT_TRUE(eventually(
          [&] { return get(std::string{"/apis/kubegang.io/v1alpha1/"} + kind).status == 200; }));
    }
  }
  // All kinds but Job are without a namespace.
  std::string path_of(const json& object) const {
    const std::string root = "/apis/kubegang.io/v1alpha1/";
    const std::string kind = object["kind"];
    if (kind == "Job") return root + "namespaces/" + ns_ + "/jobs";
    if (kind == "Partition") return root + "partitions";
    if (kind == "QOS") return root + "qos";
    if (kind == "Account") return root + "accounts";
    if (kind == "SchedulerConfig") return root + "schedulerconfigs";
    return root + "nodetimetables";
  }
  // As `kubectl apply` does: create, or patch what is there; then the status, if there is one.
  Reply apply(const json& object) {
    const std::string path = path_of(object), one = path + "/" + name_of(object);
    const bool exists = get(one).status == 200;
    const Reply reply = exists ? merge_patch(one + "?fieldValidation=Strict", object)
                               : post(path + "?fieldValidation=Strict", object);
    if (reply.status < 300 && object.contains("status")) {
      return merge_patch(one + "/status", {{"status", object["status"]}});
    }
    return reply;
  }
};

// All files on one server, so each test cleans up what it has made.
TEST_P(BadManifests, AreRefusedByWhomTheTableSays) {
  const auto table = load_bad_manifests(KUBEGANG_SOURCE_DIR "/e2e/contract/bad_manifests");
  ASSERT_TRUE(table.ok()) << table.error().message;
  // A folder that was not found would be an empty table, which nothing contradicts.
  ASSERT_GE(table->size(), 100U);
  for (const BadManifest& manifest : *table) {
    SCOPED_TRACE(manifest.name);
    std::set<std::string> made;
    for (const std::string& text : manifest.before) {
      const json object = json::parse(text);
      const Reply reply = apply(object);
      EXPECT_LT(reply.status, 300) << reply.body;
      made.insert(path_of(object) + "/" + name_of(object));
    }
    const json object = json::parse(manifest.refused);
    const Reply reply = apply(object);
    made.insert(path_of(object) + "/" + name_of(object));
    // CEL rules are not evaluated by our own server: there such an object gets in and is the
    // operator's to refuse.
    const bool refused_here = manifest.rejected_by == RejectedBy::kSchema ||
                              (manifest.rejected_by == RejectedBy::kCel && is_real());
    if (refused_here) {
      EXPECT_GE(reply.status, 400);
      EXPECT_NE(reply.message().find(manifest.says), std::string::npos)
          << "says:   " << reply.message() << "\nwanted: " << manifest.says;
    } else {
      EXPECT_LT(reply.status, 300) << reply.body;
    }
    for (const std::string& path : made) remove(path);
  }
}

INSTANTIATE_TEST_SUITE_P(Servers, BadManifests,
                         testing::Values(ServerKind::kInProcess, ServerKind::kReal),
                         [](const testing::TestParamInfo<ServerKind>& server) {
                           return std::string{server.param == ServerKind::kReal ? "Real"
                                                                                : "InProcess"};
                         });

}  // namespace
}  // namespace contract
