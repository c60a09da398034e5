// The chart's README has all values, and the commands that people copy from the docs are right.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "charts/chart_fixture.h"
#include "kube/testing/api_server/yaml_json.h"

namespace charts {
namespace {

// "agent.resources" → its default, down to objects that are one value for Kubernetes.
void flatten(const json& values, const std::string& prefix, std::map<std::string, json>& out) {
  for (const auto& [key, value] : values.items()) {
    const std::string path = prefix.empty() ? key : prefix + "." + key;
    const bool whole = key == "resources" || key == "labels" || !value.is_object() || value.empty();
    if (whole) {
      out[path] = value;
    } else {
      flatten(value, path, out);
    }
  }
}

// The table of the README is parsed and compared with values.yaml as a whole: neither may have a
// value that the other lacks.
TEST_F(Chart, ReadmeListsEveryValueWithItsDefault) {
  std::map<std::string, json> values;
  flatten(read_yaml(std::string{kChart} + "/values.yaml"), "", values);
  std::map<std::string, json> listed;
  const std::regex row{R"(\| `([A-Za-z.]+)` \| `([^`]*)` \| .+ \|)"};
  // A row is "| `name` | `default` | text |"; the default is JSON.
  std::istringstream lines{read(std::string{kChart} + "/README.md")};
  for (std::string line; std::getline(lines, line);) {
    std::smatch found;
    if (!std::regex_match(line, found, row)) continue;
    listed[found[1]] = json::parse(found[2].str(), nullptr, false);
  }
  EXPECT_EQ(listed, values);
}

// Every value, and every group of values: Artifact Hub and editors show it.
void expect_descriptions(const json& properties, const std::string& prefix) {
  for (const auto& [name, schema] : properties.items()) {
    EXPECT_NE(schema.value("description", ""), "") << prefix << name;
    // Those two are Kubernetes' own: it describes their fields.
    const bool own = name != "resources" && name != "seLinuxOptions";
    if (own && schema.contains("properties")) {
      expect_descriptions(schema["properties"], prefix + name + ".");
    }
  }
}

// The schema is also what refuses a misspelled value.
TEST_F(Chart, TheSchemaDescribesEveryValue) {
  const json schema = json::parse(read(std::string{kChart} + "/values.schema.json"));
  expect_descriptions(schema["properties"], "");
}

using Ordered = nlohmann::ordered_json;

// Returns a field of a CRD as a schema of values: without what only API servers understand. A
// quantity is a text or a number; fields that are not known are refused.
Ordered schema_of_values(const Ordered& field) {
  static const Strings kOfServersOnly{"format", "default", "anyOf"};
  Ordered out = Ordered::object();
  for (const auto& [key, value] : field.items()) {
    if (key.starts_with("x-kubernetes-") || kOfServersOnly.contains(key)) continue;
    if (key == "properties") {
      for (const auto& [name, inner] : value.items()) out[key][name] = schema_of_values(inner);
    } else if ((key == "items" || key == "additionalProperties") && value.is_object()) {
      out[key] = schema_of_values(value);
    } else {
      out[key] = value;
    }
  }
  if (field.value("x-kubernetes-int-or-string", false)) {
    out["type"] = {"string", "integer", "number"};
  }
  if (out.contains("properties")) out["additionalProperties"] = false;
  return out;
}

// So `helm install` refuses what the API server would refuse, before anything is made. With
// KUBEGANG_WRITE_REFERENCE set the CRD's schema is written into that of the values.
TEST_F(Chart, TheSchemaOfTheSchedulerConfigIsTheCrds) {
  const auto documents =
      devcluster::read_yaml_file(KUBEGANG_SOURCE_DIR "/crds/kubegang.io_schedulerconfigs.yaml");
  ASSERT_TRUE(documents.ok()) << documents.error().message;
  const Ordered crd = Ordered::parse(documents->front());
  Ordered wanted =
      schema_of_values(crd["/spec/versions/0/schema/openAPIV3Schema/properties/spec"_json_pointer]);
  wanted["description"] = "Its spec, by the schema of the CRD; empty: all defaults.";
  const std::string path = std::string{kChart} + "/values.schema.json";
  Ordered values = Ordered::parse(read(path));
  Ordered& spec = values["/properties/schedulerConfig/properties/spec"_json_pointer];
  if (std::getenv("KUBEGANG_WRITE_REFERENCE") != nullptr) {
    spec = wanted;
    std::ofstream{path} << values.dump(2) << "\n";
    return;
  }
  EXPECT_GE(wanted["properties"].size(), 20U);
  EXPECT_TRUE(json(spec) == json(wanted))
      << path << " is out of date: run this test with KUBEGANG_WRITE_REFERENCE=1";
}

// The package has no files but the chart's. NOTES.txt is printed after an installation, to users
// who have the package alone.
TEST_F(Chart, NotesNameNoFileOfTheRepository) {
  const std::string notes = read(std::string{kChart} + "/templates/NOTES.txt");
  EXPECT_THAT(notes, testing::Not(testing::HasSubstr("examples/")));
  EXPECT_THAT(notes, testing::HasSubstr("kind: Partition"));
}

// As text, since no image is built in this test.
TEST_F(Chart, TheDockerfileMakesTheImagesOfTheChart) {
  const std::string text = read(KUBEGANG_SOURCE_DIR "/Dockerfile");
  // The user that the operator's pod has, and no shell in either image.
  EXPECT_THAT(text, testing::HasSubstr("FROM scratch AS operator\n"
                                       "COPY --from=build /tree/operator /\n"
                                       "USER 65532:65532\n"
                                       "ENTRYPOINT [\"/kubegang-operator\"]\n"));
  EXPECT_THAT(text, testing::HasSubstr("FROM scratch AS agent\n"
                                       "COPY --from=build /tree/agent /\n"
                                       "ENTRYPOINT [\"/kubegang-agent\"]\n"));
}

// 1. the version of the chart, of the build and of every image that a document names is the same
// 2. every --set of a document is rendered, so a value that was renamed is found where people copy
//    it
//
// The least count of images keeps the pattern from matching nothing.
TEST_F(Chart, DocsNameImagesAndValuesThatExist) {
  const std::string version =
      read_yaml(std::string{kChart} + "/Chart.yaml")["appVersion"].get<std::string>();
  EXPECT_EQ(version, KUBEGANG_VERSION) << "of Chart.yaml and of CMakeLists.txt";
  const std::regex image{"kubegang/(operator|agent|\\$name):([0-9a-z.]+)"};
  const std::regex option{"--set '?([^ '`\\\\\n]+)"};
  int images = 0;
  std::vector<std::string> files{"Dockerfile", "README.md", "charts/kubegang/README.md"};
  for (const auto& entry : std::filesystem::directory_iterator{KUBEGANG_SOURCE_DIR "/docs"}) {
    if (entry.path().extension() == ".md")
      files.push_back("docs/" + entry.path().filename().string());
  }
  for (const std::string& file : files) {
    const std::string text = read(std::string{KUBEGANG_SOURCE_DIR "/"} + file);
    for (std::sregex_iterator at{text.begin(), text.end(), image}, end; at != end; ++at) {
      EXPECT_EQ((*at)[2], version) << file;
      ++images;
    }
    std::vector<std::string> values;
    for (std::sregex_iterator at{text.begin(), text.end(), option}, end; at != end; ++at) {
      values.push_back((*at)[1]);
    }
    if (!values.empty()) check_whole(render(set(values)), file);
  }
  EXPECT_GE(images, 6);
}

}  // namespace
}  // namespace charts
