#include "operator/loop/parts.h"

namespace control {

LoopParts::LoopParts(LoopBasis& basis, TemplateBook& templates)
    : nodes_{agents_, basis.report_},
      jobs_{basis.now_, templates, pods_},
      scheduler_{basis.clock_, basis.now_, basis.counters_,
                 [this](const sched::Decision& decision) { decisions_.apply(decision); }},
      gate_{{.is_stored =
                 [this](const std::string& uid) {
                   const JobRecord* job = jobs_.peek(uid);
                   return job == nullptr || !job->status.is_uncommitted();
                 },
             .is_published =
                 [this](const std::string& node) { return timetables_.is_published(node); }}},
      timetables_{nodes_, gate_, basis.report_},
      parts_{basis.now_, jobs_, nodes_, policy_, basis.report_, basis.ends_by_time_},
      wishes_{parts_, scheduler_, numbers_, trials_, statuses_},
      pod_writes_{parts_, pods_, gate_, basis.writer_, basis.counters_},
      gangs_{parts_, scheduler_, timetables_, pod_writes_},
      decisions_{parts_,  scheduler_, timetables_,     statuses_,
                 wishes_, gangs_,     basis.counters_, basis.totals_},
      managed_{basis.report_, templates.of_batch_jobs()},
      gated_{basis.report_} {}

}  // namespace control
