// Goal: the CustomResourceDefinitions and our types list the same fields, types and enum values, so
// that nothing is in one and not in the other. Method: both become an outline, and the two are
// compared. A type's outline comes from the same list of fields (`visit`) that its codec has.
#include <chrono>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "api/account_codec.h"
#include "api/job_codec.h"
#include "api/node_timetable_codec.h"
#include "api/partition_codec.h"
#include "api/qos_codec.h"
#include "api/scheduler_config_codec.h"
#include "api/usage_record_codec.h"
#include "kube/testing/api_server/yaml_json.h"
#include "timetable/timetable.h"

namespace kube {
namespace {

using nlohmann::json;

// An outline is a schema without bounds and texts: type (that of OpenAPI, or quantity, duration,
// time, any), format of integers, enum, properties, items. "optional" says that the field can be
// told apart from any value when it is absent.
class Outliner {
 public:
  static constexpr bool kDecoding = true;

  template <typename T>
  void field(const char* name, T& value) {
    properties_[name] = outline_of(value);
  }
  template <typename T>
  void always(const char* name, T& value) {
    field(name, value);
  }
  template <typename T>
  void nonzero(const char* name, T& value) {
    field(name, value);
  }
  // Times are told apart by their methods and not by their type: whole seconds or microseconds,
  // both strings in the schema.
  void time(const char* name, std::optional<base::Instant>&) {
    properties_[name] = {{"type", "time"}, {"optional", true}};
  }
  void micro_time(const char* name, std::optional<base::Instant>& value) { time(name, value); }
  void micro_time(const char* name, base::Instant&) { properties_[name] = {{"type", "time"}}; }

  template <typename T>
  // In the order of codec.h's overloads: what is told apart there must be told apart here.
  static json outline_of(T& value) {
    // An empty optional has no value to walk over, and an empty list no item: one is put in.
    if constexpr (codec::kIsOptional<T>) {
      json inside = outline_of(value.emplace());
      inside["optional"] = true;
      return inside;
    } else if constexpr (std::same_as<T, bool>) {
      return {{"type", "boolean"}};
    } else if constexpr (codec::Integer<T>) {
      return {{"type", "integer"}, {"format", sizeof(T) == 8 ? "int64" : "int32"}};
    } else if constexpr (NamedEnum<T>) {
      json names = json::array();
      for (const auto& [unused, name] : names_of(std::type_identity<T>{})) names.push_back(name);
      return {{"type", "string"}, {"enum", names}};
    } else if constexpr (std::same_as<T, std::string>) {
      return {{"type", "string"}};
    } else if constexpr (std::same_as<T, base::Duration>) {
      return {{"type", "duration"}};
    } else if constexpr (std::same_as<T, Bytes>) {
      return {{"type", "quantity"}};
    } else if constexpr (std::same_as<T, RawJson>) {
      return {{"type", "any"}};
    } else {
      return outline_of_class(value);
    }
  }

 private:
  template <typename T>
  static json outline_of_class(std::vector<T>& value) {
    return {{"type", "array"}, {"items", outline_of(value.emplace_back())}};
  }
  template <typename T>
  static json outline_of_class(std::map<std::string, T>& value) {
    return {{"type", "map"}, {"items", outline_of(value[""])}};
  }
  template <typename T>
  static json outline_of_class(T& value) {
    Outliner inner;
    visit(inner, value);
    return {{"type", "object"}, {"properties", inner.properties_}};
  }

  json properties_ = json::object();
};

// Reduces a schema to what the C++ types can say as well. Durations and quantities are strings to
// OpenAPI, so they are recognized by their pattern and by int-or-string.
json outline_of_schema(const json& schema) {
  if (schema.value("x-kubernetes-int-or-string", false)) return {{"type", "quantity"}};
  if (schema.value("x-kubernetes-preserve-unknown-fields", false)) return {{"type", "any"}};
  const std::string type = schema["type"];
  if (type == "array") {
    return {{"type", type}, {"items", outline_of_schema(schema["items"])}};
  }
  if (type == "object" && schema.contains("additionalProperties")) {
    return {{"type", "map"}, {"items", outline_of_schema(schema["additionalProperties"])}};
  }
  json outline{{"type", type}};
  if (type == "object") {
    outline["properties"] = json::object();
    outline["required"] = schema.value("required", json::array());
    const json properties = schema.value("properties", json::object());
    for (const auto& [name, property] : properties.items()) {
      outline["properties"][name] = outline_of_schema(property);
    }
  } else if (schema.value("format", "") == "date-time") {
    outline["type"] = "time";
  } else if (schema.value("pattern", "").find("|ms") != std::string::npos) {
    outline["type"] = "duration";
  } else if (type == "integer") {
    outline["format"] = schema.value("format", "none");
  }
  if (schema.contains("enum")) outline["enum"] = schema["enum"];
  return outline;
}

// Returns true for the differences that are on purpose.
bool is_excepted(const std::string& path) {
  // Conditions of Nodes, which share the type, have one and may lack the other.
  return path.ends_with(".conditions[].lastHeartbeatTime") ||
         path.ends_with(".conditions[].lastTransitionTime") ||
         path.ends_with(".matchExpressions[].operator") ||  // unknown ones match nothing
         path == "qos.spec.preemptMode";  // shares its type; Disabled is refused there
}

// Both ways: a field that only the CRD has is seen by no program, and one that only the C++ type
// has is pruned by the API server without a word.
void compare(const json& crd, const json& type, const std::string& path) {
  if (is_excepted(path)) return;
  if (crd["type"] == "any" || type["type"] == "any") return;
  EXPECT_EQ(crd["type"], type["type"]) << path;
  EXPECT_EQ(crd.value("format", ""), type.value("format", "")) << path;
  EXPECT_EQ(crd.value("enum", json::array()).get<std::set<std::string>>(),
            type.value("enum", json::array()).get<std::set<std::string>>())
      << path;
  if (crd["type"] != type["type"]) return;
  if (crd.contains("items")) compare(crd["items"], type["items"], path + "[]");
  if (!crd.contains("properties")) return;
  for (const auto& [name, property] : crd["properties"].items()) {
    const std::string inner = path + "." + name;
    EXPECT_TRUE(type["properties"].contains(name)) << inner << " is in the CRD only";
    if (type["properties"].contains(name)) compare(property, type["properties"][name], inner);
  }
  for (const auto& [name, unused] : type["properties"].items()) {
    EXPECT_TRUE(crd["properties"].contains(name) || is_excepted(path + "." + name))
        << path + "." + name << " is in the C++ type only";
  }
  for (const std::string name : crd["required"]) {
    if (is_excepted(path + "." + name)) continue;
    EXPECT_FALSE(type["properties"][name].value("optional", false))
        << path + "." + name << " is required, but optional in the C++ type";
  }
}

// Returns the schema of a kind's fields, as crds/ has it.
template <ApiObject T>
json schema_of() {
  const auto documents = devcluster::read_yaml_file(KUBEGANG_SOURCE_DIR "/crds/kubegang.io_" +
                                                    std::string{T::kResource.plural} + ".yaml");
  EXPECT_TRUE(documents.ok()) << documents.error().message;
  if (!documents.ok()) return {};
  return json::parse(
      documents->front())["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"];
}

// A kind without a status in C++ must have none in its CRD.
template <ApiObject T>
void expect_same() {
  const std::string plural{T::kResource.plural};
  const json schema = schema_of<T>();
  T object;
  compare(outline_of_schema(schema["spec"]), Outliner::outline_of(object.spec), plural + ".spec");
  if constexpr (requires { object.status; }) {
    compare(outline_of_schema(schema["status"]), Outliner::outline_of(object.status),
            plural + ".status");
  } else {
    EXPECT_FALSE(schema.contains("status"));
  }
}

// One test for each kind, so that a failure names it.
TEST(CrdDrift, Account) {
  expect_same<Account>();
}
TEST(CrdDrift, Job) {
  expect_same<Job>();
}
TEST(CrdDrift, NodeTimetable) {
  expect_same<NodeTimetable>();
}
TEST(CrdDrift, Partition) {
  expect_same<Partition>();
}
TEST(CrdDrift, Qos) {
  expect_same<Qos>();
}
TEST(CrdDrift, SchedulerConfig) {
  expect_same<SchedulerConfig>();
}
TEST(CrdDrift, UsageRecord) {
  expect_same<UsageRecord>();
}

// The API server takes what timetable::validate lets through: the scheduler checks each plan that
// it publishes by the one, and a refused one would leave the node with its old timetable forever.
TEST(CrdDrift, TimetablesHaveTheBoundsThatAreChecked) {
  const json spec = schema_of<NodeTimetable>()["spec"]["properties"];
  EXPECT_EQ(spec["pods"]["maxItems"], timetable::kPodsMax);
  EXPECT_EQ(spec["plan"]["maxItems"], timetable::kPlanEntriesMax);
  EXPECT_EQ(spec["cycle"]["maxItems"], timetable::kCycleSlotsMax);
  for (const json& run : {spec["plan"]["items"]["properties"]["run"], spec["cycle"]["items"]}) {
    EXPECT_EQ(run["maxItems"], timetable::kPodsMax);
    EXPECT_EQ(run["items"]["maximum"], timetable::kPodsMax - 1);
  }
  const auto in = [](base::Duration time, base::Duration unit, const char* name) {
    return "duration('" + std::to_string(time / unit) + name + "')";
  };
  EXPECT_EQ(spec["slice"]["x-kubernetes-validations"][0]["rule"],
            "duration(self) >= " + in(timetable::kSliceMin, std::chrono::milliseconds{1}, "ms") +
                " && duration(self) <= " + in(timetable::kSliceMax, std::chrono::seconds{1}, "s"));
}

}  // namespace
}  // namespace kube
