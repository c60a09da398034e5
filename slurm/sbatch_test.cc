#include "slurm/sbatch.h"

#include <gtest/gtest.h>

#include "slurm/exit_code.h"

namespace slurm {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

// 1,000 s after the epoch, in UTC: what now+… counts from.
const Now kNow{.instant = base::Instant{seconds{1'000}}};

// Returns the request that a line of options becomes; a failure if it is refused.
sched::JobRequest read(std::string_view line) {
  const base::Result<BatchOptions> options = read_sbatch_line(line, kNow);
  EXPECT_TRUE(options.ok()) << line << ": " << (options.ok() ? "" : options.error().message);
  return options.ok() ? options->request : sched::JobRequest{};
}

// Returns the message with which the line is refused; "" and a failure if it is not.
std::string refusal(std::string_view line) {
  const base::Result<BatchOptions> options = read_sbatch_line(line, kNow);
  EXPECT_FALSE(options.ok()) << line;
  return options.ok() ? "" : options.error().message;
}

// A line without options must not set anything: partitions and QOS have defaults of their own.
TEST(Sbatch, LeavesDefaultsWhereNothingIsSaid) {
  EXPECT_EQ(read(""), sched::JobRequest{});
}

// One option in its four spellings: attached or apart, short or long.
TEST(Sbatch, BareNodeCountSetsMinimumAndMaximum) {
  sched::JobRequest want;
  want.min_nodes = 3;
  want.max_nodes = 3;
  want.nodes_given = true;
  EXPECT_EQ(read("-N3"), want);
  EXPECT_EQ(read("-N 3"), want);
  EXPECT_EQ(read("--nodes=3"), want);
  EXPECT_EQ(read("--nodes 3"), want);
  want.max_nodes = 5;
  EXPECT_EQ(read("-N3-5"), want);
}

// -n says nothing about nodes: one node may hold all tasks, or each its own.
TEST(Sbatch, TaskCountAloneLeavesTheNodeCountOpen) {
  sched::JobRequest want;
  want.tasks = 4;
  EXPECT_EQ(read("-n4"), want);
}

// The rules that need several options (finish()). Slurm starts a job on fewer nodes than it asks
// for if it has fewer tasks; without that, nodes would be given to a job that never uses them.
TEST(Sbatch, TasksPerNodeMakeTasksAndTasksBoundNodes) {
  // 2 nodes × 4 tasks. Two tasks need at most two of up to four nodes; tasks that follow from tasks
  // per node bound nothing.
  EXPECT_EQ(read("-N2 --ntasks-per-node=4").tasks, 8);
  EXPECT_EQ(read("-N1-4 -n2").max_nodes, 2);
  EXPECT_EQ(read("-N1-4 --ntasks-per-node=2").max_nodes, 4);
  EXPECT_EQ(read("-n2 --ntasks-per-node=3").tasks_per_node, 3);  // as Slurm 22.05 takes it
  EXPECT_EQ(read("-n1 --ntasks-per-node=3").tasks_per_node, 1);
  // One task needs one node, so the list's first node is left.
  EXPECT_EQ(read("-n1 -w n[2-3]").required_nodes, std::vector<std::string>{"n2"});
  EXPECT_EQ(read("-n1 -w n[2-3]").min_nodes, 1);
  const base::Result<BatchOptions> fewer = read_sbatch_line("-N4 -n2", kNow);
  ASSERT_TRUE(fewer.ok());
  EXPECT_EQ(fewer->request.min_nodes, 2);
  EXPECT_EQ(fewer->warnings, std::vector<std::string>{"--ntasks 2 on --nodes 4: 2 nodes are used"});
}

// Goal: no option is forgotten and none writes another's field. Method: every field differs from
// its default; 1:29:01 rounds up to 90 minutes.
TEST(Sbatch, ReadsEveryOptionOfTheRequest) {
  sched::JobRequest want;
  want.name = "load";
  want.partitions = {"hi", "low"};
  want.min_nodes = 2;
  want.max_nodes = 4;
  want.nodes_given = true;
  want.tasks = 8;
  want.cpus_per_task = 2;
  want.tasks_per_node = 4;
  want.tasks_per_socket = 2;
  want.tasks_per_core = 1;
  want.min_cpus_per_node = 4;
  want.sockets_per_node = 2;
  want.cores_per_socket = 4;
  want.threads_per_core = 1;
  want.overcommit = true;
  want.memory = sched::MemoryPerCpu{sched::MemoryMiB{512}};
  want.sharing = sched::Sharing::kUser;
  want.required_nodes = {"n1", "n2"};
  want.excluded_nodes = {"n7"};
  want.contiguous = true;
  want.constraint = "gpu&fast";
  want.time_limit = minutes{90};
  want.time_min = minutes{30};
  want.begin_time = kNow.instant + seconds{60};
  want.deadline = kNow.instant + std::chrono::hours{3};
  want.qos = "high";
  want.priority = sched::Priority{7};
  want.nice = -5;
  want.hold = false;
  want.requeue = false;
  EXPECT_EQ(read("-J load -p hi,low -N2-4 -n8 -c2 --ntasks-per-node=4 --ntasks-per-socket=2 "
                 "--ntasks-per-core=1 --mincpus=4 -B 2:4:1 -O --mem-per-cpu=512M --exclusive=user "
                 "-w n[1-2] -x n7 --contiguous -C 'gpu&fast' -t 1:29:01 --time-min=30 "
                 "-b now+60 --deadline=now+3hours -q high --priority=7 --nice=-5 --no-requeue"),
            want);
}

// Later options win over earlier ones; -w names three nodes, so three is the minimum. Options with
// several spellings, with an optional value, or with a value that has a meaning of its own (0,
// UNLIMITED).
TEST(Sbatch, ReadsTheRestOfItsSpellings) {
  EXPECT_EQ(read("-s").sharing, sched::Sharing::kOverSubscribe);
  EXPECT_EQ(read("--exclusive").sharing, sched::Sharing::kNode);
  EXPECT_EQ(read("-s --exclusive").sharing, sched::Sharing::kNode);  // the last one wins
  EXPECT_EQ(read("--exclusive -s").sharing, sched::Sharing::kOverSubscribe);
  EXPECT_EQ(read("--mem=0").memory,
            sched::MemoryRequest{sched::MemoryPerNode{sched::MemoryMiB{0}}});
  EXPECT_EQ(read("--nice").nice, 100);  // R9.6
  EXPECT_TRUE(read("-H").hold);
  EXPECT_TRUE(read("--priority=0").hold);  // R9.1
  EXPECT_EQ(read("--requeue").requeue, true);
  EXPECT_EQ(read("-t UNLIMITED").time_limit, kUnlimited);
  EXPECT_EQ(read("-t 0").time_limit, kUnlimited);
  EXPECT_EQ(read("--hint=nomultithread").threads_per_core, 1);
  EXPECT_EQ(read("-sHN2").min_nodes, 2);
  EXPECT_EQ(read("-w n[1-3]").min_nodes, 3);
  EXPECT_TRUE(read("-N1-3 --use-min-nodes").use_min_nodes);
  EXPECT_EQ(read("--tmp=2G").tmp_disk, sched::MemoryMiB{2048});
  EXPECT_EQ(read("-N1 -N2").min_nodes, 2);  // the later wins
}

// getopt_long() takes a beginning that only one option has; a whole name that is the beginning of
// others is itself. The options of this test change nothing, and most are reported.
TEST(Sbatch, TakesAbbreviationsAndWhatChangesNothing) {
  EXPECT_EQ(read("--part=hi").partitions, std::vector<std::string>{"hi"});
  EXPECT_EQ(read("--part hi").partitions, std::vector<std::string>{"hi"});
  EXPECT_EQ(read("--time-m=3").time_min, minutes{3});
  EXPECT_EQ(read("--mem=1G").memory,
            sched::MemoryRequest{sched::MemoryPerNode{sched::MemoryMiB{1024}}});
  EXPECT_EQ(read("--use").use_min_nodes, true);
  EXPECT_EQ(read("--tasks-per-node=2"), read("--ntasks-per-node=2"));
  for (const char* silent :
       {"--export=NONE", "--export=none", "--ignore-pbs", "--hint=multithread"}) {
    const base::Result<BatchOptions> options = read_sbatch_line(silent, kNow);
    ASSERT_TRUE(options.ok()) << silent;
    EXPECT_TRUE(options->warnings.empty()) << silent;
  }
  for (const char* told :
       {"--get-user-env", "--get-user-env=10L", "--propagate", "--propagate=ALL", "--profile=all",
        "--cpu-freq=high", "--mem-bind=local", "--power=level", "--delay-boot=1",
        "--wait-all-nodes=1", "--hint=compute_bound", "--hint=memory_bound"}) {
    const base::Result<BatchOptions> options = read_sbatch_line(told, kNow);
    ASSERT_TRUE(options.ok()) << told;
    EXPECT_EQ(options->request, sched::JobRequest{}) << told;
    EXPECT_EQ(options->warnings.size(), 1U) << told;
  }
}

TEST(Sbatch, ReadsASignal) {
  const auto signal_of = [](const std::string& line) {
    return read_sbatch_line(line, kNow)->signal;
  };
  const NoticeSignal usr1{.name = "SIGUSR1"};
  EXPECT_EQ(signal_of("--signal=USR1"), usr1);
  EXPECT_EQ(signal_of("--signal=sigusr1"), usr1);
  EXPECT_EQ(signal_of("--signal=10"), usr1);
  EXPECT_EQ(
      signal_of("--signal B:TERM@120"),
      (NoticeSignal{.name = "SIGTERM", .before = std::chrono::seconds{120}, .to_script = true}));
  EXPECT_EQ(signal_of("-N1"), std::nullopt);
}

// Shifter's spelling is that of its own images; a registry has those of the type docker.
TEST(Sbatch, ReadsTheImageAsShifterWritesIt) {
  const auto image_of = [](std::string_view line) {
    return read_sbatch_line(line, kNow).value().container_image;
  };
  EXPECT_EQ(image_of("--image=docker:nersc/root:6"), "nersc/root:6");
  EXPECT_EQ(image_of("--image docker://nersc/root:6"), "nersc/root:6");
  EXPECT_EQ(image_of("--image=quay.io/a/b@sha256:0"), "quay.io/a/b@sha256:0");
  EXPECT_EQ(image_of("--container-image=a --image=b"), "b");
  EXPECT_EQ(image_of("-N1"), std::nullopt);
  EXPECT_EQ(refusal("--image=docker:"), "--image: names no image");
}

// Each message names the option, the value, and what to do. Options that would
// change how the job runs and that kubegang lacks are refused, never ignored: a job without its GPU
// or its dependency would do harm.
TEST(Sbatch, RefusesWithASentence) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      // Values and spellings.
      {"-N0", "-N \"0\": must be from 1 to 1000000"},
      {"-N3-2", "-N \"3-2\": the minimum is above the maximum"},
      {"-N", "-N: a value is missing"},
      {"--nodes", "--nodes: a value is missing"},
      {"--contiguous=yes", "--contiguous: takes no value"},
      {"--frobnicate", "--frobnicate: unknown option"},
      {"-Z", "-Z: unknown option"},
      {"--=x", "--: unknown option"},
      {"--hint=bogus",
       "--hint \"bogus\": unknown; allowed are nomultithread, multithread, compute_bound and "
       "memory_bound"},
      // Abbreviations that several options have.
      {"--mem-per=1G", "--mem-per: may be any of --mem-per-cpu, --mem-per-gpu"},
      {"--tim=3", "--tim: may be any of --time, --time-min"},
      {"--over", "--over: may be any of --overcommit, --oversubscribe"},
      {"script.sh", "\"script.sh\": not an option; options begin with -"},
      // Options of sbatch that kubegang does not support.
      {"--array=4-0", "--array \"4-0\": the range runs backwards"},
      {"-d expand:1", "-d \"expand:1\": expand is not supported; leave it out"},
      {"--kill-on-invalid-dep=maybe", "--kill-on-invalid-dep \"maybe\": must be yes or no"},
      {"--gres-flags=one-task-per-sharing",
       "--gres-flags=one-task-per-sharing: not supported yet; leave it out"},
      {"--switches=0", "--switches \"0\": must be from 1 to 1000000"},
      {"--switches=x@1", "--switches \"x\": not a whole number"},
      {"--signal=USR9", "--signal \"USR9\": no such signal; write it like USR1 or 10"},
      {"--sig=R:USR1", "--signal \"R:USR1\": R: is about reservations, which are not supported"},
      {"--signal=B:USR1@x", "--signal \"x\": not a whole number"},
      {"--reboot", "--reboot: not supported yet; leave it out"},
      {"--image=id:0f3",
       "--image \"id:0f3\": is only known to Shifter; name an image of a registry"},
      {"--uid=0", "--uid: not supported; a Job's pod template can say which user its pods run as"},
      {"-N1 : -N2", ":: heterogeneous jobs are not supported"},  // P10
      // Values that are wrong in themselves or do not go with another option.
      {"-w n[1", "-w: hostlist \"n[1\": no ']' for the '[' at character 2"},
      {"-N1 -w n[1-2]", "--nodelist: names 2 nodes, but at most 1 are asked for"},
      {"--exclusive=mcs", "--exclusive=mcs: not supported; --exclusive and --exclusive=user are"},
      {"--mem=2G --mem-per-cpu=1G", "--mem and --mem-per-cpu exclude each other"},
      {"-p a,,b", "-p \"a,,b\": an empty partition name"},
      {"-t 5 --time-min=6", "--time-min: longer than --time"},
  };
  for (const auto& [line, want] : cases) EXPECT_EQ(refusal(line), want) << line;
}

// The directive behind `hostname` does not count, and the command line is added to the script's
// options. The comment behind -N2 is cut, the '#' in quotes is not.
TEST(SbatchScript, ReadsDirectivesUpToTheFirstCommand) {
  SbatchReader reader{kNow};
  ASSERT_TRUE(reader
                  .add_script("#!/bin/bash\n#SBATCH -N2 # two nodes\n\n# a comment\n"
                              "#SBATCH --job-name='my #job'\nhostname\n#SBATCH -N9\n")
                  .ok());
  const std::vector<std::string> command_line = {"-p", "hi"};
  ASSERT_TRUE(reader.add(command_line, "").ok());
  const base::Result<BatchOptions> options = reader.finish();
  ASSERT_TRUE(options.ok());
  EXPECT_EQ(options->request.min_nodes, 2);
  EXPECT_EQ(options->request.name, "my #job");
  EXPECT_EQ(options->request.partitions, std::vector<std::string>{"hi"});
}

// sbatch looks for #SBATCH at the beginning of a line; with blanks before it, it is a comment, and
// lines behind it are read on.
TEST(SbatchScript, IndentedDirectivesAreComments) {
  SbatchReader reader{kNow};
  ASSERT_TRUE(reader.add_script("#!/bin/sh\n #SBATCH --bogus\n\t#SBATCH -N9\n#SBATCH -N2\n").ok());
  EXPECT_EQ(reader.finish()->request.min_nodes, 2);
}

// As the session memory_both has it: what the script, the variables and the command line say.
TEST(SbatchScript, TwoKindsOfMemoryExcludeEachOtherButVariablesGiveWay) {
  struct Case {
    std::string script, variable, option;
    std::optional<sched::MemoryRequest> want;  // nullopt: refused
  };
  const auto node = [](int mib) {
    return sched::MemoryRequest{sched::MemoryPerNode{sched::MemoryMiB{mib}}};
  };
  const auto cpu = [](int mib) {
    return sched::MemoryRequest{sched::MemoryPerCpu{sched::MemoryMiB{mib}}};
  };
  const std::vector<Case> cases = {
      {"--mem=100", "", "--mem-per-cpu=50", std::nullopt},
      {"--mem-per-cpu=50", "", "--mem=100", std::nullopt},
      {"--mem=100", "", "--mem=200", node(200)},
      {"--mem-per-cpu=50", "--mem-per-cpu=60", "", cpu(60)},
      {"--mem=100", "--mem-per-cpu=60", "", node(100)},
      {"--mem-per-cpu=50", "--mem-per-cpu=60", "--mem=200", node(200)},
      {"--mem-per-cpu=50", "--mem=300", "", cpu(50)},
      {"--mem=100", "--mem=300", "--mem-per-cpu=70", cpu(70)},
  };
  for (const Case& each : cases) {
    SbatchReader reader{kNow};
    ASSERT_TRUE(reader.add_script("#!/bin/sh\n#SBATCH " + each.script + "\n").ok());
    if (!each.variable.empty()) {
      ASSERT_TRUE(reader.add_variables(std::vector{each.variable}).ok());
    }
    if (!each.option.empty()) {
      ASSERT_TRUE(reader.add(std::vector{each.option}, "").ok());
    }
    const auto options = reader.finish();
    ASSERT_EQ(options.ok(), each.want.has_value()) << each.script << each.variable << each.option;
    if (each.want) {
      EXPECT_EQ(options->request.memory, *each.want) << each.script << each.variable;
    } else {
      EXPECT_EQ(options.error().code, kEndsWithOne);
    }
  }
}

// Lines count from 1, blank ones too. A word without dashes in a directive is not an option either.
TEST(SbatchScript, NamesTheLine) {
  SbatchReader reader{kNow};
  const base::Status status = reader.add_script("#!/bin/sh\n\n#SBATCH --nodes=many\n");
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().message, "line 3: --nodes \"many\": not a whole number");
  for (const char* word : {"hetjob", "packjob"}) {
    EXPECT_EQ(SbatchReader{kNow}.add_script("#SBATCH " + std::string{word} + "\n").error().message,
              "line 1: " + std::string{word} + ": heterogeneous jobs are not supported");
  }
}

// A script is mended in one go. Text behind the first mistake of a line is not read.
TEST(SbatchScript, TellsAllWrongLinesAtOnce) {
  const base::Status status = SbatchReader{kNow}.add_script(
      "#!/bin/sh\n#SBATCH --gpu-freq=high --bogus\n#SBATCH -N2\n"
      "#SBATCH -J 'a\n#SBATCH --array=9-1\nhostname\n#SBATCH -N0\n");
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().message,
            "line 2: --gpu-freq: not supported yet; leave it out\n"
            "  line 4: \" -J 'a\": the quote ' is not closed\n"
            "  line 5: --array \"9-1\": the range runs backwards");
}

TEST(Sbatch, ReadsLicenses) {
  const auto licenses = [](const std::string& list) {
    const std::vector<std::string> words{"-L", list};
    SbatchReader reader{Now{}};
    const base::Status status = reader.add(words, "");
    if (!status) return status.error().message;
    return sched::to_string(reader.finish()->request.licenses);
  };
  EXPECT_EQ(licenses("foo"), "foo:1");
  EXPECT_EQ(licenses("foo:2,bar"), "bar:1,foo:2");
  EXPECT_EQ(licenses("foo:2;bar@host"), "bar@host:1,foo:2");
  EXPECT_EQ(licenses("foo,foo:2"), "foo:3");  // twice is the sum
  EXPECT_EQ(licenses("foo:0"), "");
  EXPECT_EQ(licenses("foo:1|bar:1"),
            "-L \"foo:1|bar:1\": one license or another is not supported; name those it "
            "needs");
  EXPECT_EQ(licenses("foo:-1"), "-L \"-1\": must be from 0 to 1000000");
  EXPECT_EQ(licenses("foo :1"), "-L \"foo :1\": write name[:count], such as foo:2,bar");
}

TEST(Sbatch, ReadsDevices) {
  const auto devices = [](const char* line) { return to_string(read(line).devices); };
  EXPECT_EQ(devices("--gres=gpu"), "gpu:1");
  EXPECT_EQ(devices("--gres=gpu:2"), "gpu:2");
  EXPECT_EQ(devices("--gres=gpu:a100"), "gpu:a100:1");
  EXPECT_EQ(devices("--gres=gpu:a100:4,nic:1"), "gpu:a100:4,nic:1");
  EXPECT_EQ(devices("--gres=gres:gpu:a:1,gpu:b:2"), "gpu:a:1,gpu:b:2");
  EXPECT_EQ(devices("--gres=gpu:0"), "");
  EXPECT_NE(refusal("--gres=gpu:-1").find("write name[:type][:count]"), std::string::npos);
  EXPECT_NE(refusal("--gpus-per-node=-1").find("write name[:type][:count]"), std::string::npos);
  EXPECT_EQ(devices("--gpus-per-node=v100:2"), "gpu:v100:2");
  EXPECT_EQ(devices("--gres=nic:1 --gpus-per-node=1"), "nic:1,gpu:1");
}

// Numbers that follow from others are filled in, and nothing is divided by nodes. A request that is
// settled once more stays as it is.
TEST(Sbatch, SettlesDevicesOfJobsAndTasks) {
  const auto read_so = [](const char* line) {
    const sched::JobRequest request = read(line);
    sched::JobRequest again = request;
    EXPECT_TRUE(settle_devices(again).ok()) << line;
    EXPECT_EQ(again, request) << line;
    return request;
  };
  const sched::JobRequest of_job = read_so("-n3 --gpus=a:3");
  EXPECT_EQ(to_string(of_job.devices_of_job), "gpu:a:3");
  EXPECT_TRUE(of_job.devices.empty());
  EXPECT_FALSE(of_job.nodes_given);
  EXPECT_EQ(read_so("-N2 --gpus-per-task=1").tasks, 2);
  EXPECT_EQ(read_so("--gpus=4 --gpus-per-task=2").tasks, 2);
  EXPECT_EQ(read_so("-N1-8 --gpus=3").max_nodes, 3);
  EXPECT_EQ(read_so("--gpus=4 --gpus-per-node=2").min_nodes, 2);
  EXPECT_EQ(read_so("--gpus=3 --ntasks-per-gpu=2").tasks, 6);
  EXPECT_EQ(read_so("-N2 --gpus-per-node=4 --ntasks-per-gpu=1").tasks, 8);
  EXPECT_EQ(to_string(read_so("-n4 --ntasks-per-gpu=2").devices_of_job), "gpu:2");
  EXPECT_EQ(to_string(read_so("--gpus-per-socket=a:2 --sockets-per-node=2").devices_per_socket),
            "gpu:a:2");
  const sched::PerGpu each = read_so("--gpus=2 --cpus-per-gpu=3 --mem-per-gpu=1G").per_gpu;
  EXPECT_EQ(each.cpus, 3);
  EXPECT_EQ(each.memory, sched::MemoryMiB{1024});
}

// SOURCE: recorded: sbatch takes it.
TEST(Sbatch, WarnsOfCpusOfNoGpus) {
  const BatchOptions options = read_sbatch_line("--cpus-per-gpu=2", kNow).value();
  EXPECT_EQ(options.warnings.size(), 1U);
  EXPECT_EQ(options.request, sched::JobRequest{});
}

TEST(Sbatch, RefusesDevicesAsSlurmDoes) {
  for (const char* line : {"--gpus-per-socket=1 --gpus=2",
                           "--gpus-per-socket=2 --sockets-per-node=2 --gpus=3",
                           "--gpus-per-socket=2 --sockets-per-node=2 --gpus-per-node=2",
                           "--gpus-per-task=1",
                           "-N3 --gpus=2",
                           "--gpus=3 --gpus-per-node=2",
                           "-n3 --gpus=2 --gpus-per-task=1",
                           "--ntasks-per-gpu=2",
                           "-n3 --ntasks-per-gpu=2",
                           "--gres=gpu:-1",
                           "--gres=gpu::2",
                           "--gres=gpu:a:",
                           "--gres=gpu:a:x",
                           "--gres=gpu:a:1,gpu:1",
                           "--gpus=-1",
                           "--gpus=x:y:z",
                           "--gpus-per-node=a:1:1",
                           "--gpus=1 --cpus-per-gpu=0",
                           "--gpus=1 --cpus-per-gpu=2 -c2",
                           "--gpus=1 --mem-per-gpu=100 --mem=200",
                           "-n2 --ntasks-per-gpu=x",
                           "-n2 --ntasks-per-gpu=0",
                           "-L foo:-1",
                           "-L foo:x",
                           "-L foo=2",
                           "-L foo|bar"}) {
    const auto read = read_sbatch_line(line, kNow);
    ASSERT_FALSE(read.ok()) << line;
    EXPECT_EQ(exit_code_of(read.error()), 1) << line;
  }
  const auto of_memory = read_sbatch_line("--gpus=1 --mem-per-gpu=x", kNow);
  EXPECT_EQ(exit_code_of(of_memory.error()), 255);
}

// SOURCE: recorded: -B asks for a task on each unit, --cores-per-socket does not.
TEST(Sbatch, UnitsOfANodeAreTasks) {
  const auto tasks = [](const char* line) {
    return read_sbatch_line(line, kNow).value().request.tasks;
  };
  EXPECT_EQ(tasks("-B 1:2"), 2);
  EXPECT_EQ(tasks("-N2 -B 1:2:1"), 4);
  EXPECT_EQ(tasks("-B 1:2 -n3"), 3);
  EXPECT_EQ(tasks("--cores-per-socket=2"), std::nullopt);
  EXPECT_EQ(tasks("-N1 --sockets-per-node=1"), 1);
  EXPECT_EQ(tasks("-N2 --cores-per-socket=2"), 4);
  EXPECT_EQ(tasks("-N1 --sockets-per-node=2 --cores-per-socket=3"), 6);
  EXPECT_EQ(tasks("-N1-2 --cores-per-socket=2"), std::nullopt);
  EXPECT_EQ(tasks("-N1 --cores-per-socket=2 -n1"), 1);
  EXPECT_EQ(tasks("-N1 --cores-per-socket=2 --ntasks-per-node=1"), 1);
  EXPECT_EQ(tasks("-N1"), std::nullopt);
}

// Variables of the options for the script, beside its devices.
TEST(Sbatch, KeepsTheOptionsForGpusForTheScript) {
  const auto variables = [](const char* line) {
    return read_sbatch_line(line, kNow).value().variables;
  };
  using Variables = std::map<std::string, std::string>;
  EXPECT_EQ(variables("-N2 --gpus=a100:4"), (Variables{{"SLURM_GPUS", "a100:4"}}));
  EXPECT_EQ(variables("-G4 --cpus-per-gpu=2 --mem-per-gpu=1G --ntasks-per-gpu=1"),
            (Variables{{"SLURM_GPUS", "4"},
                       {"SLURM_CPUS_PER_GPU", "2"},
                       {"SLURM_MEM_PER_GPU", "1024"},
                       {"SLURM_NTASKS_PER_GPU", "1"}}));
  EXPECT_EQ(variables("-n2 --gpus-per-task=1 --gpus-per-node=2"),
            (Variables{{"SLURM_GPUS_PER_TASK", "1"}, {"SLURM_GPUS_PER_NODE", "2"}}));
  EXPECT_EQ(variables("--gpus=2 --gpus=0"), Variables{});
  EXPECT_EQ(variables("-n2 --gpus=2 --gpu-bind=single:1"),
            (Variables{{"SLURM_GPUS", "2"}, {"SLURM_GPU_BIND", "single:1"}}));
  EXPECT_EQ(variables("--gres=gpu:2"), Variables{});
}

TEST(Sbatch, RefusesDevicesThatContradict) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"--gres=gpu:1:2:3", "--gres \"gpu:1:2:3\": write name[:type][:count]"},
      {"--gres=gpu:a:1,gpu:1",
       "--gres \"gpu:a:1,gpu:1\": names gpu with a type and without; name a type each time or "
       "never"},
      {"--gres=gpu:x:-1", "--gres \"-1\": must be from 0 to 65535"},
      {"--gpus=2 --gpu-bind=map",
       "--gpu-bind \"map\": must be none, closest, single:N, per_task:N, map_gpu:LIST or "
       "mask_gpu:LIST"},
      {"-N3 --gpus=2", "--gpus 2: less than --nodes 3"},
      {"--gpus=4 --gpus-per-node=3", "--gpus 4: is not a multiple of 3 on each node"},
      {"-N2 --gpus=6 --gpus-per-node=2",
       "--gpus 6: with 2 on each node these are 3 nodes, and --nodes asks for another number"},
      {"--gres=gpu:1 --gpus-per-node=2",
       "--gres and --gpus-per-node: ask for GPUs twice; leave one of them out"},
      {"-G1 -c2 --cpus-per-gpu=2", "--cpus-per-gpu and --cpus-per-task exclude each other"},
      {"-G1 --mem=1G --mem-per-gpu=2G",
       "--mem, --mem-per-cpu and --mem-per-gpu exclude each other"},
  };
  for (const auto& [line, want] : cases) EXPECT_EQ(refusal(line), want) << line;
}

// As the session sbatch_empty has it.
TEST(Sbatch, AnEmptyValueSaysNothing) {
  const std::string line =
      "--job-name= -C '' --dependency= --exclude= --array= --licenses= --qos= --account= --chdir= "
      "--export= --comment= --reservation=";
  EXPECT_EQ(read(line), sched::JobRequest{});
  EXPECT_TRUE(read_sbatch_line(line, kNow)->has_empty_name);
  EXPECT_FALSE(read_sbatch_line("--job-name= -J a", kNow)->has_empty_name);
  EXPECT_TRUE(read_sbatch_line("-J a --job-name=", kNow)->has_empty_name);
  for (const char* one : {"--partition=", "--nodelist=", "--begin=", "--ntasks=", "--gres="}) {
    EXPECT_NE(refusal(one), "") << one;
  }
}

TEST(Sbatch, NamesOfNodesMayHaveBlanksBetweenThem) {
  const std::vector<std::string> names{"n1", "n2", "n3"};
  for (const char* list : {"'n1, n[2-3]'", "'n1 n2 n3'", "',n1,,n[2-3],'"}) {
    EXPECT_EQ(read(std::string{"-x "} + list).excluded_nodes, names) << list;
  }
  EXPECT_NE(refusal("-x 'n[1, 2]'"), "");
}

// Slurm's own spellings of "none" ask for nothing, and a size may have a suffix.
TEST(Sbatch, TakesWhatAsksForNothingAndSizesWithASuffix) {
  for (const char* line : {"--gres=none", "--gres=NONE", "--gpus=0", "-G0", "--gpus-per-node=0"}) {
    EXPECT_EQ(read(line), sched::JobRequest{}) << line;
  }
  EXPECT_EQ(read("-N 1k").min_nodes, 1024);
  EXPECT_EQ(read("-N 1-2K").max_nodes, 2048);
  EXPECT_EQ(refusal("-N 1m"), "-N \"1048576\": must be from 1 to 1000000");
  EXPECT_EQ(refusal("-N 1,5,9"), "-N \"1,5,9\": a list of sizes is not supported; write MIN-MAX");
  EXPECT_EQ(refusal("--tres-per-task=cpu:1"), "--tres-per-task: not supported yet; leave it out");
}

}  // namespace
}  // namespace slurm
