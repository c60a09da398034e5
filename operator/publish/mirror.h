// Mirror: one part of one object (its status, its spec) that the operator keeps in the API server:
// what should be stored, what is stored as far as it is known, and the one write that may be under
// way between the two. The protocol is the same for all kinds:
//
//   1. A part of the operator changes `wanted`, which marks how urgent that is.
//   2. begin() when may_write: what is wanted then is what is written; a later change is marked
//      again, and its turn comes when this write has been answered.
//   3. answered(): stored, or a conflict (another writer was faster: what it stored is known now,
//      and the next try need not wait), or gone, or a failure (the next try waits). Only the first
//      ends it; after all others but "gone" the difference is marked as urgent as it was. A write
//      that meets no object says "gone" only if a read says so, too: a watch still shows it.
//   4. saw(): a watch shows a newer version. While a write is under way its answer will tell more.
//   5. saw_gone(): a watch shows that the object was deleted. If that comes before the answer to a
//      write that was done, the watch is the newer one: the write met an object that existed, so
//      the deletion followed it. (A deletion that was older than a creation has been seen before
//      it.)
//
// An answer that was lost is a failure like any other: the next try, under the old version, ends in
// a conflict that shows what the lost one has stored.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include "base/result.h"
#include "base/time.h"
#include "kube/api/meta.h"
#include "operator/publish/attempts.h"

namespace control {

// How urgent an unwritten difference is; the higher one wins.
enum class WriteUrgency {
  kClean,
  kInforms,  // shares the budget of writes that only inform (architecture.md 3)
  kUrgent,   // a base state: written at once, nothing waits for it
  kCommit,   // a commit point: timetables and pods wait for it
};

// The treatment of an object that does not exist.
enum class IfGone {
  kLeave,   // a user's object: there is nothing left to write
  kCreate,  // our own: it is made again
};

// How a write ended.
enum class WriteEnd { kStored, kLostRace, kGone, kFailed };

// Returns true if version a is newer than b. Kubernetes promises only that they differ; API servers
// count up. Where that does not hold, any other version counts as newer and a conflict will tell.
bool is_newer_version(const std::string& a, const std::string& b);

template <kube::ApiObject T, auto kPart, IfGone kIfGone>
class Mirror {
 public:
  using Value = std::remove_cvref_t<decltype(std::declval<const T&>().*kPart)>;

  // A mirror of an object that does not exist as far as is known.
  Mirror() = default;
  // Wanted is what is stored.
  explicit Mirror(const T& object) {
    take(object);
    wanted_.reset();
  }

  // --- what should be stored ---
  const Value& wanted() const { return wanted_ ? *wanted_ : *stored_; }
  // Marks it, and returns it to be changed. A reference is valid until settle(). Cost: a copy,
  // after settle().
  Value& change(WriteUrgency how) {
    mark(how);
    return wanted_unmarked();
  }
  // Does the same for a change that need not be written for itself: the next write brings it. Or
  // the caller compares what is wanted with what is stored, and marks then.
  Value& wanted_unmarked() {
    keep_wanted();
    return *wanted_;
  }
  // Keeps what is wanted as what is stored, if that is the same: most objects are as they should
  // be most of the time.
  void settle() {
    if (wanted_ && *wanted_ == *stored_) wanted_.reset();
  }
  void mark(WriteUrgency how) { urgency_ = std::max(urgency_, how); }
  // For a value of which each difference is a commit point: whether there is one.
  void set_differs(bool differs) {
    urgency_ = differs ? WriteUrgency::kCommit : WriteUrgency::kClean;
  }
  // Takes the mark back: the difference need not be written.
  void unmark() { urgency_ = WriteUrgency::kClean; }
  WriteUrgency urgency() const { return urgency_; }

  // --- what is stored ---
  const kube::ObjectKey& key() const { return key_; }
  const std::string& uid() const { return uid_; }
  const std::string& version() const { return version_; }
  const Value& stored() const { return *stored_; }
  // The same, and stays as it is when something else is stored.
  const std::shared_ptr<const Value>& shared_stored() const { return stored_; }
  bool exists() const { return exists_; }
  // Returns true if `object` (of a watch) is newer than the known one; only then saw() takes it.
  bool is_news(const T& object) const {
    if (is_in_flight()) return false;
    return uid_ != object.metadata.uid ||
           is_newer_version(object.metadata.resource_version, version_);
  }
  // Returns true if another writer has changed what is stored.
  bool saw(const T& object) {
    if (!is_news(object)) return false;
    const bool changed = !exists_ || !(*stored_ == object.*kPart);
    take(object);
    return changed;
  }
  // Keeps no copy beside this object, which is kept anyway, if it says what is stored.
  void share(const std::shared_ptr<const T>& object) {
    const Value* const same = &((*object).*kPart);
    const bool is_newest =
        object->metadata.uid == uid_ && object->metadata.resource_version == version_;
    if (is_newest && *stored_ == *same) stored_ = std::shared_ptr<const Value>{object, same};
  }
  void saw_gone() {
    exists_ = false;
    gone_in_flight_ = is_in_flight();
  }
  // Exactly this is stored, whatever its encoding rounds.
  void know_stored(Value value) {
    keep_wanted();
    stored_ = std::make_shared<const Value>(std::move(value));
  }

  // --- the write ---
  bool is_in_flight() const { return attempts_.is_under_way(); }
  bool may_write(base::Instant now) const { return attempts_.may_begin(now) && has_target(); }
  // Returns when it may be written; kNever while a write is under way, or if there is no object to
  // write to: a watch will show that, too.
  base::Instant due() const { return has_target() ? attempts_.due() : base::kNever; }
  // Returns when it was last written only to inform.
  base::Instant informed_at() const { return informed_at_; }
  // Counts the write that begins now as one that informs, whatever else it says.
  void informs(base::Instant now) { informed_at_ = now; }
  // True if a commit point has not reached the API server yet.
  bool is_uncommitted() const {
    return has_target() &&
           (urgency_ == WriteUrgency::kCommit || in_flight_ == WriteUrgency::kCommit);
  }

  // REQUIRES: may_write(now).
  void begin(base::Instant now) {
    if (urgency_ == WriteUrgency::kInforms) informed_at_ = now;
    in_flight_ = std::exchange(urgency_, WriteUrgency::kClean);
    gone_in_flight_ = false;
    attempts_.begin();
  }
  // `fresh`: what was read after a failure, or an error.
  WriteEnd answered(const base::Result<T>& result, const base::Result<T>& fresh,
                    base::Instant now) {
    const WriteUrgency flown = std::exchange(in_flight_, WriteUrgency::kClean);
    const T* newest = result.ok() ? &*result : fresh.ok() ? &*fresh : nullptr;
    const auto says = [](const base::Result<T>& answer, base::Code code) {
      return !answer.ok() && answer.error().code == code;
    };
    if (newest != nullptr && (kIfGone == IfGone::kCreate || newest->metadata.uid == uid_)) {
      take(*newest);
    } else if (newest != nullptr || says(fresh, base::Code::kNotFound)) {
      exists_ = false;  // another object may bear its name by now
    }
    if (result.ok()) {
      if (std::exchange(gone_in_flight_, false)) {
        exists_ = false;
        version_.clear();  // whatever the watch shows next is news
      }
      attempts_.succeeded();
      return WriteEnd::kStored;
    }
    mark(flown);
    if (!has_target()) {
      attempts_.lost_race();
      return WriteEnd::kGone;
    }
    // A write that met no object, although there is one, waits: nothing says that the next one will
    // meet it.
    const bool raced = says(result, base::Code::kConflict) ||
                       says(result, base::Code::kAlreadyExists) ||
                       (says(result, base::Code::kNotFound) && !exists_);
    if (raced && (newest != nullptr || !exists_)) {
      attempts_.lost_race();
      return WriteEnd::kLostRace;
    }
    attempts_.failed(now);
    return WriteEnd::kFailed;
  }

  // Returns the object with that part, as a write needs it.
  T object_with(const Value& value) const {
    T object;
    object.metadata.name = key_.name;
    object.metadata.ns = key_.ns;
    object.metadata.uid = uid_;
    object.metadata.resource_version = version_;
    object.*kPart = value;
    return object;
  }

 private:
  // Returns whether a write can meet its object, or makes it.
  bool has_target() const { return exists_ || kIfGone == IfGone::kCreate; }
  static std::shared_ptr<const Value> nothing() {
    static const auto kNothing = std::make_shared<const Value>();
    return kNothing;
  }
  void keep_wanted() {
    if (!wanted_) wanted_ = std::make_unique<Value>(*stored_);
  }
  void take(const T& object) {
    keep_wanted();
    key_ = kube::key_of(object.metadata);
    uid_ = object.metadata.uid;
    version_ = object.metadata.resource_version;
    stored_ = std::make_shared<const Value>(object.*kPart);
    exists_ = true;
  }

  kube::ObjectKey key_;
  std::string uid_, version_;
  bool exists_ = false;
  std::shared_ptr<const Value> stored_ = nothing();  // never null
  std::unique_ptr<Value> wanted_;                    // null: as it is stored
  WriteUrgency urgency_ = WriteUrgency::kClean;
  WriteUrgency in_flight_ = WriteUrgency::kClean;  // of the write under way
  bool gone_in_flight_ = false;                    // a watch showed the deletion during the write
  Attempts attempts_;
  base::Instant informed_at_{};
};

template <kube::ApiObject T>
using StatusMirror = Mirror<T, &T::status, IfGone::kLeave>;

}  // namespace control
