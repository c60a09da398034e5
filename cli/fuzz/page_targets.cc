#include "base/check.h"
#include "cli/cluster/page_control.h"
#include "cli/cluster/page_records.h"
#include "cli/cluster/page_whatif.h"
#include "cli/fuzz/targets.h"
#include "cli/kube_name.h"

namespace cli {

// Each path reads the body in its own way.
void fuzz_page_body(std::string_view input) {
  if (const auto wish = read_page_wish(input)) {
    CHECK(!wish->job.name.empty() && !wish->job.uid.empty(), "a wish about no job");
  }
  if (const auto question = read_page_question(input, {})) {
    CHECK(!question->metadata.ns.empty(), "a question of no namespace");
  }
  if (const auto question = read_page_records_question(input)) {
    CHECK(question->query.window.from < question->query.window.until, "an empty time");
    CHECK(question->ns == kube_namespace(question->ns), "a namespace that leads elsewhere");
    CHECK(question->query.jobs.size() <= 100, "too many jobs");
  }
}

}  // namespace cli
