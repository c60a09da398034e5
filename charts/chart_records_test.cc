// kubegang-records: off by default, one writer for its database, and no right to write anything but
// how far it has stored Jobs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "charts/chart_fixture.h"
#include "records/options.h"

namespace charts {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr const char* kDeployment = "Deployment/kubegang-records";

records::ParsedOptions options_of(const json& deployment) {
  return records::parse_options(deployment["/spec/template/spec/containers/0/args"_json_pointer]
                                    .get<std::vector<std::string>>());
}

TEST_F(Chart, RecordsAreNotInstalledUnasked) {
  for (const json& object : render()) {
    // Texts of CRDs name it.
    if (object["kind"] == "CustomResourceDefinition") continue;
    if (object["metadata"]["name"] == "kubegang-check-crds") continue;
    EXPECT_THAT(object.dump(), Not(HasSubstr("kubegang-records"))) << object["metadata"]["name"];
  }
}

TEST_F(Chart, RecordsHaveOneWriterAndAClaimThatStays) {
  const Objects objects = render(set({"records.enabled=true", "records.cluster=alps"}));
  const json deployment = find(objects, kDeployment);
  EXPECT_EQ(deployment["spec"]["replicas"], 1);
  EXPECT_EQ(deployment["spec"]["strategy"]["type"], "Recreate");
  const json claim = find(objects, "PersistentVolumeClaim/kubegang-records");
  EXPECT_EQ(claim["metadata"]["annotations"]["helm.sh/resource-policy"], "keep");
  const auto parsed = options_of(deployment);
  ASSERT_FALSE(parsed.exit_code) << parsed.text;
  EXPECT_EQ(parsed.options.cluster, "alps");
  EXPECT_EQ(parsed.options.api_port, 0);
  EXPECT_THAT(json(objects).dump(), Not(HasSubstr("APIService")));
  const json own = find(render(set({"records.enabled=true", "records.storage.existingClaim=mine"})),
                        kDeployment);
  EXPECT_THAT(own.dump(), HasSubstr(R"("claimName":"mine")"));
}

// The operator reads what records write, and neither may more.
TEST_F(Chart, DeletionsWaitForRecordsWhereThereAreAny) {
  const auto arguments_in = [](const Objects& objects, const char* deployment) {
    return find(objects, deployment)["/spec/template/spec/containers/0/args"_json_pointer].dump();
  };
  constexpr const char* kOperator = "Deployment/kubegang-operator";
  EXPECT_THAT(arguments_in(render(), kOperator), Not(HasSubstr("records")));
  const Objects objects = render(set({"records.enabled=true"}));
  EXPECT_THAT(arguments_in(objects, kOperator), HasSubstr("--records-lease=kubegang-records"));
  const json lease = find(objects, "Lease/kubegang-records");
  EXPECT_EQ(options_of(find(objects, kDeployment)).options.lease,
            (kube::ObjectKey{lease["metadata"]["namespace"], "kubegang-records"}));
  const json rule = find(objects, "Role/kubegang-records-lease")["rules"][0];
  EXPECT_EQ(rule["verbs"], json({"patch"}));
  EXPECT_EQ(rule["resourceNames"], json({"kubegang-records"}));
  EXPECT_THAT(
      find(objects, "Role/kubegang-operator-lease").dump(),
      HasSubstr(R"("resourceNames":["kubegang-records"],"resources":["leases"],"verbs":["get"])"));
}

TEST_F(Chart, TheApiOfRecordsIsServedWhereItIsRegistered) {
  const Objects objects = render(set({"records.enabled=true", "records.api.enabled=true"}));
  const auto parsed = options_of(find(objects, kDeployment));
  ASSERT_FALSE(parsed.exit_code) << parsed.text;
  EXPECT_EQ(parsed.options.api_port, 8443);
  const json secret = find(objects, "Secret/kubegang-records");
  const json api = find(objects, "APIService/v1alpha1.records.kubegang.io");
  EXPECT_EQ(api["spec"]["caBundle"], secret["data"]["ca.crt"]);
  EXPECT_FALSE(api["spec"].contains("insecureSkipTLSVerify"));
  EXPECT_EQ(api["spec"]["service"]["name"], "kubegang-records");
  const HelmRun half = run_template(
      set({"records.enabled=true", "records.api.enabled=true", "records.api.tlsSecret=mine"}));
  EXPECT_NE(half.exit_code, 0);
  EXPECT_THAT(half.output, HasSubstr("records.api.tlsSecret needs records.api.caBundle"));
}

// The address has a password: it is in a Secret and in no argument.
TEST_F(Chart, PostgresqlIsNamedByASecret) {
  EXPECT_THAT(find(render(set({"records.enabled=true"})), kDeployment).dump(),
              Not(HasSubstr("postgresql")));
  const Objects objects =
      render(set({"records.enabled=true", "records.postgresql.secret=mine",
                  "records.postgresql.key=address", "networkPolicy.enabled=true"}));
  const json deployment = find(objects, kDeployment);
  const std::string path = options_of(deployment).options.postgresql_file;
  const json volume = deployment["/spec/template/spec/volumes/1"_json_pointer];
  EXPECT_EQ(volume["secret"]["secretName"], "mine");
  EXPECT_EQ(volume["secret"]["items"], json::parse(R"([{"key": "address", "path": "url"}])"));
  const json mount = deployment["/spec/template/spec/containers/0/volumeMounts/1"_json_pointer];
  EXPECT_EQ(mount["name"], volume["name"]);
  EXPECT_EQ(path, mount["mountPath"].get<std::string>() + "/url");
  EXPECT_THAT(find(objects, "NetworkPolicy/kubegang")["spec"]["egress"].dump(), HasSubstr("5432"));
}

}  // namespace
}  // namespace charts
