// srun from outside of a job: the program itself, with a job in one pod whose script does nothing.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "launcher/process.h"
#include "slurm/remote_step.h"

namespace launcher {
namespace {

using slurm::RemoteKind;

// Starts `batch` or `join` with pipes. join says everything in messages, a job's log is text.
class Started {
 public:
  Started(std::vector<std::string> words, Environment environment)
      : speaks_messages_{words.at(1) == "join"} {
    std::array<int, 2> input{};
    std::array<int, 2> output{};
    EXPECT_EQ(::pipe2(input.data(), O_CLOEXEC), 0);
    EXPECT_EQ(::pipe2(output.data(), O_CLOEXEC), 0);
    pid_ = start({.argv = std::move(words),
                  .environment = std::move(environment),
                  .directory = "/",
                  .input = input[0],
                  .output = output[1],
                  .error = STDERR_FILENO,
                  .speaker = "test"});
    ::close(input[0]);
    ::close(output[1]);
    input_ = input[1];
    output_ = output[0];
  }
  ~Started() {
    // It may not lead a session yet.
    for (const pid_t whom : {-pid_, pid_}) {
      if (pid_ > 0) ::kill(whom, SIGKILL);
    }
    if (pid_ > 0) (void)code();
    ::close(input_);
    ::close(output_);
  }
  Started(const Started&) = delete;
  Started& operator=(const Started&) = delete;

  void signal(int number) { ::kill(pid_, number); }
  void say(RemoteKind kind, const std::string& text = "") {
    EXPECT_TRUE(write_all(input_, slurm::encode({kind, text})));
  }
  // Takes what it says until that comes true. False: it did not.
  bool hear(const std::function<bool()>& come_true) {
    const auto end = std::chrono::steady_clock::now() + kPatience;
    std::array<char, 4096> bytes{};
    while (!come_true() && !has_ended) {
      if (std::chrono::steady_clock::now() > end) return false;
      pollfd look{output_, POLLIN, 0};
      if (::poll(&look, 1, 10) <= 0) continue;
      const ssize_t count = ::read(output_, bytes.data(), bytes.size());
      has_ended = count <= 0;
      if (count <= 0 || !speaks_messages_) continue;
      reader_.add({bytes.data(), static_cast<std::size_t>(count)});
      while (const auto message = reader_.next()) {
        if (message->kind == RemoteKind::kOutput) out += message->text;
        if (message->kind == RemoteKind::kErrorOutput) err += message->text;
        if (message->kind == RemoteKind::kHold) holds = message->text == "1";
        if (message->kind == RemoteKind::kEnd) exit_code = message->text;
        has_begun = true;
      }
      EXPECT_FALSE(reader_.is_broken());
    }
    return come_true();
  }
  bool hear_its_end() {
    return hear([this] { return has_ended; });
  }
  // Waits for its end.
  int code() {
    int status = 0;
    ::waitpid(std::exchange(pid_, -1), &status, 0);
    return shell_code(status);
  }

  std::string out, err, exit_code;
  bool holds = false;
  bool has_begun = false;  // it has said something
  bool has_ended = false;

 private:
  static constexpr std::chrono::seconds kPatience{20};

  const bool speaks_messages_;
  pid_t pid_ = -1;
  int input_ = -1;
  int output_ = -1;
  slurm::RemoteReader reader_;
};

// join finds the job by the program that it is itself, so each test has a copy.
class Join : public testing::Test {
 protected:
  explicit Join(const std::string& script = "hold") {
    std::string folder = "/tmp/kubegang-join-XXXXXX";
    EXPECT_NE(::mkdtemp(folder.data()), nullptr);
    folder_ = folder;
    program_ = folder + "/kubegang-launcher";
    std::filesystem::copy_file(
        std::filesystem::read_symlink("/proc/self/exe").parent_path() / "../bin/kubegang-launcher",
        program_);
    job_ = std::make_unique<Started>(
        std::vector<std::string>{program_, "batch", "--output=/dev/null", "--"},
        Environment{"PATH=/usr/bin:/bin", "SLURM_JOB_ID=1001", "SLURM_JOB_NODELIST=n1",
                    "SLURM_JOB_CPUS_PER_NODE=2", "SLURM_NODEID=0", "SLURM_JOB_NUM_NODES=1",
                    "SLURMD_NODENAME=n1", "KUBEGANG_SCRIPT_0=#!" + program_ + " " + script + "\n"});
  }
  ~Join() override {
    job_.reset();
    std::filesystem::remove_all(folder_);
  }

  // `window`: of the terminal of who calls, "" for none.
  std::unique_ptr<Started> srun(const std::vector<std::string>& words, const std::string& window) {
    auto join = std::make_unique<Started>(
        std::vector<std::string>{program_, "join"},
        Environment{"PATH=/usr/bin:/bin", "SLURM_JOB_ID=1001", "SLURM_JOB_NODELIST=n1",
                    "SLURM_JOB_CPUS_PER_NODE=2", "SLURM_JOB_NUM_NODES=1"});
    if (!version_.empty()) join->say(RemoteKind::kVersion, version_);
    for (const std::string& word : words) join->say(RemoteKind::kArgument, word);
    join->say(RemoteKind::kDirectory, "/");
    if (!window.empty()) join->say(RemoteKind::kTerminal, window);
    join->say(RemoteKind::kRun);
    return join;
  }

  std::unique_ptr<Started> job_;
  std::string version_{slurm::kRemoteVersion};  // "": says none, as kubectl-gang once did

  const std::string& folder() const { return folder_; }
  const std::string& program() const { return program_; }

 private:
  std::string folder_;
  std::string program_;
};

TEST_F(Join, PassesInputOutputAndErrorsOn) {
  const auto join = srun({"sh", "-c", "cat; echo late >&2; exit 3"}, "");
  join->say(RemoteKind::kInput, "typed\n");
  join->say(RemoteKind::kNothing);
  join->say(RemoteKind::kInputEnd);
  ASSERT_TRUE(join->hear_its_end());
  EXPECT_EQ(join->out, "typed\n");
  EXPECT_EQ(join->err, "late\nsrun: error: n1: task 0: Exited with exit code 3\n");
  EXPECT_EQ(join->exit_code, "3") << "without it a connection that was lost could pass for an end";
}

// A caller knows by the first word whether its signals reach srun: one in a pod that stands
// still says nothing.
TEST_F(Join, SaysAtOnceThatItRuns) {
  const auto join = srun({"sleep", "1000"}, "");
  ASSERT_TRUE(join->hear([&] { return join->has_begun; }));
  EXPECT_FALSE(join->holds);
  join->say(RemoteKind::kSignal, std::to_string(SIGTERM));
  ASSERT_TRUE(join->hear_its_end());
}

TEST_F(Join, ASignalDoesNotStandBehindInputThatNobodyReads) {
  const auto join = srun({"sh", "-c", "echo up; exec sleep 1000"}, "");
  ASSERT_TRUE(join->hear([&] { return join->out == "up\n"; }));
  const std::string piece(65'536, 'x');
  ASSERT_TRUE(join->hear([&] {
    if (!join->holds) join->say(RemoteKind::kInput, piece);
    return join->holds;
  }));
  join->say(RemoteKind::kSignal, std::to_string(SIGTERM));
  ASSERT_TRUE(join->hear_its_end());
  EXPECT_EQ(join->err, "srun: forcing job termination\nsrun: error: n1: task 0: Terminated\n");
}

// As scancel does. The script ends at once; its tasks, and what srun says of them, may take longer.
TEST_F(Join, TheEndOfTheJobWaitsForWhatIsSaidLast) {
  const auto join = srun({"sh", "-c",
                          "trap 'sleep 0.2; echo last; exit 4' TERM; echo up; "
                          "while :; do sleep 0.01; done"},
                         "");
  ASSERT_TRUE(join->hear([&] { return join->out == "up\n"; }));
  job_->signal(SIGTERM);
  ASSERT_TRUE(join->hear_its_end());
  EXPECT_EQ(join->out, "up\nlast\n");
  // The shell may say first that its command has been terminated.
  EXPECT_TRUE(join->err.ends_with("srun: error: n1: task 0: Exited with exit code 4\n"))
      << join->err;
}

// More wake-ups than a minute of waiting has looks.
TEST_F(Join, TheEndOfTheJobWaitsForASteadyFlowOfOutput) {
  const auto join = srun({"sh", "-c",
                          "trap 'i=0; while [ $i -lt 30000 ]; do echo x; i=$((i+1)); "
                          "done; sleep 0.3; echo last; exit 4' TERM; echo up; "
                          "while :; do sleep 0.01; done"},
                         "");
  ASSERT_TRUE(join->hear([&] { return join->out == "up\n"; }));
  job_->signal(SIGTERM);
  ASSERT_TRUE(join->hear_its_end());
  EXPECT_TRUE(join->out.ends_with("x\nlast\n")) << join->out.substr(join->out.size() - 20);
}

// The caller may rest, too, for example in a stopped terminal.
TEST_F(Join, ASignalDoesNotStandBehindOutputThatNobodyReads) {
  const std::string heard = "/tmp/kubegang-heard-" + std::to_string(::getpid());
  const auto join = srun({"sh", "-c",
                          "trap 'echo > " + heard +
                              "; exit 3' TERM; echo up; "
                              "while :; do echo y; done"},
                         "");
  ASSERT_TRUE(join->hear([&] { return join->out.size() > 100'000; }));
  // Everything on the way is full when the loop above stands still.
  std::this_thread::sleep_for(std::chrono::milliseconds{500});
  join->say(RemoteKind::kSignal, std::to_string(SIGTERM));
  for (int i = 0; i < 1'000 && !std::filesystem::exists(heard); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds{10});
  }
  EXPECT_TRUE(std::filesystem::remove(heard));
  EXPECT_TRUE(join->hear_its_end());
}

TEST_F(Join, InputAfterTheEndOfInputHoldsNothing) {
  const auto join = srun({"sh", "-c", "cat > /dev/null; echo closed; exec sleep 1000"}, "");
  join->say(RemoteKind::kInputEnd);
  ASSERT_TRUE(join->hear([&] { return join->out == "closed\n"; }));
  const std::string piece(65'536, 'x');
  for (int i = 0; i < 32; ++i) join->say(RemoteKind::kInput, piece);
  join->say(RemoteKind::kSignal, std::to_string(SIGTERM));
  ASSERT_TRUE(join->hear_its_end());
  EXPECT_FALSE(join->holds);
}

TEST_F(Join, AnotherVersionOfItsCallerBeginsNothing) {
  for (const std::string version : {"", "0", "1.1"}) {
    version_ = version;
    const auto join = srun({"echo", "begun"}, "");
    ASSERT_TRUE(join->hear_its_end());
    EXPECT_EQ(join->code(), 1);
    EXPECT_EQ(join->out, "");
  }
}

// A job that requeues itself: with `scontrol`, which is this program.
class JobThatRequeues : public Join {
 protected:
  explicit JobThatRequeues(const std::string& option = "--may-requeue") {
    job_.reset();
    const std::string log = folder() + "/end";
    std::ofstream{log};
    // The signal may come at any time.
    const std::string script = "#!/bin/sh\nexec 2>/dev/null\nsleep 1000 &\ntrap 'echo ended > " +
                               folder() + "/trap; kill $!' TERM\n" + program() +
                               " scontrol requeue 1002; echo \"rc $?\"\n" + program() +
                               " scontrol requeue 1001; echo \"rc $?\"\nwait $!; echo last\n";
    job_ = std::make_unique<Started>(
        std::vector<std::string>{program(), "batch", option, "--termination-log=" + log,
                                 "--output=" + folder() + "/out", "--"},
        Environment{"PATH=/usr/bin:/bin", "SLURM_JOB_ID=1001", "SLURMD_NODENAME=n1",
                    "KUBEGANG_SCRIPT_0=" + script});
  }
  std::string text_in(const std::string& name) const { return text_of_file(folder() + name); }
};

TEST_F(JobThatRequeues, EndsAndSaysSo) {
  ASSERT_TRUE(job_->hear_its_end());
  EXPECT_EQ(job_->code(), 128 + SIGTERM) << "a job that has succeeded would not be requeued";
  EXPECT_EQ(text_in("/out"), "rc 1\nrc 0\nlast\n");
  EXPECT_EQ(text_in("/trap"), "ended\n");
  EXPECT_NE(text_in("/end").find(R"(,"requeue":true,)"), std::string::npos) << text_in("/end");
}

class JobThatMayNotRequeue : public JobThatRequeues {
 protected:
  JobThatMayNotRequeue() : JobThatRequeues{"--installed"} {}
};

TEST_F(JobThatMayNotRequeue, GoesOn) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds{20};
  while (text_in("/out") != "rc 1\nrc 1\n" && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds{10});
  }
  EXPECT_EQ(text_in("/out"), "rc 1\nrc 1\n");
  job_->signal(SIGTERM);
  ASSERT_TRUE(job_->hear_its_end());
  EXPECT_TRUE(text_in("/end").starts_with(R"({"kubegangUsage":1,"userCPU")"));
}

// Tests of what a killed srun leaves behind.
class JoinOfOneSecond : public Join {
 protected:
  JoinOfOneSecond() : Join{"hold=1"} {}
};

TEST_F(JoinOfOneSecond, AJobThatNobodyUsesEnds) {
  const auto join = srun({"sleep", "2.5"}, "");
  ASSERT_TRUE(join->hear_its_end());
  EXPECT_EQ(join->err, "");
  EXPECT_TRUE(job_->hear_its_end());
}

TEST_F(Join, EndlessOutputAtATerminalDoesNotHoldWhatIsTyped) {
  const auto join = srun({"--pty", "sh", "-c", "while :; do echo y; done"}, "24 80");
  ASSERT_TRUE(join->hear([&] { return join->out.size() > 100'000; }));
  join->say(RemoteKind::kInput, "\x03");
  ASSERT_TRUE(join->hear_its_end());
  // Lines of srun itself are not output of the task.
  EXPECT_EQ(join->err, "srun: error: n1: task 0: Interrupt\n");
  EXPECT_EQ(join->out.find("srun"), std::string::npos);
}

}  // namespace
}  // namespace launcher
