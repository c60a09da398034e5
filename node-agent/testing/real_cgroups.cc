#include "node-agent/testing/real_cgroups.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>
#include <utility>

#include "base/check.h"

namespace agent::testing {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

std::string read_text(const std::string& path) {
  std::ifstream file{path};
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

bool write_text(const std::string& path, const std::string& text) {
  std::ofstream file{path};
  file << text;
  file.flush();
  return file.good();
}

// As the shell says it of a program that cannot be executed.
constexpr int kCannotRun = 126;

// On a machine that has both, each version has a mount of its own; "" without one.
std::string hierarchy_of(CgroupVersion version) {
  return os::first_mount(os::cgroup_mounts(), version);
}

std::vector<std::string> directories_below(const std::string& root) {
  std::vector<std::string> found{root};
  std::error_code error;
  for (fs::recursive_directory_iterator it{root, error}, end; !error && it != end;
       it.increment(error)) {
    if (it->is_directory(error)) found.push_back(it->path());
  }
  return found;  // parents before children
}

void thaw(CgroupVersion version, const std::string& directory) {
  if (version == CgroupVersion::kV2) {
    write_text(directory + "/cgroup.freeze", "0\n");
  } else {
    write_text(directory + "/freezer.state", "THAWED\n");
  }
}

// Thaws and kills until nothing is left, for five seconds. Again and again, since a process may
// fork while its cgroup is read, and a killed one keeps its cgroup until it is gone; children
// before parents, since only an empty cgroup can be removed.
void clean_up(CgroupVersion version, const std::string& root) {
  for (int round = 0; round < 500 && ::access(root.c_str(), F_OK) == 0; ++round) {
    std::vector<std::string> directories = directories_below(root);
    for (const std::string& directory : directories) {
      thaw(version, directory);
      std::istringstream pids{read_text(directory + "/cgroup.procs")};
      for (pid_t pid = 0; pids >> pid;) {
        if (pid > 1) ::kill(pid, SIGKILL);
      }
    }
    std::reverse(directories.begin(), directories.end());
    for (const std::string& directory : directories) ::rmdir(directory.c_str());
    ::usleep(10'000);
  }
}

}  // namespace

// A test that crashes must not leave processes: some of them would stand frozen forever.
void end_with_parent(pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(kCannotRun);
}

// By trying and not by the user id: in a container root may lack the right, and an ordinary user
// may have a delegated cgroup.
std::optional<std::string> RealCgroups::missing(CgroupVersion version) {
  const std::string hierarchy = hierarchy_of(version);
  if (hierarchy.empty()) return "no cgroup " + to_string(version) + " freezer is mounted here";
  const std::string probe = hierarchy + "/kubegang-probe-" + std::to_string(::getpid());
  if (::mkdir(probe.c_str(), 0755) != 0) {
    return "no cgroup can be made in " + hierarchy + ": needs root";
  }
  const std::string file = version == CgroupVersion::kV2 ? "/cgroup.freeze" : "/freezer.state";
  const bool good = ::access((probe + file).c_str(), W_OK) == 0;
  ::rmdir(probe.c_str());
  if (!good) return "cgroups in " + hierarchy + " have no writable freezer";
  return std::nullopt;
}

RealCgroups::RealCgroups(CgroupVersion version) : version_{version} {
  static std::atomic<int> trees_count{0};
  root_ = hierarchy_of(version) + "/kubegang-test-" + std::to_string(::getpid()) + "-" +
          std::to_string(trees_count++);
  int ends[2];
  CHECK(::pipe2(ends, O_CLOEXEC) == 0);
  // The guardian outlives a test that is killed: when the pipe's other end closes, however that
  // comes about, it thaws and removes the tree.
  guardian_ = ::fork();
  CHECK(guardian_ >= 0);
  if (guardian_ == 0) {
    ::close(ends[1]);
    ::setsid();  // Ctrl-C in the terminal is not for us.
    char byte = 0;
    while (::read(ends[0], &byte, 1) < 0 && errno == EINTR) {
    }
    clean_up(version_, root_);
    ::_exit(0);
  }
  ::close(ends[0]);
  guard_ = os::FileDescriptor{ends[1]};
  CHECK(fs::create_directories(root_), root_);
}

// Closing the pipe sends the guardian to work. It kills children of this process, hence the second
// wait; the memory that they share goes last.
RealCgroups::~RealCgroups() {
  guard_.reset();
  int status = 0;
  while (::waitpid(guardian_, &status, 0) < 0 && errno == EINTR) {
  }
  while (::waitpid(-1, &status, WNOHANG) > 0) {
  }
  for (Progress* progress : progress_) ::munmap(progress, sizeof(Progress));
}

std::string RealCgroups::add_pod(const std::string& uid) {
  const std::string path = "kubepods/burstable/pod" + uid;
  make(path);
  return path;
}

void RealCgroups::make(const std::string& path) const {
  std::error_code error;
  fs::create_directories(absolute(path), error);
  CHECK(!error, absolute(path));
}

// A cgroup whose last process has just been killed stays busy for a moment.
bool RealCgroups::remove(const std::string& path) const {
  return eventually([&] { return ::rmdir(absolute(path).c_str()) == 0; });
}

// Returns when the child is in its cgroup. It stays there until it is killed, or `body` returns.
pid_t RealCgroups::spawn(const std::string& path, const std::function<void()>& body) const {
  int ready[2];
  CHECK(::pipe2(ready, O_CLOEXEC) == 0);
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  CHECK(child >= 0);
  if (child == 0) {
    // The children must not keep the guardian's pipe open.
    ::close(guard_.get());
    end_with_parent(parent);
    sigset_t none;
    // A test program blocks signals that it waits for; its children must receive them.
    ::sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    const int procs = ::open((absolute(path) + "/cgroup.procs").c_str(), O_WRONLY | O_CLOEXEC);
    // "0" stands for the writer. The process enters by itself, before it says that it is ready, so
    // nothing of it ever runs outside.
    if (::write(procs, "0", 1) != 1) ::_exit(kCannotRun);
    [[maybe_unused]] const ssize_t ignored = ::write(ready[1], "r", 1);
    ::close(ready[0]);
    ::close(ready[1]);
    body();
    ::_exit(0);
  }
  ::close(ready[1]);
  char byte = 0;
  CHECK(::read(ready[0], &byte, 1) == 1);
  ::close(ready[0]);
  return child;
}

// Shared memory shows that a process stands still without asking the kernel, which is what the
// tests are about.
Progress& RealCgroups::spawn_counter(const std::string& path, base::Duration pause) {
  void* memory =
      ::mmap(nullptr, sizeof(Progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  CHECK(memory != MAP_FAILED);
  auto* progress = static_cast<Progress*>(memory);
  progress_.push_back(progress);
  spawn(path, [progress, pause] {
    for (;;) {
      progress->count.fetch_add(1, std::memory_order_relaxed);
      if (pause.count() > 0) ::usleep(static_cast<useconds_t>(pause.count()));
    }
  });
  return *progress;
}

// The request, and (below) the state that the kernel has reached: both can differ for as long as a
// task cannot stop.
bool RealCgroups::is_asked_frozen(const std::string& path) const {
  return version_ == CgroupVersion::kV2
             ? read_text(absolute(path) + "/cgroup.freeze").starts_with('1')
             : read_text(absolute(path) + "/freezer.self_freezing").starts_with('1');
}

bool RealCgroups::is_frozen(const std::string& path) const {
  return version_ == CgroupVersion::kV2
             ? read_text(absolute(path) + "/cgroup.events").find("frozen 1") != std::string::npos
             : read_text(absolute(path) + "/freezer.state").starts_with("FROZEN");
}

void RealCgroups::set_frozen(const std::string& path, bool frozen) const {
  if (!frozen) {
    thaw(version_, absolute(path));
  } else if (version_ == CgroupVersion::kV2) {
    write_text(absolute(path) + "/cgroup.freeze", "1\n");
  } else {
    write_text(absolute(path) + "/freezer.state", "FROZEN\n");
  }
}

std::size_t RealCgroups::processes_count(const std::string& path) const {
  std::istringstream pids{read_text(absolute(path) + "/cgroup.procs")};
  std::size_t count = 0;
  for (pid_t pid = 0; pids >> pid;) ++count;
  return count;
}

// By the count of its naps and not by a clock: on a busy machine the limit is longer, and a test
// does not fail for that.
bool eventually(const std::function<bool()>& condition, base::Duration limit) {
  for (base::Duration waited{0}; waited < limit; waited += milliseconds{1}) {
    if (condition()) return true;
    std::this_thread::sleep_for(milliseconds{1});
  }
  return condition();
}

// Counts may come to a stand a moment after the freeze is reported, so callers that have just
// frozen use eventually().
bool stands_still(const Progress& progress, base::Duration span) {
  const std::uint64_t before = progress.count.load();
  std::this_thread::sleep_for(span);
  return progress.count.load() == before;
}

bool moves(const Progress& progress, base::Duration limit) {
  const std::uint64_t before = progress.count.load();
  return eventually([&] { return progress.count.load() != before; }, limit);
}

}  // namespace agent::testing
