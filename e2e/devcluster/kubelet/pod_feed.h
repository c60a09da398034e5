// What an API server says about its pods, as a stream of changes: list, then watch, and list again
// after every break, so that no pod and no deletion is missed. The whole Pod objects, all nodes.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <set>
#include <stop_token>
#include <string>

#include "base/result.h"
#include "kube/transport.h"

namespace devcluster {

class PodFeed {
 public:
  // Called on the thread that runs follow().
  struct Handlers {
    std::function<void(const nlohmann::json& pod)> seen;  // new or changed, or merely listed again
    std::function<void(const std::string& uid)> gone;
    std::function<void(const std::set<std::string>& uids)> listed;  // these and no others exist
  };

  PodFeed(kube::Transport& transport, Handlers handlers);

  // Returns when `stop` is requested. Errors are waited out (kWatchRetryPause) and tried again.
  void follow(std::stop_token stop);

 private:
  base::Result<std::string> list();  // the resourceVersion to watch from
  base::Status watch(const std::string& resource_version, std::stop_token stop);
  bool handle_line(std::string_view line);

  kube::Transport& transport_;
  const Handlers handlers_;
};

}  // namespace devcluster
