// The operator's Prometheus metrics, all named kubegang_operator_*.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "operator/loop/control_loop.h"

namespace control {

class Metrics {
 public:
  Metrics();
  ~Metrics();

  // Called by the loop's thread after a step that took `took`.
  void update(const LoopCounters& counters, const JobTotals& totals, std::int64_t term,
              base::Duration took);
  // Returns Prometheus' text format. May be called by any thread.
  std::string render() const;

 private:
  void show_totals(const JobTotals& totals);
  void show_licenses(const std::map<std::string, LicenseUse>& licenses);

  struct Families;
  std::unique_ptr<Families> families_;
};

}  // namespace control
