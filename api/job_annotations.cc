#include "api/job_annotations.h"

#include "api/annotations.h"

namespace kube {

std::optional<std::string> annotation_of(const Job& job, std::string_view name) {
  const auto found = job.metadata.annotations.find(std::string{name});
  if (found == job.metadata.annotations.end()) return std::nullopt;
  return found->second;
}

std::string shown_name(const Job& job) {
  const bool has_own = job.spec.batch && !job.spec.batch->name.empty();
  return annotation_of(job, kAnnotationName)
      .value_or(has_own ? job.spec.batch->name : job.metadata.name);
}

std::string shown_comment(const Job& job) {
  return annotation_of(job, kAnnotationComment)
      .value_or(job.spec.batch ? job.spec.batch->comment : "");
}

}  // namespace kube
