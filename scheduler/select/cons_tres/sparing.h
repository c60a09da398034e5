// SparingQuestion: would a job start if only these lower-tier jobs were stacked upon, and all
// others were left alone? For cheapest_victims; works on an offer of its own, changed node by node.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "scheduler/model/cluster.h"
#include "scheduler/select/cheapest.h"
#include "scheduler/select/cons_tres/choose.h"
#include "scheduler/select/selector.h"

namespace sched::cons_tres {

class SparingQuestion final : public VictimQuestion {
 public:
  using OfferAt = std::function<int(int rank)>;
  using Choose = std::function<std::vector<Chosen>(const Offer&)>;
  // `left_alone` (by rank) is kept up to date; `offer_at` is asked for `nodes` and may look at it.
  // All jobs are left alone at first.
  SparingQuestion(const Cluster& cluster, const std::vector<const SelectJob*>& jobs,
                  const NodeSet& nodes, std::vector<CoreSet>& left_alone, OfferAt offer_at,
                  Choose choose);

  void take(std::size_t victim) override { change(victim, true); }
  void spare(std::size_t victim) override { change(victim, false); }
  bool fits() override { return !chosen().empty(); }
  std::vector<Chosen> chosen();

 private:
  void change(std::size_t victim, bool taken);
  void refresh();

  const NodeSet nodes_;
  std::vector<CoreSet>& left_alone_;
  const OfferAt offer_at_;
  const Choose choose_;
  std::vector<std::vector<int>> ranks_;                                // by job
  std::vector<std::vector<std::pair<std::size_t, CoreSet>>> holders_;  // by rank: job, its cores
  std::vector<bool> taken_;
  NodeSet changed_;
  Offer offer_;
};

}  // namespace sched::cons_tres
