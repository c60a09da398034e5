// Custom resources: schemas in force, in a real server's words; discovery, OpenAPI and tables.
#include "e2e/contract/contract_fixture.h"

namespace contract {
namespace {

using kube::Method;

// The type that kubectl asks for: a table, or the object where the server knows none.
constexpr const char* kTable = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";

// A spec of a widget that must be refused, and how.
struct Refusal {
  json spec;
  std::string message;  // a part of it
};

// Users meet our checks only in the API server's sentences, so docs and tests of manifests quote
// them; they must be those of a real server. One line for each keyword of OpenAPI that our schemas
// use.
TEST_P(ApiServerContract, SchemasRefuseInAFamiliarSentence) {
  // 1. Numbers: bounds and types.
  const std::vector<Refusal> refusals = {
      {{{"size", 0}},
       "spec.size: Invalid value: 0: spec.size in body should be greater than or equal to 1"},
      {{{"size", 11}},
       "spec.size: Invalid value: 11: spec.size in body should be less than or equal to 10"},
      {{{"size", "1"}},
       "spec.size: Invalid value: \"string\": spec.size in body must be of type integer: "
       "\"string\""},
      {{{"size", 1.5}}, "spec.size in body must be of type integer"},
      {json::object(), "spec.size: Required value"},
      // 2. Strings: enumerations, patterns, lengths (in bytes), formats.
      {{{"size", 1}, {"color", "Blue"}},
       "spec.color: Unsupported value: \"Blue\": supported values: \"Red\", \"Green\""},
      {{{"size", 1}, {"label", "A1"}},
       "spec.label: Invalid value: \"A1\": spec.label in body should match '^[a-z]+$'"},
      {{{"size", 1}, {"label", "x"}}, "spec.label in body should be at least 2 chars long"},
      {{{"size", 1}, {"label", "abcdef"}}, "spec.label: Too long: may not be more than 5 bytes"},
      {{{"size", 1}, {"flag", "yes"}}, "spec.flag in body must be of type boolean: \"string\""},
      {{{"size", 1}, {"when", "yesterday"}},
       "spec.when in body must be of type date-time: \"yesterday\""},
      {{{"size", 1}, {"amount", true}}, "spec.amount in body must be of type"},
      // 3. Lists, maps, sets, and lists whose elements have a key.
      {{{"size", 1}, {"list", json::array()}}, "spec.list in body should have at least 1 items"},
      {{{"size", 1}, {"list", {"a", "b", "c"}}},
       "spec.list: Too many: 3: must have at most 2 items"},
      {{{"size", 1}, {"map", {{"a", "1"}, {"b", "2"}, {"c", "3"}}}},
       "spec.map: Too many: 3: must have at most 2 items"},
      {{{"size", 1}, {"set", {"a", "a"}}}, "spec.set[1]: Duplicate value: \"a\""},
      {{{"size", 1}, {"parts", {{{"name", "a"}}, {{"name", "a"}}}}},
       "spec.parts[1]: Duplicate value"},
      {{{"size", 1}, {"parts", {{{"value", "a"}}}}}, "spec.parts[0].name: Required value"},
  };
  // Each with 422, the object's name in front, and the sentence.
  for (const Refusal& refusal : refusals) {
    const Reply reply = post(widgets(), widget("a", refusal.spec));
    EXPECT_EQ(reply.status, 422) << refusal.spec;
    EXPECT_EQ(reply.reason(), "Invalid") << refusal.spec;
    EXPECT_NE(reply.message().find("Widget.contract.kubegang.io \"a\" is invalid: "),
              std::string::npos)
        << reply.message();
    EXPECT_NE(reply.message().find(refusal.message), std::string::npos)
        << "got:    " << reply.message() << "\nwanted: " << refusal.message;
  }
}

// The other side of the refusals: values at the bounds and null where the schema allows it.
TEST_P(ApiServerContract, LegalValuesOfEveryTypePass) {
  const json spec = {{"size", 10},
                     {"color", "Green"},
                     {"label", "abc"},
                     {"flag", false},
                     {"ratio", nullptr},
                     {"amount", "100m"},
                     {"when", "2026-01-01T00:00:00.123456+02:00"},
                     {"open", {{"any", {1, "x", nullptr}}}},
                     {"map", {{"a", "1"}}},
                     {"list", {"a", "a"}},
                     {"set", {"a", "b"}},
                     {"parts", {{{"name", "a"}}, {{"name", "b"}, {"value", "v"}}}}};
  // The object is stored without a change.
  EXPECT_EQ(create(widgets(), widget("a", spec))["spec"], spec);
}

// Some clients write null for a field that was left out.
TEST_P(ApiServerContract, DefaultsAreFilledInAndNullCountsAsAbsent) {
  EXPECT_EQ(create(widgets(), widget("a"))["spec"]["color"], "Red");
  EXPECT_EQ(create(widgets(), widget("b", {{"size", 1}, {"color", nullptr}}))["spec"]["color"],
            "Red");
}

// A misspelt field of a job must not be lost in silence: kubectl asks for Strict by default.
TEST_P(ApiServerContract, UnknownFieldsArePrunedWarnedOfOrRefused) {
  const json object =
      widget("a", {{"size", 1}, {"sice", 2}, {"parts", {{{"name", "p"}, {"x", 1}}}}});
  const Reply strict = post(widgets() + "?fieldValidation=Strict", object);
  EXPECT_EQ(strict.status, 400);
  EXPECT_EQ(strict.reason(), "BadRequest");
  EXPECT_NE(strict.message().find("strict decoding error: "), std::string::npos)
      << strict.message();
  EXPECT_NE(strict.message().find("unknown field \"spec.sice\""), std::string::npos)
      << strict.message();
  EXPECT_NE(strict.message().find("unknown field \"spec.parts[0].x\""), std::string::npos)
      << strict.message();
  // The field is dropped, and the user hears of it in a header that kubectl prints.
  const Reply warned = post(widgets() + "?fieldValidation=Warn", object);
  EXPECT_EQ(warned.status, 201);
  EXPECT_FALSE(warned.body["spec"].contains("sice"));
  ASSERT_TRUE(warned.headers.contains("warning"));
  EXPECT_NE(warned.headers.at("warning").find("unknown field"), std::string::npos);
  const Reply ignored =
      merge_patch(widgets("a") + "?fieldValidation=Ignore", {{"spec", {{"sice", 3}}}});
  EXPECT_EQ(ignored.status, 200);
  EXPECT_FALSE(ignored.headers.contains("warning"));
  // A patch that fails so is 422 while an object is 400, as on a real server.
  EXPECT_EQ(merge_patch(widgets("a") + "?fieldValidation=Strict", {{"spec", {{"sice", 3}}}}).status,
            422);
}

// As text, since a JSON value cannot hold a field twice. Otherwise the last one wins.
TEST_P(ApiServerContract, FieldsThatStandTwiceAreRefusedByStrict) {
  const std::string text =
      R"({"apiVersion":"contract.kubegang.io/v1","kind":"Widget","metadata":{"name":"a"},)"
      R"("spec":{"size":1,"size":2}})";
  const Reply strict = raw(Method::kPost, widgets() + "?fieldValidation=Strict", text);
  EXPECT_EQ(strict.status, 400);
  EXPECT_NE(strict.message().find("duplicate field \"spec.size\""), std::string::npos)
      << strict.message();
  EXPECT_EQ(raw(Method::kPost, widgets() + "?fieldValidation=Ignore", text).body["spec"]["size"],
            2);
}

// A status that breaks its schema would be refused in production only, at the operator's first
// write.
TEST_P(ApiServerContract, StatusIsCheckedToo) {
  create(widgets(), widget("a"));
  const Reply reply = merge_patch(widgets("a") + "/status", {{"status", {{"count", "many"}}}});
  EXPECT_EQ(reply.status, 422);
  EXPECT_NE(reply.message().find(
                "status.count: Invalid value: \"string\": count in body must be of type integer"),
            std::string::npos);
}

// `kubectl get` shows these. Priority 1 is `-o wide`; a path that finds nothing is null (shown as
// <none>).
TEST_P(ApiServerContract, TablesHaveTheColumnsOfTheDefinition) {
  create(widgets(), widget("a", {{"size", 3}, {"parts", {{{"name", "b"}, {"value", "v"}}}}}));
  const json table = call(Method::kGet, widgets(), nullptr, {.accept = kTable}).body;
  EXPECT_EQ(table["kind"], "Table");
  EXPECT_EQ(table["apiVersion"], "meta.k8s.io/v1");
  std::vector<std::string> columns;
  for (const json& column : table["columnDefinitions"]) columns.push_back(column["name"]);
  EXPECT_EQ(columns, (std::vector<std::string>{"Name", "Size", "Phase", "Wide", "Age"}));
  EXPECT_EQ(table["columnDefinitions"][3]["priority"], 1);
  ASSERT_EQ(table["rows"].size(), 1U);
  const json& cells = table["rows"][0]["cells"];
  EXPECT_EQ(cells[0], "a");
  EXPECT_EQ(cells[1], 3);
  EXPECT_EQ(cells[2], nullptr);
  EXPECT_EQ(cells[3], "v");
  EXPECT_EQ(table["rows"][0]["object"]["kind"], "PartialObjectMetadata");
  EXPECT_EQ(name_of(table["rows"][0]["object"]), "a");
  const json full =
      call(Method::kGet, widgets() + "?includeObject=Object", nullptr, {.accept = kTable}).body;
  EXPECT_EQ(full["rows"][0]["object"]["spec"]["size"], 3);
}

// Pods are a built-in kind, whose columns the server knows itself.
TEST_P(ApiServerContract, PodTablesShowWhatPeopleLookFor) {
  create(core("pods"), pod("a", "node-1"));
  const json table = call(Method::kGet, core("pods", "a"), nullptr, {.accept = kTable}).body;
  ASSERT_EQ(table["rows"].size(), 1U);
  const json& cells = table["rows"][0]["cells"];
  EXPECT_EQ(cells[0], "a");
  EXPECT_EQ(cells[1], "0/1");
  EXPECT_EQ(cells[2], "Pending");
  EXPECT_EQ(cells[6], "node-1");
}

// Collectors of garbage read metadata only, which spares memory.
TEST_P(ApiServerContract, MetadataAloneCanBeAskedFor) {
  create(widgets(), widget("a"));
  const json list =
      call(Method::kGet, widgets(), nullptr,
           {.accept = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"})
          .body;
  EXPECT_EQ(list["kind"], "PartialObjectMetadataList");
  EXPECT_EQ(names_in(list), std::vector<std::string>{"a"});
  EXPECT_FALSE(list["items"][0].contains("spec"));
}

// kubectl resolves `wd`, `widgets` and `contract` (a category) by these lists; newer ones read the
// aggregated form.
TEST_P(ApiServerContract, DiscoveryNamesTheResource) {
  const json list = get("/apis/contract.kubegang.io/v1").body;
  EXPECT_EQ(list["kind"], "APIResourceList");
  // Both the resource and its subresource are listed.
  bool found = false, status = false;
  for (const json& resource : list["resources"]) {
    if (resource["name"] == "widgets/status") status = true;
    if (resource["name"] != "widgets") continue;
    found = true;
    EXPECT_EQ(resource["kind"], "Widget");
    EXPECT_EQ(resource["namespaced"], true);
    EXPECT_EQ(resource["shortNames"], json({"wd"}));
    EXPECT_EQ(resource["categories"], json({"contract"}));
  }
  EXPECT_TRUE(found);
  EXPECT_TRUE(status);
  EXPECT_EQ(get("/apis/contract.kubegang.io").body["preferredVersion"]["version"], "v1");
  const json aggregated =
      call(Method::kGet, "/apis", nullptr,
           {.accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"})
          .body;
  EXPECT_EQ(aggregated["kind"], "APIGroupDiscoveryList");
  EXPECT_NE(aggregated.dump().find("\"resource\":\"widgets\""), std::string::npos);
}

// `kubectl explain` reads this. A real server publishes it a while after the definition.
TEST_P(ApiServerContract, OpenApiDescribesTheResource) {
  json document;
  EXPECT_TRUE(eventually([&] {
    const json index = get("/openapi/v3").body;
    if (!index["paths"].contains("apis/contract.kubegang.io/v1")) return false;
    const std::string url = index["paths"]["apis/contract.kubegang.io/v1"]["serverRelativeURL"];
    document = get(url).body;
    return document.is_object();
  }));
  const json schema = document["components"]["schemas"]["io.kubegang.contract.v1.Widget"];
  EXPECT_EQ(schema["properties"]["spec"]["properties"]["size"]["maximum"], 10);
  EXPECT_EQ(schema["x-kubernetes-group-version-kind"][0]["kind"], "Widget");
}

// A field without a type: a mistake in our crds/ must fail in the tests, not at a user's `kubectl
// apply`.
TEST_P(ApiServerContract, DefinitionsThatAreNotStructuralAreRefused) {
  const json crd = {{"apiVersion", "apiextensions.k8s.io/v1"},
                    {"kind", "CustomResourceDefinition"},
                    {"metadata", {{"name", "gadgets.contract.kubegang.io"}}},
                    {"spec",
                     {{"group", "contract.kubegang.io"},
                      {"scope", "Cluster"},
                      {"names", {{"kind", "Gadget"}, {"plural", "gadgets"}}},
                      {"versions",
                       {{{"name", "v1"},
                         {"served", true},
                         {"storage", true},
                         {"schema",
                          {{"openAPIV3Schema",
                            {{"type", "object"},
                             {"properties", {{"spec", {{"description", "no type"}}}}}}}}}}}}}}};
  const Reply reply = post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd);
  EXPECT_EQ(reply.status, 422);
  EXPECT_EQ(reply.reason(), "Invalid");
}

}  // namespace
}  // namespace contract
