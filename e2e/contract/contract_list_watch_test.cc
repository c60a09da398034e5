// Lists, selectors and watches.
#include "e2e/contract/contract_fixture.h"

namespace contract {
namespace {

using Lines = std::vector<std::string>;

json labelled(json object, const json& labels) {
  object["metadata"]["labels"] = labels;
  return object;
}

// The list's version is where the watch goes on: an older one than an item's would tell that item
// again, a newer one than the list's state would miss a change.
TEST_P(ApiServerContract, ListsAreSortedByNameAndCarryAVersion) {
  for (const char* name : {"c", "a", "b"}) create(widgets(), widget(name));
  const json list = get(widgets()).body;
  EXPECT_EQ(list["kind"], "WidgetList");
  EXPECT_EQ(list["apiVersion"], "contract.kubegang.io/v1");
  EXPECT_EQ(names_in(list), (Lines{"a", "b", "c"}));
  // items[1] is "b", created last.
  EXPECT_GE(std::stoll(rv_of(list)), std::stoll(rv_of(list["items"][1])));
}

TEST_P(ApiServerContract, AllNamespacesTogetherAndOneAlone) {
  create(widgets(), widget("only-here"));
  const json everywhere =
      get("/apis/contract.kubegang.io/v1/widgets?fieldSelector=metadata.namespace%3D" + ns_).body;
  EXPECT_EQ(names_in(everywhere), Lines{"only-here"});
  EXPECT_TRUE(
      get("/apis/contract.kubegang.io/v1/namespaces/kube-public/widgets").body["items"].empty());
}

// All pages show the state of the first one: what is deleted meanwhile is still there, what is
// created is not, and all have one version. An informer that mixed states would keep ghosts.
TEST_P(ApiServerContract, PagesAreOneConsistentList) {
  for (const char* name : {"a", "b", "c", "d", "e"}) create(widgets(), widget(name));
  const json first = get(widgets() + "?limit=2").body;
  EXPECT_EQ(names_in(first), (Lines{"a", "b"}));
  EXPECT_EQ(first["metadata"]["remainingItemCount"], 3);
  remove(widgets("d"));
  create(widgets(), widget("bb"));
  const std::string token = first["metadata"]["continue"];
  const json second = get(widgets() + "?limit=2&continue=" + token).body;
  EXPECT_EQ(names_in(second), (Lines{"c", "d"}));
  const std::string last = second["metadata"]["continue"];
  const json third = get(widgets() + "?limit=2&continue=" + last).body;
  EXPECT_EQ(names_in(third), Lines{"e"});
  EXPECT_EQ(third["metadata"].value("continue", ""), "");
  EXPECT_EQ(rv_of(second), rv_of(first));
}

// %3D is =, %21 is !, %20 is a blank. Objects without the label match != and notin.
TEST_P(ApiServerContract, LabelSelectorsSelect) {
  create(widgets(), labelled(widget("a"), {{"app", "x"}, {"tier", "1"}}));
  create(widgets(), labelled(widget("b"), {{"app", "y"}}));
  create(widgets(), widget("c"));
  const auto select = [&](const std::string& selector) {
    return names_in(get(widgets() + "?labelSelector=" + selector).body);
  };
  EXPECT_EQ(select("app%3Dx"), Lines{"a"});
  EXPECT_EQ(select("app%21%3Dx"), (Lines{"b", "c"}));
  EXPECT_EQ(select("app%20in%20(x,y)"), (Lines{"a", "b"}));
  EXPECT_EQ(select("app%20notin%20(x)"), (Lines{"b", "c"}));
  EXPECT_EQ(select("tier"), Lines{"a"});
  EXPECT_EQ(select("%21app"), Lines{"c"});
  EXPECT_EQ(select("app,tier%3D1"), Lines{"a"});
  EXPECT_EQ(get(widgets() + "?labelSelector=a%20b%20c").status, 400);
}

// A node agent lists its own node's pods by spec.nodeName. Other fields are refused, not ignored:
// ignored, the selector would mean all.
TEST_P(ApiServerContract, FieldSelectorsSelectWhereTheKindHasThem) {
  create(core("pods"), pod("a", "node-1"));
  create(core("pods"), pod("b"));
  const auto select = [&](const std::string& selector) {
    return names_in(get(core("pods") + "?fieldSelector=" + selector).body);
  };
  EXPECT_EQ(select("spec.nodeName%3Dnode-1"), Lines{"a"});
  EXPECT_EQ(select("spec.nodeName%21%3Dnode-1"), Lines{"b"});
  EXPECT_EQ(select("metadata.name%3Db"), Lines{"b"});
  EXPECT_EQ(select("status.phase%3DPending,spec.nodeName%3Dnode-1"), Lines{"a"});
  EXPECT_TRUE(select("status.phase%3DRunning").empty());
  EXPECT_EQ(get(core("pods") + "?fieldSelector=spec.hostname%3Dx").status, 400);
  EXPECT_EQ(get(widgets() + "?fieldSelector=spec.size%3D1").status, 400);
}

// A client may hold such a version after etcd was restored from a backup. It must hear so instead
// of waiting forever.
TEST_P(ApiServerContract, AVersionFromTheFutureIsTooLarge) {
  const Reply reply =
      get(widgets() + "?resourceVersion=999999999999&resourceVersionMatch=NotOlderThan");
  EXPECT_EQ(reply.status, 504);
  EXPECT_EQ(reply.reason(), "Timeout");
  EXPECT_EQ(reply.body["details"]["causes"][0]["reason"], "ResourceVersionTooLarge");
}

// Informers rest on this: no change is left out or told twice, and order is that of the writes.
TEST_P(ApiServerContract, AWatchTellsEveryChangeInOrder) {
  const std::string rv = list_rv(widgets());
  create(widgets(), widget("a"));
  const json changed = merge_patch(widgets("a"), {{"spec", {{"size", 2}}}}).body;
  create(widgets(), widget("b"));
  remove(widgets("a"));
  const auto events = watch_count(widgets() + "?watch=true&resourceVersion=" + rv, 4);
  EXPECT_EQ(summary(events), (Lines{"ADDED a", "MODIFIED a", "ADDED b", "DELETED a"}));
  EXPECT_EQ(events[1]["object"], changed);
  // A deletion carries the last state, with a version of its own.
  EXPECT_EQ(events[3]["object"]["spec"]["size"], 2);
  EXPECT_GT(std::stoll(rv_of(events[3]["object"])), std::stoll(rv_of(events[2]["object"])));
}

// The order among these first events is open with resourceVersion=0.
TEST_P(ApiServerContract, AWatchWithoutAVersionBeginsWithWhatExists) {
  create(widgets(), widget("a"));
  create(widgets(), widget("b"));
  EXPECT_EQ(summary(watch_count(widgets() + "?watch=true", 2)), (Lines{"ADDED a", "ADDED b"}));
  EXPECT_EQ(summary(watch_count(widgets() + "?watch=true&resourceVersion=0", 2)).size(), 2U);
}

// As after a connection that broke: nothing lost, nothing twice, no new list.
TEST_P(ApiServerContract, AWatchResumesAfterTheVersionOfAnyEvent) {
  const std::string rv = list_rv(widgets());
  for (const char* name : {"a", "b", "c"}) create(widgets(), widget(name));
  const auto first = watch_count(widgets() + "?watch=true&resourceVersion=" + rv, 2);
  ASSERT_EQ(first.size(), 2U);
  const auto rest =
      watch_count(widgets() + "?watch=true&resourceVersion=" + rv_of(first[1]["object"]), 1);
  EXPECT_EQ(summary(rest), Lines{"ADDED c"});
}

// A watch with a selector shows a set of its own: a change of labels is an arrival or a departure
// there, changes outside are silent.
TEST_P(ApiServerContract, ObjectsThatEnterOrLeaveTheSelectorAreAddedAndDeleted) {
  const std::string rv = list_rv(widgets());
  create(widgets(), widget("a"));
  merge_patch(widgets("a"), {{"metadata", {{"labels", {{"on", "yes"}}}}}});
  merge_patch(widgets("a"), {{"spec", {{"size", 2}}}});
  merge_patch(widgets("a"), {{"metadata", {{"labels", {{"on", "no"}}}}}, {"spec", {{"size", 3}}}});
  create(widgets(), labelled(widget("end"), {{"on", "yes"}}));
  const auto events =
      watch_count(widgets() + "?watch=true&labelSelector=on%3Dyes&resourceVersion=" + rv, 4);
  EXPECT_EQ(summary(events), (Lines{"ADDED a", "MODIFIED a", "DELETED a", "ADDED end"}));
  EXPECT_EQ(events[2]["object"]["spec"]["size"], 2);  // its last state within the selector
}

TEST_P(ApiServerContract, AWatchOfOneNodesPodsSeesNoOthers) {
  const std::string rv = list_rv(core("pods"));
  create(core("pods"), pod("a", "node-1"));
  create(core("pods"), pod("b", "node-2"));
  create(core("pods"), pod("c", "node-1"));
  const auto events = watch_count(
      core("pods") + "?watch=true&fieldSelector=spec.nodeName%3Dnode-1&resourceVersion=" + rv, 2);
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(name_of(events[0]["object"]), "a");
  EXPECT_EQ(name_of(events[1]["object"]), "c");
}

TEST_P(ApiServerContract, AWatchOfOneNameSeesNoOthers) {
  const std::string rv = list_rv(widgets());
  create(widgets(), widget("b"));
  create(widgets(), widget("a"));
  EXPECT_EQ(
      summary(watch_count(
          widgets() + "?watch=true&fieldSelector=metadata.name%3Da&resourceVersion=" + rv, 1)),
      Lines{"ADDED a"});
}

// An end without an error, after which clients begin again where they were.
TEST_P(ApiServerContract, AWatchEndsProperlyAfterItsTime) {
  const auto events =
      watch(widgets() + "?watch=true&timeoutSeconds=1&resourceVersion=" + list_rv(widgets()),
            [](const std::vector<json>&) { return false; });
  EXPECT_TRUE(events.empty());
}

// 410 in the stream, not as the answer's code: the informer must list again.
TEST_P(ApiServerContract, AVersionThatIsForgottenIsGone) {
  const std::string rv = list_rv(widgets());
  create(widgets(), widget("a"));
  create(widgets(), widget("b"));
  // A real server cannot be made to forget, but version 1 was long ago.
  const std::string old = server_->compact() ? rv : "1";
  const auto events = watch_count(widgets() + "?watch=true&resourceVersion=" + old, 1);
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0]["type"], "ERROR");
  EXPECT_EQ(events[0]["object"]["code"], 410);
  EXPECT_EQ(events[0]["object"]["reason"], "Expired");
}

// Both lives are told apart: an informer that merged them would keep a dead job's state.
TEST_P(ApiServerContract, DeletedAndCreatedAgainIsAnotherObject) {
  const std::string rv = list_rv(widgets());
  const json first = create(widgets(), widget("a"));
  remove(widgets("a"));
  const json second = create(widgets(), widget("a"));
  EXPECT_NE(first["metadata"]["uid"], second["metadata"]["uid"]);
  EXPECT_EQ(summary(watch_count(widgets() + "?watch=true&resourceVersion=" + rv, 3)),
            (Lines{"ADDED a", "DELETED a", "ADDED a"}));
}

}  // namespace
}  // namespace contract
