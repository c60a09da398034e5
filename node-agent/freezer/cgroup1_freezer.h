// The freezer of cgroup v1, the compatibility mode: `freezer.state` takes FROZEN or THAWED and says
// THAWED, FREEZING or FROZEN, an ancestor's freezing included; `freezer.self_freezing` says what
// this cgroup itself was asked for.
#pragma once

#include <memory>

#include "base/result.h"
#include "linux/file_descriptor.h"
#include "node-agent/freezer/freezer.h"

namespace agent {

class Cgroup1Freezer final : public Freezer {
 public:
  // As Cgroup2Freezer::open.
  static base::Result<std::unique_ptr<Freezer>> open(int directory_fd);

  Cgroup1Freezer(os::FileDescriptor state, os::FileDescriptor self_freezing);

  IoResult request(FreezeRequest wanted) override;
  // Reading makes the kernel look whether all tasks stand still by now: FREEZING becomes FROZEN.
  Observation observe() override;
  AskedState asked() override;
  std::optional<int> changes_fd() const override { return std::nullopt; }
  bool kill_works_while_frozen() const override { return false; }

 private:
  const os::FileDescriptor state_;
  const os::FileDescriptor self_freezing_;
};

}  // namespace agent
