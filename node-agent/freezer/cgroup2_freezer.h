// The freezer of cgroup v2: `cgroup.freeze` takes 0 or 1, `cgroup.events` says `frozen 0|1`.
#pragma once

#include <memory>

#include "base/result.h"
#include "linux/file_descriptor.h"
#include "node-agent/freezer/freezer.h"

namespace agent {

class Cgroup2Freezer final : public Freezer {
 public:
  // Opens both files of the pod's cgroup directory. kNotFound: not a v2 cgroup, or gone;
  // kPermissionDenied: the freeze file cannot be written.
  static base::Result<std::unique_ptr<Freezer>> open(int directory_fd);

  Cgroup2Freezer(os::FileDescriptor freeze, os::FileDescriptor events);

  IoResult request(FreezeRequest wanted) override;
  Observation observe() override;
  AskedState asked() override;
  std::optional<int> changes_fd() const override { return events_.get(); }
  bool kill_works_while_frozen() const override { return true; }

 private:
  const os::FileDescriptor freeze_;
  const os::FileDescriptor events_;
};

}  // namespace agent
