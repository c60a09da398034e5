// Single objects: creation, versions, updates, patches, deletion.
#include "e2e/contract/contract_fixture.h"

namespace contract {
namespace {

using kube::Method;

// A client may send fields that belong to the server (an object copied with kubectl has them): they
// are overwritten without a word. A job's own uid or status must not survive its creation.
TEST_P(ApiServerContract, CreationFillsInWhatTheSystemOwns) {
  json object = widget("a");
  object["metadata"]["uid"] = "mine";
  object["metadata"]["generation"] = 7;
  object["status"] = {{"phase", "Early"}};
  const json created = create(widgets(), object);
  EXPECT_NE(created["metadata"]["uid"], "mine");
  EXPECT_EQ(created["metadata"]["generation"], 1);
  EXPECT_EQ(created["metadata"]["namespace"], ns_);
  EXPECT_FALSE(rv_of(created).empty());
  EXPECT_TRUE(created["metadata"].contains("creationTimestamp"));
  EXPECT_FALSE(created.contains("status"));
  EXPECT_EQ(get(widgets("a")).body["metadata"]["uid"], created["metadata"]["uid"]);
}

// The operator creates what may exist already (after a crash between the request and its answer),
// and tells this from other conflicts by the reason.
TEST_P(ApiServerContract, CreatingTwiceIsAlreadyExists) {
  create(widgets(), widget("a"));
  const Reply again = post(widgets(), widget("a"));
  EXPECT_EQ(again.status, 409);
  EXPECT_EQ(again.reason(), "AlreadyExists");
  EXPECT_EQ(again.message(), "widgets.contract.kubegang.io \"a\" already exists");
}

// Five random characters follow the prefix.
TEST_P(ApiServerContract, GenerateNameMakesDifferentNames) {
  json object = widget("");
  object["metadata"] = {{"generateName", "x-"}};
  const std::string first = name_of(create(widgets(), object));
  const std::string second = name_of(create(widgets(), object));
  EXPECT_EQ(first.size(), 7U);
  EXPECT_TRUE(first.starts_with("x-"));
  EXPECT_NE(first, second);
}

// A user who misspells a namespace must get a message about that and not about the object.
TEST_P(ApiServerContract, CreationInAMissingNamespaceIsNotFound) {
  const Reply reply =
      post("/apis/contract.kubegang.io/v1/namespaces/no-such-namespace/widgets", widget("a"));
  EXPECT_EQ(reply.status, 404);
  EXPECT_EQ(reply.message(), "namespaces \"no-such-namespace\" not found");
}

// A job's name becomes a part of its pods' names, so it is refused at the source.
TEST_P(ApiServerContract, NamesMustBeDnsNames) {
  for (const char* name : {"Big", "under_score", "-a", "a-", "a..b"}) {
    const Reply reply = post(widgets(), widget(name));
    EXPECT_EQ(reply.status, 422) << name;
    EXPECT_EQ(reply.reason(), "Invalid") << name;
    EXPECT_NE(reply.message().find("metadata.name: Invalid value: \"" + std::string{name} + "\""),
              std::string::npos)
        << reply.message();
  }
}

// A patch that changes nothing must wake up no watch: otherwise a controller that writes the same
// status at each look would wake itself forever.
TEST_P(ApiServerContract, EachWriteRaisesTheResourceVersionAndNothingElseDoes) {
  const json created = create(widgets(), widget("a"));
  const json patched = merge_patch(widgets("a"), {{"spec", {{"size", 2}}}}).body;
  EXPECT_GT(std::stoll(rv_of(patched)), std::stoll(rv_of(created)));
  const json same = merge_patch(widgets("a"), {{"spec", {{"size", 2}}}}).body;
  EXPECT_EQ(rv_of(same), rv_of(patched));
  EXPECT_EQ(same["metadata"]["generation"], 2);
}

// The operator takes a new generation for a new wish of the user (observedGeneration); its own
// writes of status and labels must not look like one.
TEST_P(ApiServerContract, GenerationRisesWithTheSpecOnly) {
  create(widgets(), widget("a"));
  merge_patch(widgets("a"), {{"metadata", {{"labels", {{"x", "y"}}}}}});
  const json status =
      merge_patch(widgets("a") + "/status", {{"status", {{"phase", "Ready"}}}}).body;
  EXPECT_EQ(status["metadata"]["generation"], 1);
  EXPECT_EQ(status["status"]["phase"], "Ready");
  EXPECT_EQ(merge_patch(widgets("a"), {{"spec", {{"size", 3}}}}).body["metadata"]["generation"], 2);
}

// Two rights of RBAC guard the two paths: the owner of a job may not write its status, the operator
// that writes the status cannot change the job.
TEST_P(ApiServerContract, StatusAndSpecAreWrittenApart) {
  create(widgets(), widget("a"));
  const json status =
      merge_patch(widgets("a") + "/status", {{"metadata", {{"labels", {{"sneaked", "in"}}}}},
                                             {"spec", {{"size", 9}}},
                                             {"status", {{"phase", "Ready"}}}})
          .body;
  EXPECT_EQ(status["spec"]["size"], 1);
  EXPECT_FALSE(status["metadata"].contains("labels"));
  const json spec =
      merge_patch(widgets("a"), {{"spec", {{"size", 2}}}, {"status", {{"phase", "No"}}}}).body;
  EXPECT_EQ(spec["spec"]["size"], 2);
  EXPECT_EQ(spec["status"]["phase"], "Ready");
}

// Optimistic locking: if two writers read the same version, the second one loses, in all three
// ways to write.
TEST_P(ApiServerContract, StaleWritesAreConflicts) {
  json old = create(widgets(), widget("a"));
  merge_patch(widgets("a"), {{"spec", {{"size", 2}}}});
  old["spec"]["size"] = 3;
  for (const Reply& reply :
       {put(widgets("a"), old),
        merge_patch(widgets("a"),
                    {{"metadata", {{"resourceVersion", rv_of(old)}}}, {"spec", {{"size", 3}}}}),
        merge_patch(widgets("a") + "/status", {{"metadata", {{"resourceVersion", rv_of(old)}}},
                                               {"status", {{"phase", "x"}}}})}) {
    EXPECT_EQ(reply.status, 409);
    EXPECT_EQ(reply.reason(), "Conflict");
    EXPECT_EQ(reply.message(),
              "Operation cannot be fulfilled on widgets.contract.kubegang.io \"a\": the object has "
              "been modified; please apply your changes to the latest version and try again");
  }
  EXPECT_EQ(get(widgets("a")).body["spec"]["size"], 2);
}

// An update without a version would overwrite a stranger's write unseen. Built-in kinds allow it
// (below).
TEST_P(ApiServerContract, ReplacingACustomResourceNeedsAResourceVersion) {
  json object = create(widgets(), widget("a"));
  object["metadata"].erase("resourceVersion");
  const Reply refused = put(widgets("a"), object);
  EXPECT_EQ(refused.status, 422);
  EXPECT_NE(refused.message().find("metadata.resourceVersion: Invalid value: 0"), std::string::npos)
      << refused.message();
  EXPECT_EQ(put(widgets("b"), widget("b")).status, 404);
}

// The counterpart of the refusals around it.
TEST_P(ApiServerContract, ReplacingWithTheCurrentVersionWorks) {
  json object = create(widgets(), widget("a"));
  object["spec"] = {{"size", 4}, {"flag", true}};
  const Reply replaced = put(widgets("a"), object);
  EXPECT_EQ(replaced.status, 200);
  EXPECT_EQ(replaced.body["spec"]["flag"], true);
  EXPECT_EQ(replaced.body["metadata"]["uid"], object["metadata"]["uid"]);
}

// A uid as precondition: a decision about a deleted job must not hit another one that was created
// under the same name.
TEST_P(ApiServerContract, AWrongUidIsAConflict) {
  create(widgets(), widget("a"));
  const Reply patch = merge_patch(widgets("a"), {{"metadata", {{"uid", "other"}}}});
  // A patch with another UID asks to change it, which is refused in another way than a
  // precondition.
  EXPECT_EQ(patch.status, 422) << patch.body;
  json replacement = get(widgets("a")).body;
  replacement["metadata"]["uid"] = "other";
  EXPECT_EQ(put(widgets("a"), replacement).status, 409);
  const Reply uid = remove(
      widgets("a"),
      {{"kind", "DeleteOptions"}, {"apiVersion", "v1"}, {"preconditions", {{"uid", "other"}}}});
  EXPECT_EQ(uid.status, 409);
  EXPECT_EQ(uid.reason(), "Conflict");
  const Reply version = remove(widgets("a"), {{"kind", "DeleteOptions"},
                                              {"apiVersion", "v1"},
                                              {"preconditions", {{"resourceVersion", "1"}}}});
  EXPECT_EQ(version.status, 409);
  EXPECT_EQ(get(widgets("a")).status, 200);
}

// RFC 7386; lists are not merged, so a writer of one element must send them all.
TEST_P(ApiServerContract, MergePatchRemovesWithNullAndReplacesLists) {
  create(widgets(), widget("a", {{"size", 1}, {"flag", true}, {"list", {"x", "y"}}}));
  const json patched =
      merge_patch(widgets("a"), {{"spec", {{"flag", nullptr}, {"list", {"z"}}}}}).body;
  EXPECT_FALSE(patched["spec"].contains("flag"));
  EXPECT_EQ(patched["spec"]["list"], json({"z"}));
  EXPECT_EQ(patched["spec"]["size"], 1);
}

// RFC 6902. A failed `test` after a good `replace` leaves the object as it was.
TEST_P(ApiServerContract, JsonPatchAppliesOperationsOrNone) {
  create(widgets(), widget("a"));
  const Reply good =
      json_patch(widgets("a"), {{{"op", "test"}, {"path", "/spec/size"}, {"value", 1}},
                                {{"op", "add"}, {"path", "/spec/flag"}, {"value", true}},
                                {{"op", "replace"}, {"path", "/spec/size"}, {"value", 5}}});
  EXPECT_EQ(good.status, 200) << good.body;
  EXPECT_EQ(good.body["spec"]["size"], 5);
  EXPECT_EQ(good.body["spec"]["flag"], true);
  const Reply bad =
      json_patch(widgets("a"), {{{"op", "replace"}, {"path", "/spec/size"}, {"value", 6}},
                                {{"op", "test"}, {"path", "/spec/size"}, {"value", 1}}});
  EXPECT_EQ(bad.status, 422) << bad.body;
  EXPECT_EQ(get(widgets("a")).body["spec"]["size"], 5);
}

// `kubectl patch` sends this kind of patch unless told --type=merge; its users see this answer.
TEST_P(ApiServerContract, StrategicMergePatchOfCustomResourcesIsUnsupported) {
  create(widgets(), widget("a"));
  for (const json& patch : {json{{"spec", {{"list", {"a"}}}}}, json{{"spec", {{"size", 2}}}}}) {
    const Reply reply = call(Method::kPatch, widgets("a"), patch,
                             {.content_type = "application/strategic-merge-patch+json"});
    EXPECT_EQ(reply.status, 415) << patch;
    EXPECT_EQ(reply.reason(), "UnsupportedMediaType") << patch;
  }
}

// Without finalizers an object has gone when the answer arrives; all later requests say the same
// sentence.
TEST_P(ApiServerContract, DeletionAnswersWithSuccessAndIsNotFoundThen) {
  const json created = create(widgets(), widget("a"));
  const Reply deleted = remove(widgets("a"));
  EXPECT_EQ(deleted.status, 200);
  EXPECT_EQ(deleted.body["status"], "Success");
  EXPECT_EQ(deleted.body["details"]["uid"], created["metadata"]["uid"]);
  for (const Reply& reply : {get(widgets("a")), remove(widgets("a")),
                             merge_patch(widgets("a"), {{"spec", {{"size", 2}}}})}) {
    EXPECT_EQ(reply.status, 404);
    EXPECT_EQ(reply.message(), "widgets.contract.kubegang.io \"a\" not found");
  }
}

// `kubectl delete -l`: an object too many would be gone for good.
TEST_P(ApiServerContract, DeletionOfACollectionFollowsItsSelector) {
  for (const char* name : {"a", "b", "c"}) {
    json object = widget(name);
    object["metadata"]["labels"] = {{"keep", std::string{name} == "b" ? "yes" : "no"}};
    create(widgets(), object);
  }
  EXPECT_EQ(remove(widgets() + "?labelSelector=keep%3Dno").status, 200);
  EXPECT_EQ(names_in(get(widgets()).body), std::vector<std::string>{"b"});
}

// Dry runs pass all checks and show the outcome: `kubectl gang submit --dry-run=server`.
TEST_P(ApiServerContract, DryRunStoresNothing) {
  const Reply created = post(widgets() + "?dryRun=All", widget("a"));
  EXPECT_EQ(created.status, 201);
  EXPECT_TRUE(created.body["metadata"].contains("uid"));
  EXPECT_EQ(get(widgets("a")).status, 404);
  create(widgets(), widget("b"));
  EXPECT_EQ(
      merge_patch(widgets("b") + "?dryRun=All", {{"spec", {{"size", 5}}}}).body["spec"]["size"], 5);
  EXPECT_EQ(get(widgets("b")).body["spec"]["size"], 1);
  EXPECT_EQ(remove(widgets("b") + "?dryRun=All").status, 200);
  EXPECT_EQ(get(widgets("b")).status, 200);
}

// Each mistake has its own code: 404 an unknown path, 400 an unreadable body or a name that differs
// from the path's, 415 a type of content, 422 a wrong kind, 405 a verb that the path lacks.
TEST_P(ApiServerContract, RequestsThatMakeNoSenseAreRefusedInTheirOwnWay) {
  EXPECT_EQ(get("/apis/contract.kubegang.io/v1/nonsense").status, 404);
  EXPECT_EQ(get("/apis/no.such.group/v1/things").status, 404);
  EXPECT_EQ(get(widgets("a") + "/nonsense").status, 404);
  EXPECT_EQ(raw(Method::kPost, widgets(), "{not json").status, 400);
  EXPECT_EQ(raw(Method::kPost, widgets(), "x: y", {.content_type = "text/plain"}).status, 415);
  json wrong = widget("a");
  wrong["kind"] = "Gadget";
  EXPECT_EQ(post(widgets(), wrong).status, 422);
  json elsewhere = widget("a");
  elsewhere["metadata"]["namespace"] = "elsewhere";
  EXPECT_EQ(post(widgets(), elsewhere).status, 400);
  EXPECT_EQ(post(core("configmaps", "a"), config_map("a")).status, 405);
  json versioned = widget("a");
  // A real server, too, takes this for its own failure.
  versioned["metadata"]["resourceVersion"] = "5";
  EXPECT_EQ(post(widgets(), versioned).status, 500);
}

// kubectl replace relies on it for files that have no version.
TEST_P(ApiServerContract, BuiltInKindsMayBeReplacedWithoutAVersion) {
  create(core("configmaps"), config_map("c"));
  json object = config_map("c");
  object["data"] = {{"a", "b"}};
  const Reply replaced = put(core("configmaps", "c"), object);
  EXPECT_EQ(replaced.status, 200);
  EXPECT_EQ(replaced.body["data"]["a"], "b");
}

// Election of a leader: microseconds survive, and a renewal with an old version hears that another
// one was faster.
TEST_P(ApiServerContract, LeasesAreRenewedWithAVersion) {
  const std::string leases = "/apis/coordination.k8s.io/v1/namespaces/" + ns_ + "/leases";
  json lease = create(leases, {{"apiVersion", "coordination.k8s.io/v1"},
                               {"kind", "Lease"},
                               {"metadata", {{"name", "l"}}},
                               {"spec",
                                {{"holderIdentity", "me"},
                                 {"leaseDurationSeconds", 15},
                                 {"renewTime", "2026-01-01T00:00:00.000000Z"}}}});
  json renewed = lease;
  renewed["spec"]["renewTime"] = "2026-01-01T00:00:02.500000Z";
  const Reply reply = put(leases + "/l", renewed);
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.body["spec"]["renewTime"], "2026-01-01T00:00:02.500000Z");
  EXPECT_EQ(put(leases + "/l", lease).status, 409);
}

// The operator writes events of events.k8s.io; `kubectl describe` reads the core group's: one
// object under two names of fields (note and message, regarding and involvedObject).
TEST_P(ApiServerContract, EventsHaveTwoSpellings) {
  const std::string events = "/apis/events.k8s.io/v1/namespaces/" + ns_ + "/events";
  create(events, {{"apiVersion", "events.k8s.io/v1"},
                  {"kind", "Event"},
                  {"metadata", {{"name", "e"}}},
                  {"eventTime", "2026-01-01T00:00:00.000000Z"},
                  {"reportingController", "kubegang.io/operator"},
                  {"reportingInstance", "operator-0"},
                  {"action", "Start"},
                  {"reason", "Started"},
                  {"type", "Normal"},
                  {"note", "runs on n[12-14]"},
                  {"regarding",
                   {{"apiVersion", "kubegang.io/v1alpha1"},
                    {"kind", "Job"},
                    {"name", "myload"},
                    {"namespace", ns_}}}});
  const json core_event = get(core("events", "e")).body;
  EXPECT_EQ(core_event["message"], "runs on n[12-14]");
  EXPECT_EQ(core_event["involvedObject"]["name"], "myload");
  EXPECT_EQ(core_event["reportingComponent"], "kubegang.io/operator");
  const Reply selected = get(core("events") + "?fieldSelector=involvedObject.name%3Dmyload");
  EXPECT_EQ(selected.body["items"].size(), 1U);
  EXPECT_EQ(get(events + "/e").body["note"], "runs on n[12-14]");
}

// `kubectl auth can-i`, and kubectl itself before some commands.
TEST_P(ApiServerContract, EverybodyMayAskWhatHeMayDo) {
  const Reply reply =
      post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
           {{"apiVersion", "authorization.k8s.io/v1"},
            {"kind", "SelfSubjectAccessReview"},
            {"spec", {{"resourceAttributes", {{"verb", "list"}, {"resource", "pods"}}}}}});
  EXPECT_EQ(reply.status, 201);
  EXPECT_EQ(reply.body["status"]["allowed"], true);
}

}  // namespace
}  // namespace contract
