#include "operator/testing/batch_job_fixture.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "kube/api/meta.h"

namespace control {

using nlohmann::json;

// `work`: how long the program of its pods runs ("" = forever). `more` is merged into the spec.
json make_batch_job(const std::string& name, const BatchJobShape& shape, const std::string& work,
                    const json& more, const json& annotations) {
  json notes = annotations.is_object() ? annotations : json::object();
  if (!work.empty()) notes["test/work"] = work;
  json object{{"apiVersion", "batch/v1"},
              {"kind", "Job"},
              {"metadata", {{"name", name}, {"namespace", kTeam}}},
              {"spec",
               {{"managedBy", "kubegang.io/job"},
                {"completionMode", "Indexed"},
                {"parallelism", shape.parallelism},
                {"completions", shape.completions},
                {"template",
                 {{"metadata", {{"annotations", notes}}},
                  {"spec",
                   {{"restartPolicy", "Never"},
                    {"containers", json::array({{{"name", "main"}, {"image", "busybox"}}})}}}}}}}};
  if (more.is_object()) object["spec"].merge_patch(more);
  return object;
}

// A World with the default options: five nodes, no crashes.
BatchJobFixture::BatchJobFixture() : world_{{}} {
  furnish(world_);
}

// Short times, so that requeues and ends take seconds, and a partition in which no jobs share
// nodes: attempts follow each other and do not take turns.
void BatchJobFixture::furnish(World& world) {
  json config = linear_config("4s");
  config["spec"]["requeue"] = {{"delay", "2s"}, {"maxBatch", 100}};
  config["spec"]["killWait"] = "2s";
  world.apply(config);
  world.apply(partition("batch", force("n[12-16]", {{"overSubscribe", {{"policy", "Never"}}}})));
}

// As `kubectl create`: not merged into what is there.
void BatchJobFixture::create(World& world, const json& object) {
  const auto made = world.client().create_json<kube::BatchJob>(kTeam, object);
  ASSERT_TRUE(made.ok()) << made.error().message;
}

// Fails the test if it is gone.
kube::BatchJob BatchJobFixture::get(World& world, const std::string& name) {
  const auto job = world.client().get<kube::BatchJob>({kTeam, name});
  EXPECT_TRUE(job.ok()) << job.error().message;
  return job.ok() ? *job : kube::BatchJob{};
}

// Returns "True: Reason: message"; "" if there is no such condition.
std::string BatchJobFixture::condition(const std::string& name, std::string_view type) {
  const kube::BatchJob job = get(name);
  const kube::Condition* found = kube::find_condition(job.status.conditions, type);
  if (found == nullptr) return "";
  return std::string{kube::to_string(found->status)} + ": " + found->reason + ": " +
         found->message;
}

// Complete or Failed.
bool BatchJobFixture::ends(const std::string& name, base::Duration limit) {
  return world_.run_until([&] { return kube::is_finished(get(name).status); }, limit);
}

// Returns all kubegang Jobs, whichever batch Job they are for.
std::vector<kube::Job> BatchJobFixture::ours() {
  auto list = world_.client().list<kube::Job>();
  return list.ok() ? std::move(list->items) : std::vector<kube::Job>{};
}

}  // namespace control
