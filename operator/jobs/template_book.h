// The facts of each Job's template after the informer dropped it, and for a moment the whole ones
// of new batch Jobs. For Jobs, the informer's thread alone writes: it learns a template before the
// job itself reaches the loop, and forgets it when the job has ended or is gone, whether the loop
// has seen the job or not. The loop reads, and each record keeps what it has read.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "operator/jobs/whole_templates.h"
#include "translation/template_check.h"

namespace control {

// Thread-safe.
class TemplateBook {
 public:
  // A template may not change: the first one of a UID counts, a later one is its problem.
  void learn(const std::string& uid, const kube::RawJson& pod_template) {
    if (const auto known = find(uid)) {
      if (std::hash<std::string>{}(pod_template.text()) == known->text_hash) return;
      auto changed = std::make_shared<TemplateFacts>(*known);
      changed->problems = {"spec.template: cannot change; create another job"};
      const std::lock_guard lock{mu_};
      facts_[uid] = std::move(changed);
      return;
    }
    auto facts = std::make_shared<const TemplateFacts>(check_template(pod_template));
    const std::lock_guard lock{mu_};
    facts_.try_emplace(uid, std::move(facts));
  }
  // Null: nothing was learnt, or the job has ended or is gone.
  std::shared_ptr<const TemplateFacts> find(const std::string& uid) const {
    const std::lock_guard lock{mu_};
    const auto found = facts_.find(uid);
    return found == facts_.end() ? nullptr : found->second;
  }
  void forget(const std::string& uid) {
    const std::lock_guard lock{mu_};
    facts_.erase(uid);
  }

  WholeTemplates& of_batch_jobs() { return of_batch_jobs_; }

 private:
  WholeTemplates of_batch_jobs_;
  mutable std::mutex mu_;
  std::map<std::string, std::shared_ptr<const TemplateFacts>> facts_;  // by UID; guarded by mu_
};

}  // namespace control
