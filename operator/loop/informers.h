// The operator's view of the API server: one informer per kind, each dropping what the operator
// does not need, each reporting into the Inbox.
#pragma once

#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "kube/informer.h"
#include "operator/jobs/template_book.h"
#include "operator/loop/inbox.h"
#include "operator/loop/kinds.h"

namespace control {

class Informers {
 public:
  // `on_error`: kind, and what went wrong; it is tried again. From any of the informers' threads.
  using OnError = std::function<void(std::string_view kind, const base::Error& error)>;

  // The kinds that are adopted. Others are not watched, so that no right to read them is needed.
  struct Adopts {
    bool batch_jobs = true;
    bool pod_groups = false;
  };

  // All references must live longer than this.
  Informers(const kube::Client& client, const kube::Clock& clock, Inbox& inbox,
            TemplateBook& templates, OnError on_error, Adopts adopts);

  // Returns true if all first lists of what is watched are complete.
  bool have_synced() const;
  // Returns the kinds whose first lists are not, as "Account, Job".
  std::string missing() const;
  // Reads all lists again; have_synced() is false until then: a watch may be behind what another
  // leader has written. No step may be under way.
  void list_again();

  // One step per informer, each for a thread of its own (Informer::step), by name.
  struct NamedStep {
    std::string name;
    std::function<base::Duration(std::stop_token)> step;
  };
  std::vector<NamedStep> steps();

 private:
  template <typename T>
  using Pointer = std::unique_ptr<kube::Informer<T>>;
  WatchedKinds::Tuple<Pointer> informers_;
};

}  // namespace control
