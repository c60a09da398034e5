#include "operator/write/writer.h"

namespace control {
namespace {

struct CounterOf {
  using Counter = std::int64_t LoopCounters::*;

  template <typename T>
  Counter operator()(const PatchStatus<T>&) const {
    return &LoopCounters::status_writes;
  }
  Counter operator()(const PutTimetable&) const { return &LoopCounters::timetable_writes; }
  Counter operator()(const CreatePod&) const { return &LoopCounters::pod_creates; }
  Counter operator()(const DeletePod&) const { return &LoopCounters::pod_deletes; }
  template <typename T>
  Counter operator()(const T&) const {
    return nullptr;
  }
};

}  // namespace

std::int64_t LoopCounters::*CountedWriter::counter_of(const Effect& effect) {
  return std::visit(CounterOf{}, effect);
}

}  // namespace control
