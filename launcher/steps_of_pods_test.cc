// Steps over several pods.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <chrono>
#include <filesystem>
#include <fstream>

#include "launcher/process.h"
#include "launcher/testing/job_of_pods.h"

namespace launcher {
namespace {

using testing::HasSubstr;

using StepsOfPods = JobOfPods;

TEST_F(StepsOfPods, RunsTasksOnAllNodesAndPassesOutputAndEndsOn) {
  begin_node(1);
  begin_node(2);
  const auto srun =
      ask(shell("echo $SLURM_PROCID $SLURM_NODEID $SLURM_LOCALID $SLURMD_NODENAME "
                "$SLURM_STEP_NODELIST $SLURM_TASKS_PER_NODE; exit $SLURM_PROCID",
                5, 3));
  ASSERT_TRUE(wait_for([&] { return srun->has(Kind::kDone); }));
  EXPECT_EQ(srun->output(),
            "0:0 0 0 n1 n[1-3] 2(x2),1\n1:1 0 1 n1 n[1-3] 2(x2),1\n2:2 1 0 n2 n[1-3] 2(x2),1\n"
            "3:3 1 1 n2 n[1-3] 2(x2),1\n4:4 2 0 n3 n[1-3] 2(x2),1\n");
  const std::map<std::uint32_t, std::uint32_t> ends{
      {0, 0}, {1, 256}, {2, 512}, {3, 768}, {4, 1024}};
  EXPECT_EQ(srun->ends(), ends);
}

TEST_F(StepsOfPods, ATaskOnAnyNodeMayAskForSteps) {
  begin_node(1);
  begin_node(2);
  const auto outer = ask(shell("echo $KUBEGANG_STEPS", 3, 3));
  ASSERT_TRUE(wait_for([&] { return outer->has(Kind::kDone); }));
  std::map<std::uint32_t, std::string> addresses;
  for (const Message& message : outer->heard) {
    if (message.kind == Kind::kOutput) addresses[message.rank] += message.text;
  }
  EXPECT_EQ(addresses[0], hub_->address() + "\n");
  const std::string address = addresses[2].substr(0, addresses[2].size() - 1);
  EXPECT_NE(address, hub_->address());
  // Sends a megabyte there and back.
  const std::string bytes(1'000'000, 'x');
  StepRequest request{.tasks = 1, .nodes = 1, .required = {1}, .programs = {{"cat"}}};
  const auto inner = ask(request, address);
  ASSERT_TRUE(wait_for([&] { return inner->has(Kind::kCreated); }));
  for (std::size_t at = 0; at < bytes.size(); at += kChunkBytesMax) {
    inner->channel->send({.kind = Kind::kInput, .text = bytes.substr(at, kChunkBytesMax)});
  }
  inner->channel->send({.kind = Kind::kInputEnd});
  ASSERT_TRUE(wait_for([&] { return inner->has(Kind::kDone); }));
  EXPECT_EQ(inner->output(), "0:" + bytes);
  // A caller without the secret gets no step, and the end of srun is the end of its tasks.
  const auto stranger = ask(request, address.substr(0, address.find(':')) + ":x");
  ASSERT_TRUE(wait_for([&] { return stranger->has(Kind::kRefused); }));
  auto lost = ask(shell("sleep 60", 2, 2), address);
  ASSERT_TRUE(wait_for([&] { return lost->has(Kind::kCreated); }));
  lost.reset();
  ASSERT_TRUE(wait_for([&] { return !nodes_[1]->has_tasks(); }));
  const auto last = ask(shell("echo free", 6, 3));
  ASSERT_TRUE(wait_for([&] { return last->has(Kind::kDone); }));
}

// The first pod's launcher reports what tasks on all nodes have used.
TEST_F(StepsOfPods, WhatTasksHaveUsedIsKnownOfAllNodes) {
  begin_node(1);
  begin_node(2);
  const auto srun = ask(shell("i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; exit 3", 3, 3));
  ASSERT_TRUE(wait_for([&] { return srun->has(Kind::kDone); }));
  for (const Message& message : srun->heard) {
    for (const TaskEnd& end : message.ends) {
      const auto used = decode_used(end.used);
      ASSERT_TRUE(used) << end.rank;
      EXPECT_GT((used->user + used->system).count(), 0) << end.rank;
      EXPECT_GT(used->max_rss, 0U) << end.rank;
    }
  }
  EXPECT_THAT(hub_->usage().message(std::chrono::system_clock::now()),
              HasSubstr("{\"id\":\"0\",\"name\":\"sh\",\"tasks\":3,\"nodes\":3,"
                        "\"cpus\":6,\"exitCode\":3,\"signal\":0,"));
}

// SOURCE: srun(1), --pty.
TEST_F(StepsOfPods, TheFirstTaskMayHaveATerminal) {
  begin_node(1);
  StepRequest request = shell("test -t 0 && stty size; read a; stty size; echo got $a", 2, 2);
  request.window = {.rows = 30, .columns = 100};
  const auto srun = ask(request);
  const auto prints = [&](const char* text) {
    return wait_for([&] { return srun->output().find(text) != std::string::npos; });
  };
  ASSERT_TRUE(prints("0:30 100\r\n")) << srun->output();
  srun->channel->send({.kind = Kind::kResize, .number = pack_window({.rows = 9, .columns = 7})});
  srun->channel->send({.kind = Kind::kInput, .rank = 0, .text = "it\n"});
  srun->channel->send({.kind = Kind::kInputEnd, .rank = 1});
  ASSERT_TRUE(prints("9 7\r\ngot it\r\n")) << srun->output();
  ASSERT_TRUE(wait_for([&] { return srun->has(Kind::kDone); }));
}

// SOURCE: srun -u, as recorded.
TEST_F(StepsOfPods, UnbufferedOutputIsATerminalThatChangesNothing) {
  begin_node(1);
  StepRequest request = shell("test -t 1 && ! test -t 2 && printf 'a\\tb\\r\\n'; seq 20000", 2, 2);
  request.is_unbuffered = true;
  const auto srun = ask(request);
  ASSERT_TRUE(wait_for([&] { return srun->has(Kind::kDone); }));
  const std::string output = srun->output();
  EXPECT_TRUE(output.starts_with("0:a\tb\r\n1\n2\n")) << output.substr(0, 20);
  EXPECT_TRUE(output.ends_with("\n19999\n20000\n"));
}

// A step of nodes whose launchers are not here yet waits, and no message says that nodes are busy.
TEST_F(StepsOfPods, WaitsForLaunchers) {
  const auto srun = ask(shell("echo here", 2, 2));
  begin_node(1, 'x');
  (void)wait_for([&, looks = 0]() mutable { return ++looks > 100; });
  EXPECT_TRUE(srun->heard.empty()) << "who does not have the key is not of the job";
  begin_node(1);
  ASSERT_TRUE(wait_for([&] { return srun->has(Kind::kDone); }));
  EXPECT_EQ(srun->output(), "0:here\n1:here\n");
  EXPECT_FALSE(srun->has(Kind::kBusy));
}

// A step gets the first nodes of the job, also if another launcher is there before those. Only a
// node that was lost is passed over.
TEST_F(StepsOfPods, WhichNodesAStepGetsDoesNotDependOnWhoComesFirst) {
  begin_node(2);
  StepRequest on_third = shell("echo $SLURMD_NODENAME", 1, 1);
  on_third.required = {2};
  const auto third = ask(on_third);
  ASSERT_TRUE(wait_for([&] { return third->has(Kind::kDone); }));
  StepRequest behind_first = shell("echo $SLURMD_NODENAME", 1, 1);
  behind_first.relative = 1;
  const auto srun = ask(behind_first);
  (void)wait_for([&, looks = 0]() mutable { return ++looks > 50; });
  EXPECT_TRUE(srun->heard.empty());
  begin_node(1);
  ASSERT_TRUE(wait_for([&] { return srun->has(Kind::kDone); }));
  EXPECT_EQ(srun->output(), "0:n2\n");
  lose_node(1);
  const auto last = ask(behind_first);
  ASSERT_TRUE(wait_for([&] { return last->has(Kind::kDone); }));
  EXPECT_EQ(last->output(), "0:n3\n");
}

// A caller with a wrong key is not a launcher of the job and starts no step.
TEST_F(StepsOfPods, AWrongKeyOpensNoConnection) {
  expect_turned_away('w');
  const auto srun = ask(shell("echo here", 2, 2));
  begin_node(1);
  ASSERT_TRUE(wait_for([&] { return srun->has(Kind::kDone); })) << "the job goes on";
}

// Pods of an earlier start may live on beside those of the next one, and know its port.
TEST_F(StepsOfPods, TheKeyOfAnEarlierStartOpensNoConnection) {
  begin_node(1);
  const auto before = ask(shell("echo before", 2, 2));
  ASSERT_TRUE(wait_for([&] { return before->has(Kind::kDone); }));
  begin_first('n');
  expect_turned_away('k');
  const auto srun = ask(shell("echo after", 2, 2));
  (void)wait_for([&, looks = 0]() mutable { return ++looks > 100; });
  EXPECT_TRUE(srun->heard.empty()) << "the old launcher still tries";
  begin_node(1, 'n');
  ASSERT_TRUE(wait_for([&] { return srun->has(Kind::kDone); }));
  EXPECT_EQ(srun->output(), "0:after\n1:after\n");
}

// An address may be another job's pod by now. Neither of the two hears a word of the other: the
// launcher says nothing before the first pod has shown that it knows the key.
TEST_F(StepsOfPods, TheKeyOfAnotherJobOpensNoConnection) {
  expect_turned_away('b');
  const Tls other{key_of('b')};
  const auto listener = listen_on("127.0.0.1", 0);
  ASSERT_TRUE(listener.ok());
  port_ = port_of(*listener);
  begin_node(1);
  int caller = -1;
  ASSERT_TRUE(wait_for([&] {
    return (caller = ::accept4(*listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0;
  }));
  int heard = 0;
  bool is_closed = false;
  const Channel channel{loop_, caller, other.for_server(caller),
                        Channel::Calls{.message = [&](const Message&) { ++heard; },
                                       .closed = [&] { is_closed = true; }}};
  EXPECT_TRUE(wait_for([&] { return is_closed; }));
  EXPECT_EQ(heard, 0);
  ::close(*listener);
}

// Without TLS, or with a message that a launcher may not say, nothing is heard of a connection.
TEST_F(StepsOfPods, StrangersAreTurnedAway) {
  for (const std::string& bytes :
       {encode({.kind = Kind::kHello, .number = 1}), std::string(100, '\0')}) {
    const auto fd = connect_to("127.0.0.1", port_);
    ASSERT_TRUE(fd.ok());
    (void)wait_for([&] { return ::send(*fd, bytes.data(), bytes.size(), MSG_NOSIGNAL) > 0; });
    char answer[64];
    EXPECT_TRUE(wait_for([&] { return ::recv(*fd, answer, sizeof answer, 0) == 0; }))
        << "the connection is closed";
    ::close(*fd);
  }
  Tls tls{key_of('k')};
  for (const Message& first :
       {Message{.kind = Kind::kHello, .number = 9}, Message{.kind = Kind::kHello, .number = 0},
        Message{.kind = Kind::kExited, .ends = {{.rank = 0}}}}) {
    const auto fd = connect_to("127.0.0.1", port_);
    bool is_closed = false;
    Channel channel{loop_,
                    *fd,
                    tls.for_client(*fd),
                    {.message = [](const Message&) {}, .closed = [&] { is_closed = true; }}};
    channel.send(first);
    EXPECT_TRUE(wait_for([&] { return is_closed; }));
  }
}

TEST_F(StepsOfPods, PassesInputAndSignalsOn) {
  begin_node(1);
  const auto srun = ask(shell("trap 'echo usr1; exit 3' USR1; read a; echo got $a; read b", 2, 2));
  ASSERT_TRUE(wait_for([&] { return srun->has(Kind::kCreated); }));
  srun->channel->send({.kind = Kind::kInput, .rank = 0, .text = "zero\n"});
  srun->channel->send({.kind = Kind::kInput, .rank = 1, .text = "one\n"});
  ASSERT_TRUE(wait_for([&] { return srun->output() == "0:got zero\n1:got one\n"; }));
  srun->channel->send({.kind = Kind::kSignal, .number = SIGUSR1});
  ASSERT_TRUE(wait_for([&] { return srun->has(Kind::kDone); }));
  EXPECT_EQ(srun->output(), "0:got zero\nusr1\n1:got one\nusr1\n");
}

// A task that reads nothing for a while, on the first node and on another: its input waits at srun,
// its signals do not, and nothing is lost.
TEST_F(StepsOfPods, SignalsDoNotStandBehindInput) {
  begin_node(1);
  for (const std::uint32_t node : {0U, 1U}) {
    StepRequest request = shell("trap 'exec wc -c' USR1; echo up; sleep 1000 & wait", 1, 1);
    request.required = {node};
    const auto srun = ask(request);
    const auto holds = [&] {
      const auto last =
          std::ranges::find_if(srun->heard.rbegin(), srun->heard.rend(),
                               [](const Message& message) { return message.kind == Kind::kHold; });
      return last != srun->heard.rend() && last->number == 1;
    };
    const std::string piece(kChunkBytesMax, 'x');
    std::size_t sent = 0;
    ASSERT_TRUE(wait_for([&] { return srun->output() == "0:up\n"; }));
    ASSERT_TRUE(wait_for([&] {
      if (holds()) return true;
      srun->channel->send({.kind = Kind::kInput, .rank = kAllTasks, .text = piece});
      sent += piece.size();
      return false;
    }));
    srun->channel->send({.kind = Kind::kSignal, .number = SIGUSR1});
    ASSERT_TRUE(wait_for([&] { return !holds(); }));
    srun->channel->send({.kind = Kind::kInputEnd, .rank = kAllTasks});
    ASSERT_TRUE(wait_for([&] { return srun->has(Kind::kDone); }));
    EXPECT_EQ(srun->output(), "0:up\n" + std::to_string(sent) + "\n");
  }
}

// A shell at a terminal gives what runs in the background a process group of its own.
TEST_F(StepsOfPods, NothingOfATaskRunsOnInTheBackground) {
  StepRequest request = shell("set -m; sleep 1000 & echo $!", 1, 1);
  request.window = {.rows = 24, .columns = 80};
  const auto srun = ask(request);
  ASSERT_TRUE(wait_for([&] { return srun->has(Kind::kDone); }));
  const std::string process = srun->output().substr(2, srun->output().find('\r') - 2);
  EXPECT_TRUE(wait_for([&] {
    const std::string state = text_of_file("/proc/" + process + "/stat");
    return state.empty() || state.find(") Z ") != std::string::npos;
  })) << process;
}

TEST_F(StepsOfPods, AnEndlessWriterThatHasLeftTheTaskHoldsNobody) {
  const auto srun = ask(shell("setsid sh -c 'while :; do echo y; done' & sleep 0.2", 1, 1));
  ASSERT_TRUE(wait_for([&] { return srun->has(Kind::kDone); }));
}

// More than all buffers hold, both ways.
TEST_F(StepsOfPods, NothingOfMuchInputAndOutputIsLost) {
  begin_node(1);
  StepRequest request = shell("cat", 1, 1);
  request.required = {1};
  const auto srun = ask(request);
  ASSERT_TRUE(wait_for([&] { return srun->has(Kind::kCreated); }));
  std::string sent;
  for (int i = 0; sent.size() < 12U << 20U; ++i) sent += std::to_string(i) + "\n";
  for (std::size_t at = 0; at < sent.size(); at += kChunkBytesMax) {
    srun->channel->send(
        {.kind = Kind::kInput, .rank = kAllTasks, .text = sent.substr(at, kChunkBytesMax)});
  }
  srun->channel->send({.kind = Kind::kInputEnd, .rank = kAllTasks});
  ASSERT_TRUE(wait_for([&] { return srun->has(Kind::kDone); }));
  EXPECT_EQ(srun->output(), "0:" + sent);
}

TEST_F(StepsOfPods, ALauncherThatDiesEndsItsTasksAndTheNextStepWaitsForIt) {
  begin_node(1);
  const auto srun = ask(shell("echo up; sleep 100", 4, 2));
  ASSERT_TRUE(wait_for([&] { return srun->output() == "0:up\n1:up\n2:up\n3:up\n"; }));
  lose_node(1);
  ASSERT_TRUE(wait_for([&] { return srun->ends().size() == 2; }));
  EXPECT_EQ(srun->ends(), (std::map<std::uint32_t, std::uint32_t>{{2, SIGKILL}, {3, SIGKILL}}));
  ASSERT_TRUE(srun->has(Kind::kLost));
  srun->channel->send({.kind = Kind::kSignal, .number = SIGTERM});
  ASSERT_TRUE(wait_for([&] { return srun->has(Kind::kDone); }));
  const auto next = ask(shell("echo next", 2, 2));
  begin_node(1);
  ASSERT_TRUE(wait_for([&] { return next->has(Kind::kDone); }));
  EXPECT_EQ(next->output(), "0:next\n1:next\n");
}

// The program srun, for a step of three tasks on three nodes, each of which says `up`, then waits
// for the file `go`, and says `on`; or `TERM` when it is asked to end.
class StepsOfSrun : public StepsOfPods {
 protected:
  StepsOfSrun() {
    std::string folder = "/tmp/kubegang-srun-XXXXXX";
    EXPECT_NE(::mkdtemp(folder.data()), nullptr);
    folder_ = folder;
    begin_node(1);
    begin_node(2);
  }
  ~StepsOfSrun() override { std::filesystem::remove_all(folder_); }

  // `redirection` is a shell's, of srun's own streams.
  void begin_srun(const std::vector<std::string>& options, const std::string& redirection = "") {
    std::vector<std::string> words{"/bin/bash",
                                   "-c",
                                   "exec \"$0\" \"$@\" " + redirection,
                                   own_directory() + "/../bin/kubegang-launcher",
                                   "srun",
                                   "-l",
                                   "-N3",
                                   "-n3"};
    words.insert(words.end(), options.begin(), options.end());
    for (const std::string& word : {std::string{"sh"}, std::string{"-c"},
                                    "trap 'echo TERM; exit 5' TERM; echo up; until test -e " +
                                        folder_ + "/go; do sleep 0.02; done; echo on"}) {
      words.push_back(word);
    }
    const int out = ::open((folder_ + "/out").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    const int in = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    srun_ = start(
        {.argv = words,
         .environment = {"PATH=/usr/bin:/bin", "SLURM_JOB_ID=1001", "SLURM_JOB_NODELIST=n[1-3]",
                         "SLURM_JOB_NUM_NODES=3", "SLURM_JOB_CPUS_PER_NODE=2(x3)",
                         "KUBEGANG_STEPS=" + hub_->address()},
         .directory = "/",
         .input = in,
         .output = out,
         .error = out,
         .speaker = "test"});
    ::close(out);
    ::close(in);
  }
  std::string said() const { return text_of_file(folder_ + "/out"); }
  bool has_said(const std::vector<std::string>& lines) const {
    return std::ranges::all_of(lines, [said = said()](const std::string& line) {
      return said.find(line + "\n") != std::string::npos;
    });
  }
  void let_go() const { std::ofstream{folder_ + "/go"}; }
  // Returns the exit code of srun as a shell has it; nullopt: it has not ended.
  std::optional<int> wait_for_srun() {
    if (!wait_for([&] { return others_.contains(srun_); })) return std::nullopt;
    return shell_code(others_.at(srun_));
  }

 private:
  std::string folder_;
  pid_t srun_ = -1;
};

TEST_F(StepsOfSrun, TheLossOfANodeEndsTheStep) {
  begin_srun({});
  ASSERT_TRUE(wait_for([&] { return has_said({"0: up", "1: up", "2: up"}); })) << said();
  lose_node(1);
  EXPECT_EQ(wait_for_srun(), 128 + SIGKILL) << said();
  EXPECT_TRUE(has_said(
      {"srun: error: Node failure on n2", "0: TERM", "2: TERM", "srun: error: n2: task 1: Killed"}))
      << said();
  EXPECT_FALSE(has_said({"1: TERM"}));
}

TEST_F(StepsOfSrun, AClosedInputIsAnEmptyOne) {
  let_go();
  begin_srun({}, "<&-");
  EXPECT_EQ(wait_for_srun(), 0) << said();
  EXPECT_TRUE(has_said({"0: on", "1: on", "2: on"})) << said();
}

TEST_F(StepsOfSrun, OutputWithoutAReaderIsLost) {
  let_go();
  begin_srun({}, "| true; exit ${PIPESTATUS[0]}");
  EXPECT_EQ(wait_for_srun(), 0) << said();
}

// SOURCE: srun(1), --no-kill.
TEST_F(StepsOfSrun, WithNoKillTheOtherTasksGoOn) {
  begin_srun({"--no-kill"});
  ASSERT_TRUE(wait_for([&] { return has_said({"0: up", "1: up", "2: up"}); })) << said();
  lose_node(1);
  ASSERT_TRUE(wait_for([&] { return has_said({"srun: error: Node failure on n2"}); })) << said();
  let_go();
  EXPECT_EQ(wait_for_srun(), 128 + SIGKILL) << said();
  EXPECT_TRUE(has_said({"0: on", "2: on", "srun: error: n2: task 1: Killed"})) << said();
  EXPECT_FALSE(has_said({"0: TERM"}));
  EXPECT_FALSE(has_said({"1: on"}));
}

// A killed srun leaves no task, on no node; a second step gets the room.
TEST_F(StepsOfPods, TheTasksEndWithTheirSrun) {
  begin_node(1);
  auto srun = ask(shell("echo up; exec sleep 1000", 2, 2));
  ASSERT_TRUE(wait_for([&] { return srun->output() == "0:up\n1:up\n"; }));
  const auto next = ask(shell("echo next", 2, 2));
  ASSERT_TRUE(wait_for([&] { return next->has(Kind::kBusy); }));
  srun.reset();
  ASSERT_TRUE(wait_for([&] { return next->has(Kind::kDone) && !nodes_[1]->has_tasks(); }));
}

// The first task that fails may end the step, so its end is said at once; others wait a moment for
// those that come.
TEST_F(StepsOfPods, OnlyAnEndWithoutAFailureWaitsForOthers) {
  begin_node(1);
  const auto srun = ask(shell("case $SLURM_PROCID in 2) exit 3 ;; 3) sleep 1000 ;; esac", 4, 2));
  ASSERT_TRUE(wait_for([&] { return srun->ends().size() == 3; }));
  EXPECT_EQ(srun->ends(), (std::map<std::uint32_t, std::uint32_t>{{0, 0}, {1, 0}, {2, 3 << 8}}));
  const auto later = ask(shell("[ $SLURM_LOCALID = 0 ] || sleep 1000", 2, 1));
  srun->channel->send({.kind = Kind::kSignal, .number = SIGKILL});
  ASSERT_TRUE(wait_for([&] { return srun->has(Kind::kDone); }));
  ASSERT_TRUE(wait_for([&] { return later->ends().size() == 1; })) << "it does not wait forever";
}

// A job of 200 nodes with five CPUs each.
class StepsOfManyPods : public JobOfPods {
 protected:
  static constexpr std::uint32_t kNodes = 200;
  static constexpr std::uint32_t kTasksEach = 5;
  StepsOfManyPods() : JobOfPods{nodes_like(kNodes, kTasksEach)} {
    // Each task has three pipes, each node two ends of a connection.
    rlimit files{};
    ::getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &files);
    for (std::uint32_t node = 1; node < kNodes; ++node) begin_node(node);
  }
};

// Goal: at most two messages from each node, and two to it. One asks it for its tasks, and one or
// two have all their ends.
TEST_F(StepsOfManyPods, AThousandTasksTakeFewMessages) {
  const auto srun = ask(shell("exit 0", kNodes * kTasksEach, kNodes));
  ASSERT_TRUE(wait_for([&] { return srun->has(Kind::kDone); }));
  const auto is_end = [](const Message& message) { return message.kind == Kind::kExited; };
  const auto messages = std::ranges::count_if(srun->heard, is_end);
  EXPECT_LE(messages, 2 * kNodes);
  EXPECT_EQ(srun->ends().size(), kNodes * kTasksEach);
  RecordProperty("messages", static_cast<int>(messages));
}

// A client of PMI-1 in shell: each task puts what it is, and reads what the next one has put.
constexpr const char* kPmiClient = R"sh(
ask() { echo "$1" >&3; read -r answer <&3; }
ask "cmd=init pmi_version=1 pmi_subversion=1"
ask "cmd=put kvsname=k key=card-$PMI_RANK value=$SLURMD_NODENAME/$PMI_SIZE"
ask "cmd=barrier_in"
ask "cmd=get kvsname=k key=card-$(( (PMI_RANK + 1) % PMI_SIZE ))"
echo "$PMI_JOBID $answer"
ask "cmd=finalize")sh";

TEST_F(StepsOfPods, TasksMeetByPmi) {
  begin_node(1);
  begin_node(2);
  StepRequest request = shell(kPmiClient, 3, 3);
  request.mpi = Mpi::kPmi2;
  request.environment = {"SLURM_JOB_ID=1001"};
  const auto srun = ask(request);
  ASSERT_TRUE(wait_for([&] { return srun->has(Kind::kDone); }));
  const std::string got = "1001.0 cmd=get_result rc=0 msg=success value=";
  EXPECT_EQ(srun->output(), "0:" + got + "n2/3\n1:" + got + "n3/3\n2:" + got + "n1/3\n");
}

TEST_F(StepsOfPods, ATaskThatAbortsByPmiEndsTheStep) {
  begin_node(1);
  StepRequest request = shell(
      "echo 'cmd=init pmi_version=1 pmi_subversion=1' >&3; read -r answer <&3; "
      "[ $PMI_RANK = 0 ] && echo 'cmd=abort exitcode=7' >&3; exec sleep 1000",
      2, 2);
  request.mpi = Mpi::kPmi2;
  const auto srun = ask(request);
  ASSERT_TRUE(wait_for([&] { return srun->has(Kind::kDone); }));
  EXPECT_EQ(srun->ends(), (std::map<std::uint32_t, std::uint32_t>{{0, SIGKILL}, {1, SIGKILL}}));
}

// Without --mpi=pmi2 a task has no such descriptor.
TEST_F(StepsOfPods, ATaskThatSpeaksSomethingElseIsCutOff) {
  StepRequest request = shell("echo hello >&3; read -r answer <&3 || echo gone", 1, 1);
  request.mpi = Mpi::kPmi2;
  const auto srun = ask(request);
  ASSERT_TRUE(wait_for([&] { return srun->has(Kind::kDone); }));
  EXPECT_EQ(srun->output(), "0:gone\n");
  request.mpi = Mpi::kNone;
  request.programs = {{"sh", "-c", "test -e /proc/self/fd/3 || echo none"}};
  const auto next = ask(request);
  ASSERT_TRUE(wait_for([&] { return next->has(Kind::kDone); }));
  EXPECT_EQ(next->output(), "0:none\n");
}

// The program of PMIx is looked for beside this one.
class StepsOfPmix : public StepsOfPods {
 protected:
  StepsOfPmix() {
    const std::filesystem::path here = own_directory();
    std::error_code ignored;
    std::filesystem::create_symlink("../bin/kubegang-pmix", here / "kubegang-pmix", ignored);
  }
  static StepRequest pmix(const std::string& text, std::uint32_t tasks, std::uint32_t nodes) {
    StepRequest request = shell(text, tasks, nodes);
    request.mpi = Mpi::kPmix;
    request.environment = {"SLURM_JOB_ID=1001"};
    return request;
  }
  // Returns the programs of this kind that this process has started, and that have not ended.
  static int services() {
    int count = 0;
    for (const std::string& name : names_in("/proc")) {
      const std::string status = text_of_file("/proc/" + name + "/status");
      const std::string parent = "PPid:\t" + std::to_string(::getpid()) + "\n";
      const bool is_own = status.find(parent) != std::string::npos;
      const bool is_over = status.find("State:\tZ") != std::string::npos;
      if (is_own && !is_over && status.starts_with("Name:\tkubegang-pmix\n")) ++count;
    }
    return count;
  }
};

TEST_F(StepsOfPmix, EachTaskHearsWhereItsServerIs) {
  begin_node(1);
  const auto srun =
      ask(pmix("echo $PMIX_NAMESPACE $PMIX_RANK $PMIX_HOSTNAME $PMIX_GDS_MODULE "
               "${PMIX_SERVER_URI41%:*}; read a; echo $a",
               3, 2));
  ASSERT_TRUE(wait_for([&] { return srun->has(Kind::kCreated); }));
  // Input that comes before the tasks waits for them.
  srun->channel->send({.kind = Kind::kInput, .rank = kAllTasks, .text = "hi\n"});
  ASSERT_TRUE(wait_for([&] { return srun->has(Kind::kDone); }));
  const auto line = [](const char* rank, const char* node) {
    return "slurm.pmix.1001.0 " + std::string{rank} + " " + node + " hash pmix-server.";
  };
  EXPECT_THAT(srun->output(), HasSubstr("0:" + line("0", "n1")));
  EXPECT_THAT(srun->output(), HasSubstr("1:" + line("1", "n1")));
  EXPECT_THAT(srun->output(), HasSubstr("2:" + line("2", "n2")));
  EXPECT_THAT(srun->output(), HasSubstr(";tcp4://127.0.0.1\nhi\n"));
  EXPECT_TRUE(wait_for([] { return services() == 0; }));
}

TEST_F(StepsOfPmix, NothingIsLeftOfAStepThatIsEnded) {
  begin_node(1);
  auto srun = ask(pmix("echo here; exec sleep 1000", 2, 2));
  ASSERT_TRUE(wait_for([&] { return srun->output() == "0:here\n1:here\n"; }));
  EXPECT_EQ(services(), 2);
  srun.reset();
  EXPECT_TRUE(wait_for([] { return services() == 0; }));
}

TEST_F(StepsOfPods, ManyStepsAtOnceHaveTheirOwnTasks) {
  begin_node(1);
  begin_node(2);
  std::vector<std::unique_ptr<Srun>> all;
  for (int i = 0; i < 40; ++i) {
    StepRequest request = shell("echo $SLURM_STEP_ID; sleep 0.02", 2, 2);
    request.is_exact = true;
    all.push_back(ask(request));
  }
  ASSERT_TRUE(wait_for([&] {
    return std::ranges::all_of(all, [](const auto& srun) { return srun->has(Kind::kDone); });
  }));
  for (const auto& srun : all) {
    std::uint32_t id = 0;
    for (const Message& message : srun->heard) {
      if (message.kind == Kind::kCreated) id = message.number;
    }
    const std::string line = std::to_string(id) + "\n";
    EXPECT_EQ(srun->output(), "0:" + line + "1:" + line);
  }
}

}  // namespace
}  // namespace launcher
