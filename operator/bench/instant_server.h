// An API server that answers each write at once, without JSON, and whose watches tell at once: what
// remains is the cost of the control loop itself. Its pods run as soon as they are made.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "kube/clock.h"
#include "operator/loop/inbox.h"
#include "operator/write/writer.h"

namespace control {

// Threads: one, the benchmark's.
class InstantServer final : public Writer {
 public:
  InstantServer(Inbox& inbox, const kube::Clock& clock) : inbox_{inbox}, clock_{clock} {}

  void submit(Effect effect) override;
  int at_once() const override { return 16; }

  // Makes a write of a user or a kubelet. The object gets a UID and a version.
  template <typename T>
  void put(T object);
  template <typename T>
  void remove(const kube::ObjectKey& key);
  // Lists as the first lists of a new leader's informers.
  void list();
  // Keeps nothing of what it has stored. Nothing may be asked of it afterwards.
  void drop() { objects_ = {}; }
  // As it is stored.
  const kube::Job& job(const kube::ObjectKey& key) const { return *of<kube::Job>().at(key); }

  // Returns true if the Inbox got anything since the last call.
  bool take_arrived() { return std::exchange(arrived_, false); }
  // Takes how many writes there were since the last call.
  std::map<std::string, int> take_counts() { return std::exchange(counts_, {}); }

 private:
  template <typename T>
  using Objects = std::map<kube::ObjectKey, std::shared_ptr<const T>>;
  template <typename T>
  Objects<T>& of() {
    return std::get<Objects<T>>(objects_);
  }
  template <typename T>
  const Objects<T>& of() const {
    return std::get<Objects<T>>(objects_);
  }
  template <typename T>
  T store(T object);

  template <typename T>
  Outcome carry_out(const PatchStatus<T>& effect);
  Outcome carry_out(const PutTimetable& effect);
  Outcome carry_out(const DeleteTimetable& effect);
  Outcome carry_out(const PutUsage& effect);
  Outcome carry_out(const ReadTemplate& effect);
  Outcome carry_out(const CreatePod& effect);
  Outcome carry_out(const DeletePod& effect);
  Outcome carry_out(const ReadPod& effect);
  Outcome carry_out(const PinPod& effect);
  Outcome carry_out(const StopPod& effect);
  Outcome carry_out(const CreateService& effect);
  Outcome carry_out(const CreateStepSecret& effect);
  Outcome carry_out(const DeleteStepObjects& effect);
  Outcome carry_out(const TryPod& effect);
  Outcome carry_out(const ReserveIds& effect);
  Outcome carry_out(const SetTaints& effect);
  Outcome carry_out(const NotePod& effect);
  Outcome carry_out(const CreateJob& effect);
  Outcome carry_out(const DeleteJob& effect);
  Outcome carry_out(const ReadRecorded& effect);
  Outcome carry_out(const MakeForecast& effect);
  Outcome carry_out(const DeleteOrphan& effect);

  Inbox& inbox_;
  const kube::Clock& clock_;
  std::int64_t version_ = 0;
  WatchedKinds::Tuple<Objects> objects_;
  std::map<std::string, int> counts_;
  bool arrived_ = false;
};

}  // namespace control
