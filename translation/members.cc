#include "translation/members.h"

#include <algorithm>

#include "base/number_list.h"

namespace control {

// Empty if the text is not a list: it comes from a status, which another version may have written.
std::vector<int> parse_indexes(std::string_view text) {
  return base::parse_number_list(text, kCompletionsMax - 1).value_or(std::vector<int>{});
}

// Returns the indexes that have succeeded: as stored of this Job, else those with which its spec
// lets it begin. "" for a job without completions.
std::string done_indexes(const kube::JobSpec& spec, const kube::JobStatus& status) {
  if (!spec.completions) return "";
  return status.succeeded_indexes.empty() ? spec.completed_indexes : status.succeeded_indexes;
}

Members::Members(int completions, const Stored& stored, int places)
    : completions_{std::clamp(completions, 0, kCompletionsMax)},
      succeeded_(static_cast<std::size_t>(completions_)) {
  // 1. the indexes that have succeeded, as stored
  // 2. the members that were stored, in the order of their places, so that a new leader finds the
  //    same pod at each place
  // 3. without stored members, the lowest indexes that have not succeeded
  for (const int index : parse_indexes(stored.succeeded)) {
    if (index >= completions_ || has_succeeded(index)) continue;
    succeeded_[static_cast<std::size_t>(index)] = true;
    ++succeeded_count_;
  }
  for (const int index : parse_indexes(stored.members)) {
    // members_text() writes the indexes in the order of the places, so the position is the place.
    const int place = static_cast<int>(members_.size());
    if (index >= completions_ || place >= places || !place_of_.try_emplace(index, place).second) {
      break;  // not what members_text() writes
    }
    members_.push_back(index);
    next_ = std::max(next_, index + 1);
  }
  if (!members_.empty()) return;
  while (static_cast<int>(members_.size()) < places) {
    const auto index = take_next();
    if (!index) break;
    place_of_[*index] = static_cast<int>(members_.size());
    members_.push_back(*index);
  }
}

// Returns the next index that was never given to a place; nullopt if none is left. Indexes are
// given in ascending order, as the batch group's controller gives them.
std::optional<int> Members::take_next() {
  while (next_ < completions_ && has_succeeded(next_)) ++next_;
  if (next_ >= completions_) return std::nullopt;
  return next_++;
}

// nullopt if no place has that index now.
std::optional<int> Members::place_of(int index) const {
  const auto found = place_of_.find(index);
  return found == place_of_.end() ? std::nullopt : std::optional{found->second};
}

bool Members::has_succeeded(int index) const {
  return index >= 0 && index < completions_ && succeeded_[static_cast<std::size_t>(index)];
}

// Returns false if it was known already.
bool Members::note_success(int index) {
  if (has_succeeded(index)) return false;
  succeeded_[static_cast<std::size_t>(index)] = true;
  ++succeeded_count_;
  return true;
}

// Returns the places that have a new member: those whose member has succeeded, as long as indexes
// are left.
std::vector<int> Members::fill(const std::function<bool(int place)>& takes_pod) {
  std::vector<int> filled;
  for (int place = 0; place < static_cast<int>(members_.size()); ++place) {
    int& member = members_[static_cast<std::size_t>(place)];
    if (!has_succeeded(member) || !takes_pod(place)) continue;
    const auto next = take_next();
    // The members of the places that are left stay, although they are done.
    if (!next) break;
    place_of_.erase(member);
    place_of_[*next] = place;
    member = *next;
    filled.push_back(place);
  }
  return filled;
}

// Returns the indexes in ascending order.
std::vector<int> Members::succeeded() const {
  std::vector<int> indexes;
  indexes.reserve(static_cast<std::size_t>(succeeded_count_));
  for (int index = 0; index < completions_; ++index) {
    if (has_succeeded(index)) indexes.push_back(index);
  }
  return indexes;
}

std::string Members::succeeded_text() const {
  return base::format_number_list(succeeded());
}

std::string Members::members_text() const {
  return base::format_number_list(members_);
}

// A slot beyond the members has no pod and so no name.
void name_slots(const JobIdentity& job, const Members& members, std::vector<PodSlot>& slots) {
  const std::vector<int>& at_places = members.at_places();
  for (std::size_t place = 0; place < slots.size(); ++place) {
    PodSlot& slot = slots[place];
    slot.pod_index = place < at_places.size() ? at_places[place] : 0;
    slot.name = place < at_places.size() ? pod_name(job, slot.pod_index) : std::string{};
  }
}

}  // namespace control
