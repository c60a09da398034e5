// Members: of a job with spec.completions, which pod each place of its gang has, which pods have
// succeeded, and which comes next. When a pod has succeeded the next one takes its place: same
// node, same CPUs, same memory. Pure: it follows from the job's status, so a new leader goes on
// with the same pods.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/job.h"
#include "translation/pod_slots.h"

namespace control {

inline constexpr int kCompletionsMax = 100'000;

// Parses a list of indexes of pods ("0,2-3"); empty if it is malformed.
std::vector<int> parse_indexes(std::string_view text);

// Returns which pods of a Job with spec.completions are done: status.succeededIndexes, which has
// those of earlier Jobs, too; before its first start spec.completedIndexes. Empty of other Jobs.
std::string done_indexes(const kube::JobSpec& spec, const kube::JobStatus& status);

// Indexes below spec.completions are given to places from the lowest one on, each once in a start.
// Cost: O(completions) to make one, and for the texts; else the logarithm of the number of places.
class Members {
 public:
  // status.succeededIndexes and status.memberIndexes. Without the latter a start begins: each place
  // gets the lowest index that is left. The former may name indexes that do not exist.
  struct Stored {
    std::string_view succeeded;
    std::string_view members;
  };
  Members(int completions, const Stored& stored, int places);

  // Returns the index of the pod at each place. Places for which no index was left are missing.
  const std::vector<int>& at_places() const { return members_; }
  std::optional<int> place_of(int index) const;
  bool has_succeeded(int index) const;
  bool all_have_succeeded() const { return succeeded_count_ == completions_; }
  std::vector<int> succeeded() const;

  // Returns false if that was known. REQUIRES: `index` is at a place.
  bool note_success(int index);
  // Gives the places whose pods have succeeded to the next ones, as far as a place takes one;
  // returns those that have got one.
  std::vector<int> fill(const std::function<bool(int place)>& takes_pod = [](int) { return true; });

  std::string succeeded_text() const;  // "0,2-3"
  std::string members_text() const;    // "4,7-8", in the order of the places

 private:
  std::optional<int> take_next();

  int completions_;
  std::vector<bool> succeeded_;  // by index
  int succeeded_count_ = 0;
  std::vector<int> members_;     // by place
  std::map<int, int> place_of_;  // by index
  int next_ = 0;                 // each index below it has had a place, or had succeeded before
};

// Names the slots of a start after the pods at its places. Those without one get no name.
void name_slots(const JobIdentity& job, const Members& members, std::vector<PodSlot>& slots);

}  // namespace control
