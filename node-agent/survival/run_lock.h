// The lock of a run directory (flock): it belongs to one agent at a time, from before that agent
// reads the journal until the last of its processes is gone. A process that thaws the pods in the
// journal holds the lock, or knows that its holder stands still; so two agents never thaw each
// other's pods, and a guard never those of an agent that lives.
#pragma once

#include <string>

#include "base/result.h"
#include "base/time.h"
#include "linux/file_descriptor.h"

namespace agent {

inline constexpr const char* kLockName = "lock";

// Exit code of a program whose run directory another agent uses: what that one has frozen is left
// to it.
inline constexpr int kExitTaken = 3;

// One thread.
class RunLock {
 public:
  // Makes the file, or takes the one that is there; does not lock it. kPermissionDenied,
  // kUnavailable.
  static base::Result<RunLock> open(const std::string& run_directory);

  // Returns true if we hold it now. Never blocks.
  bool try_take();
  // Tries again and again until `within` has passed: the agent before us may be on its way out, and
  // a guard holds the lock for as long as it thaws. A signal does not end the wait: if that agent
  // is gone, what it froze must be thawed before we end. kAlreadyExists with a sentence if another
  // agent uses the directory.
  base::Status take_within(base::Duration within);
  void give_back();

  // Keeps the lock in a child process, also after an exec, until that ends. To be called in the
  // child.
  void keep_in_child();

 private:
  RunLock(std::string run_directory, os::FileDescriptor file)
      : run_directory_{std::move(run_directory)}, file_{std::move(file)} {}

  std::string run_directory_;
  os::FileDescriptor file_;
};

}  // namespace agent
