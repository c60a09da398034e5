// Pods that end gracefully, garbage collection, namespaces that go with all they hold. A real
// cluster needs its controller manager for the latter two.
#include "e2e/contract/contract_fixture.h"

namespace contract {
namespace {

// `object` with a reference to `owner`, by which the collector of garbage finds it.
json owned_by(json object, const json& owner, bool controller = true) {
  object["metadata"]["ownerReferences"] = {{{"apiVersion", owner["apiVersion"]},
                                            {"kind", owner["kind"]},
                                            {"name", owner["metadata"]["name"]},
                                            {"uid", owner["metadata"]["uid"]},
                                            {"controller", controller}}};
  return object;
}

// The programs read pods' fields without a thought to absent ones.
TEST_P(ApiServerContract, PodsGetTheirDefaults) {
  const json created = create(core("pods"), pod("a"));
  EXPECT_EQ(created["spec"]["restartPolicy"], "Always");
  EXPECT_EQ(created["spec"]["terminationGracePeriodSeconds"], 30);
  EXPECT_EQ(created["spec"]["schedulerName"], "default-scheduler");
  EXPECT_EQ(created["status"]["phase"], "Pending");
  EXPECT_EQ(created["status"]["qosClass"], "BestEffort");
}

// The operator makes pods from templates of users; what slips through its own checks is refused
// here, with a sentence that reaches the user.
TEST_P(ApiServerContract, PodsWithoutContainersAreInvalid) {
  json object = pod("a");
  object["spec"]["containers"] = json::array();
  const Reply empty = post(core("pods"), object);
  EXPECT_EQ(empty.status, 422);
  EXPECT_NE(empty.message().find("spec.containers: Required value"), std::string::npos)
      << empty.message();
  object = pod("a");
  object["spec"]["containers"].push_back(object["spec"]["containers"][0]);
  const Reply twice = post(core("pods"), object);
  EXPECT_EQ(twice.status, 422);
  EXPECT_NE(twice.message().find("spec.containers[1].name: Duplicate value: \"main\""),
            std::string::npos)
      << twice.message();
}

// Therefore the operator must decide on a pod's node before it lets the pod go.
TEST_P(ApiServerContract, APodsSpecCannotChange) {
  create(core("pods"), pod("a", "node-1"));
  const Reply refused = merge_patch(core("pods", "a"), {{"spec", {{"restartPolicy", "Never"}}}});
  EXPECT_EQ(refused.status, 422);
  EXPECT_NE(refused.message().find("pod updates may not change fields other than"),
            std::string::npos)
      << refused.message();
}

// Node, toleration, labels and the gate that goes, in one write; then the deadline, lowered.
TEST_P(ApiServerContract, AGatedPodCanBePinnedAndLetGoAtOnce) {
  json object = pod("a");
  object["spec"]["schedulingGates"] = json::array({{{"name", "contract/gate"}}});
  const json created = create(core("pods"), object);
  // The node by its name, in a field that is compared as it stands: labels of nodes may change.
  const json field{
      {"key", "metadata.name"}, {"operator", "In"}, {"values", json::array({"no-such-node"})}};
  const json term{{"matchFields", json::array({field})}};
  const json affinity{{"nodeAffinity",
                       {{"requiredDuringSchedulingIgnoredDuringExecution",
                         {{"nodeSelectorTerms", json::array({term})}}}}}};
  json tolerations = created["spec"].value("tolerations", json::array());
  tolerations.push_back({{"key", "contract"}, {"operator", "Exists"}});
  const json pin{
      {"metadata", {{"labels", {{"a", "b"}}}}},
      {"spec",
       {{"schedulingGates", nullptr}, {"affinity", affinity}, {"tolerations", tolerations}}}};
  const Reply pinned = merge_patch(core("pods", "a"), pin);
  // In one write, because a pod without its gate and without its node would be scheduled anywhere.
  ASSERT_EQ(pinned.status, 200) << pinned.message();
  EXPECT_FALSE(pinned.body["spec"].contains("schedulingGates"));
  EXPECT_EQ(pinned.body["spec"]["affinity"], affinity);
  EXPECT_EQ(pinned.body["metadata"]["labels"]["a"], "b");

  const Reply gated =
      merge_patch(core("pods", "a"),
                  {{"spec", {{"schedulingGates", json::array({{{"name", "contract/gate"}}})}}}});
  EXPECT_EQ(gated.status, 422) << "a gate never comes back";
  // Once the gate is gone, the pod can no longer be moved.
  EXPECT_EQ(merge_patch(core("pods", "a"), {{"spec", {{"affinity", nullptr}}}}).status, 422);
  const Reply stopped = merge_patch(core("pods", "a"), {{"spec", {{"activeDeadlineSeconds", 1}}}});
  EXPECT_EQ(stopped.status, 200) << stopped.message();
}

// The fake kubelets write the status only; a status in another write is ignored without a word.
TEST_P(ApiServerContract, APodsStatusIsWrittenApart) {
  create(core("pods"), pod("a", "node-1"));
  const json status = merge_patch(core("pods", "a") + "/status",
                                  {{"status", {{"phase", "Running"}, {"podIP", "10.0.0.1"}}}})
                          .body;
  EXPECT_EQ(status["status"]["phase"], "Running");
  const json labelled = merge_patch(core("pods", "a"), {{"metadata", {{"labels", {{"a", "b"}}}}},
                                                        {"status", {{"phase", "Failed"}}}})
                            .body;
  EXPECT_EQ(labelled["status"]["phase"], "Running");
  EXPECT_EQ(labelled["metadata"]["labels"]["a"], "b");
}

// No kubelet must stop anything.
TEST_P(ApiServerContract, APodWithoutANodeGoesAtOnce) {
  create(core("pods"), pod("a"));
  const Reply deleted = remove(core("pods", "a"));
  EXPECT_EQ(deleted.status, 200);
  EXPECT_EQ(deleted.body["kind"], "Pod");
  EXPECT_EQ(get(core("pods", "a")).status, 404);
}

// 1. Deletion only marks the pod: with a date, and the time that its processes have.
TEST_P(ApiServerContract, APodOnANodeStaysUntilItsKubeletDeletesIt) {
  // Everything from here on is seen by the watch at the end.
  const std::string rv = list_rv(core("pods"));
  create(core("pods"), pod("a", "node-1"));
  const json marked = remove(core("pods", "a")).body;
  EXPECT_EQ(marked["metadata"]["deletionGracePeriodSeconds"], 30);
  EXPECT_TRUE(marked["metadata"].contains("deletionTimestamp"));
  const json still = get(core("pods", "a")).body;
  EXPECT_EQ(still["metadata"]["deletionTimestamp"], marked["metadata"]["deletionTimestamp"]);
  // A second deletion may only shorten the time.
  EXPECT_EQ(remove(core("pods", "a") + "?gracePeriodSeconds=5")
                .body["metadata"]["deletionGracePeriodSeconds"],
            5);
  EXPECT_EQ(remove(core("pods", "a") + "?gracePeriodSeconds=20")
                .body["metadata"]["deletionGracePeriodSeconds"],
            5);
  // 2. With no time left the kubelet deletes it for good. This is also how users force the end of
  //    pods on a lost node.
  remove(core("pods", "a"),
         {{"kind", "DeleteOptions"}, {"apiVersion", "v1"}, {"gracePeriodSeconds", 0}});
  EXPECT_EQ(get(core("pods", "a")).status, 404);
  // 3. Watches see the marks as changes and one end.
  const auto events = watch(core("pods") + "?watch=true&resourceVersion=" + rv,
                            [](const auto& seen) { return seen.back()["type"] == "DELETED"; });
  EXPECT_EQ(summary(events).front(), "ADDED a");
  EXPECT_EQ(summary(events).back(), "DELETED a");
}

// There is no process to wait for: kubelet has reported that all have ended.
TEST_P(ApiServerContract, AFinishedPodGoesAtOnce) {
  create(core("pods"), pod("a", "node-1"));
  merge_patch(core("pods", "a") + "/status", {{"status", {{"phase", "Succeeded"}}}});
  remove(core("pods", "a"));
  EXPECT_EQ(get(core("pods", "a")).status, 404);
}

// `kubectl drain` asks for this instead of a deletion.
TEST_P(ApiServerContract, EvictionDeletesThePod) {
  create(core("pods"), pod("a", "node-1"));
  const Reply evicted =
      post(core("pods", "a") + "/eviction", {{"apiVersion", "policy/v1"},
                                             {"kind", "Eviction"},
                                             {"metadata", {{"name", "a"}, {"namespace", ns_}}}});
  EXPECT_EQ(evicted.status, 201) << evicted.body;
  EXPECT_TRUE(get(core("pods", "a")).body["metadata"].contains("deletionTimestamp"));
}

// The operator leaves the deletion of a job's pods to this, down to children of children.
TEST_P(ApiServerContract, ChildrenGoWhenTheirOwnerHasGone) {
  const json owner = create(widgets(), widget("owner"));
  create(core("configmaps"), owned_by(config_map("child"), owner));
  const json child = get(core("configmaps", "child")).body;
  create(core("configmaps"), owned_by(config_map("grandchild"), child));
  remove(widgets("owner"),
         {{"kind", "DeleteOptions"}, {"apiVersion", "v1"}, {"propagationPolicy", "Background"}});
  EXPECT_TRUE(eventually([&] { return get(core("configmaps", "child")).status == 404; }));
  EXPECT_TRUE(eventually([&] { return get(core("configmaps", "grandchild")).status == 404; }));
}

// `kubectl delete --cascade=orphan`: the collector takes the reference away before the owner goes.
TEST_P(ApiServerContract, OrphansStayWithoutTheReference) {
  const json owner = create(widgets(), widget("owner"));
  create(core("configmaps"), owned_by(config_map("child"), owner));
  // The garbage collector hears of the two kinds apart. A child that it has not seen when the owner
  // goes stays as it is; one that was created after it shows that it has been seen.
  const json vanished = create(widgets(), widget("vanished"));
  remove(widgets("vanished"));
  create(core("configmaps"), owned_by(config_map("later"), vanished));
  ASSERT_TRUE(eventually([&] { return get(core("configmaps", "later")).status == 404; }));
  remove(widgets("owner"),
         {{"kind", "DeleteOptions"}, {"apiVersion", "v1"}, {"propagationPolicy", "Orphan"}});
  EXPECT_TRUE(eventually([&] {
    const Reply child = get(core("configmaps", "child"));
    return child.status == 200 && !child.body["metadata"].contains("ownerReferences");
  }));
}

// A pod that was created while its job was being deleted must not stay and hold a node forever.
TEST_P(ApiServerContract, AChildOfAVanishedOwnerGoesToo) {
  const json owner = create(widgets(), widget("owner"));
  remove(widgets("owner"));
  create(core("configmaps"), owned_by(config_map("late"), owner));
  EXPECT_TRUE(eventually([&] { return get(core("configmaps", "late")).status == 404; }));
}

// The Job of a gang of adopted pods is owned by all of them, and must stay as long as one is left.
TEST_P(ApiServerContract, AChildOfTwoOwnersStaysWithTheSecond) {
  const json first = create(widgets(), widget("first"));
  const json second = create(widgets(), widget("second"));
  json child = owned_by(config_map("child"), first);
  child["metadata"]["ownerReferences"].push_back(
      owned_by(config_map("x"), second, false)["metadata"]["ownerReferences"][0]);
  create(core("configmaps"), child);
  remove(widgets("first"),
         {{"kind", "DeleteOptions"}, {"apiVersion", "v1"}, {"propagationPolicy", "Background"}});
  EXPECT_TRUE(eventually([&] {
    const Reply left = get(core("configmaps", "child"));
    return left.status == 200 && left.body["metadata"]["ownerReferences"].size() == 1;
  }));
  EXPECT_EQ(get(core("configmaps", "child")).body["metadata"]["ownerReferences"][0]["name"],
            "second");
}

// Users delete a namespace to be rid of everything in it; a job that stayed would keep its nodes.
TEST_P(ApiServerContract, ANamespaceGoesWithAllThatItHolds) {
  create(widgets(), widget("a"));
  create(core("pods"), pod("p", "node-1"));
  const Reply deleted = remove("/api/v1/namespaces/" + ns_);
  EXPECT_EQ(deleted.status, 200);
  // The pod has a kubelet to wait for; nothing new may come meanwhile.
  const Reply refused = post(core("configmaps"), config_map("late"));
  EXPECT_EQ(refused.status, 403);
  EXPECT_NE(refused.message().find("because it is being terminated"), std::string::npos);
  EXPECT_EQ(get("/api/v1/namespaces/" + ns_).body["status"]["phase"], "Terminating");
  remove(core("pods", "p") + "?gracePeriodSeconds=0");
  EXPECT_TRUE(eventually([&] { return get("/api/v1/namespaces/" + ns_).status == 404; }));
}

}  // namespace
}  // namespace contract
