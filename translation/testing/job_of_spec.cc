#include "translation/testing/job_of_spec.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace control {

// By way of the decoder, so that a test writes the fields as a user does. The template is there
// because every Job needs one; `spec` may replace it.
kube::Job job_of_spec(const nlohmann::json& spec) {
  const nlohmann::json container{{"name", "main"}};
  nlohmann::json all{
      {"template", {{"spec", {{"containers", nlohmann::json::array({container})}}}}}};
  all.update(spec);
  const auto job = kube::decode<kube::Job>(
      {{"apiVersion", "kubegang.io/v1alpha1"},
       {"kind", "Job"},
       {"metadata", {{"name", "myload"}, {"namespace", "team-a"}, {"uid", "u-1"}}},
       {"spec", all}});
  EXPECT_TRUE(job.ok()) << (job.ok() ? "" : job.error().message);
  return job.ok() ? *job : kube::Job{};
}

}  // namespace control
