#include "operator/write/writer.h"

namespace control {
namespace {

// The counter of the metrics that an effect raises; null for those that are not counted. The
// template at the end takes every other effect, since most are rare and need no metric.
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

// Counted when submitted, not when it succeeds: the metric shows what the loop asks of the API
// server.
std::int64_t LoopCounters::*CountedWriter::counter_of(const Effect& effect) {
  return std::visit(CounterOf{}, effect);
}

}  // namespace control
