// BatchJobFixture: a World with five nodes for one job each, in which a user creates Jobs of the
// batch group with managedBy: kubegang.io/job and reads their status. Delays are short, so that a
// restart takes seconds.
#pragma once

#include <gtest/gtest.h>

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "api/job.h"
#include "base/time.h"
#include "kube/api/batch_job.h"
#include "operator/testing/world.h"

namespace control {

inline constexpr const char* kTeam = "team-a";

struct BatchJobShape {
  int parallelism = 1;
  int completions = 1;
};

// Makes an Indexed Job whose pods work for `work` ("20s"). `more` is merged into its spec;
// `annotations` are those of its pods.
nlohmann::json make_batch_job(const std::string& name, const BatchJobShape& shape,
                              const std::string& work, const nlohmann::json& more,
                              const nlohmann::json& annotations);

class BatchJobFixture : public ::testing::Test {
 protected:
  BatchJobFixture();

  // For a World of the test's own.
  static void furnish(World& world);
  static void create(World& world, const nlohmann::json& object);
  static kube::BatchJob get(World& world, const std::string& name);

  void create(const nlohmann::json& object) { create(world_, object); }
  kube::BatchJob get(const std::string& name) { return get(world_, name); }
  // Returns "True: Reason: message"; "" if the Job does not have it.
  std::string condition(const std::string& name, std::string_view type);
  // Lets time pass until the Job is finished; false if that takes longer than `limit`.
  bool ends(const std::string& name, base::Duration limit = std::chrono::minutes{5});
  std::vector<kube::Job> ours();  // Jobs of our kind, in all namespaces

  World world_;
};

}  // namespace control
