// The part of a template that is kept once the informer has dropped it.
#include "operator/jobs/template_book.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace control {
namespace {

// Returns a template that differs by its image alone.
kube::RawJson template_of(const std::string& image) {
  const nlohmann::json container{{"name", "main"}, {"image", image}};
  return kube::RawJson{nlohmann::json{{"spec", {{"containers", {container}}}}}};
}

// Only the judged facts are kept, a few hundred bytes of each template.
TEST(TemplateBook, KnowsATemplateUntilItIsForgotten) {
  TemplateBook book;
  EXPECT_EQ(book.find("uid"), nullptr);
  book.learn("uid", template_of("one"));
  ASSERT_NE(book.find("uid"), nullptr);
  EXPECT_EQ(*book.find("uid"), check_template(template_of("one")));
  EXPECT_EQ(book.find("other"), nullptr);
  book.forget("uid");
  EXPECT_EQ(book.find("uid"), nullptr);
}

// Each watch event brings the template again, and the loop compares pointers to notice a change.
TEST(TemplateBook, TheSameTemplateAgainChangesNothing) {
  TemplateBook book;
  book.learn("uid", template_of("one"));
  const auto first = book.find("uid");
  book.learn("uid", template_of("one"));
  EXPECT_EQ(book.find("uid"), first);
}

// The pods of a start are made from one template; a changed one is a problem of the job.
TEST(TemplateBook, AChangedTemplateIsAProblemAndTheFirstOneCounts) {
  TemplateBook book;
  book.learn("uid", template_of("one"));
  const auto first = book.find("uid");
  book.learn("uid", template_of("two"));
  const auto changed = book.find("uid");
  EXPECT_NE(changed, first) << "so that the job is judged again";
  EXPECT_THAT(changed->problems,
              testing::ElementsAre("spec.template: cannot change; create another job"));
  EXPECT_EQ(changed->text_hash, first->text_hash);
  book.learn("uid", template_of("one"));
  EXPECT_EQ(book.find("uid"), changed) << "to change it back does not mend it";
}

// Returns a batch Job of which only UID and template count.
kube::BatchJob batch_job(const std::string& uid, const std::string& image) {
  kube::BatchJob job;
  job.metadata.uid = uid;
  job.spec.pod_template = template_of(image);
  return job;
}

// A template is kept for a single reader, and goes when it was read or its Job is gone: templates
// are the largest part of a Job.
TEST(WholeTemplates, AreKeptUntilTheyAreTaken) {
  WholeTemplates templates;
  templates.see(batch_job("a", "one"));
  templates.see(batch_job("a", "two"));
  templates.see(batch_job("b", "one"));
  EXPECT_EQ(templates.take("a"), template_of("two")) << "the newest";
  EXPECT_TRUE(templates.take("a").empty());
  templates.forget("b");
  EXPECT_TRUE(templates.take("b").empty());
}

// A suspended Job may get another template, and one that waits or runs has its kubegang Job.
TEST(WholeTemplates, AreOfNewJobsOnly) {
  const auto is_kept_after = [](const auto& change) {
    WholeTemplates templates;
    kube::BatchJob job = batch_job("a", "one");
    templates.see(job);
    change(job);
    templates.see(job);
    return !templates.take("a").empty();
  };
  const auto with = [&](std::string_view type) {
    return is_kept_after([&](kube::BatchJob& job) {
      job.status.conditions = {{.type = std::string{type}, .status = kube::ConditionStatus::kTrue}};
    });
  };
  EXPECT_TRUE(is_kept_after([](kube::BatchJob&) {}));
  EXPECT_FALSE(is_kept_after([](kube::BatchJob& job) { job.spec.suspend = true; }));
  EXPECT_FALSE(is_kept_after([](kube::BatchJob& job) { job.status.start_time.emplace(); }));
  EXPECT_FALSE(with(kube::kBatchComplete));
  EXPECT_FALSE(with(kube::kBatchWaiting));
}

// Four large ones are just too many with what else there is, so the oldest goes; it is read again
// when it is needed. A single template above the bound would push out all others and is never kept.
TEST(WholeTemplates, HaveABoundTogetherAndTheOldestGo) {
  WholeTemplates templates;
  const std::string large(WholeTemplates::kBytesMax / 4, 'x');
  for (const char* uid : {"a", "b", "c", "d"}) templates.see(batch_job(uid, large));
  EXPECT_TRUE(templates.take("a").empty());
  EXPECT_FALSE(templates.take("b").empty());
  templates.see(batch_job("e", large));
  EXPECT_FALSE(templates.take("c").empty()) << "there is room again";
  templates.see(batch_job("f", large + large + large + large));
  EXPECT_TRUE(templates.take("f").empty()) << "larger than all may be";
}

}  // namespace
}  // namespace control
