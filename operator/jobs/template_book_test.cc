// The part of a template that is kept once the informer has dropped it.
#include "operator/jobs/template_book.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace control {
namespace {

// A template that differs by its image alone.
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

}  // namespace
}  // namespace control
