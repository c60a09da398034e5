#include "cli/scenario.h"

#include <gtest/gtest.h>

namespace cli {
namespace {

using std::chrono::seconds;

// Returns a file around these inputs; its first input is on line 8.
std::string file_with(const std::string& inputs) {
  return "nodes:\n"
         "- {name: 'n[1-2]', cores: 4, memory: 8000}\n"
         "conf:\n"
         "  SelectType: select/linear\n"
         "partitions:\n"
         "- {name: p, Default: 'YES', OverSubscribe: FORCE}\n"
         "inputs:\n" +
         inputs;
}

// Returns the message with which the file is refused; "" and a failure if it is not.
std::string refusal(const std::string& text) {
  const base::Result<simulate::Scenario> read = read_scenario(text, "f");
  EXPECT_FALSE(read.ok()) << text;
  return read.ok() ? "" : read.error().message;
}

// One of each section; the fields that are looked at are those that the file does not state as it
// is read: defaults, expanded hostlists, numbers of jobs.
TEST(ScenarioFile, ReadsWhatHappens) {
  const base::Result<simulate::Scenario> read =
      read_scenario("name: x\nend: 9\n" + file_with("- {t: 0.5, submit: A, args: -N2, run: 7}\n"
                                                    "- {t: 1, hold: A}\n"),
                    "f");
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read->name, "x");
  EXPECT_FALSE(read->configuration.cluster.recorded_clock);
  EXPECT_EQ(read->end, base::Instant{seconds{9}});
  EXPECT_EQ(read->nodes.size(), 2U);
  EXPECT_EQ(read->nodes[1].cpus, 4);
  // The recordings were made with these values if a file says nothing.
  EXPECT_EQ(read->configuration.cluster.scheduler, sched::SchedulerType::kBuiltin);
  EXPECT_FALSE(read->configuration.cluster.task_affinity);
  EXPECT_EQ(read->configuration.partitions[0].nodes, (std::vector<std::string>{"n1", "n2"}));
  ASSERT_EQ(read->jobs.size(), 1U);
  EXPECT_EQ(read->jobs[0].label, "A");
  EXPECT_EQ(read->jobs[0].work, seconds{7});
  EXPECT_EQ(read->jobs[0].request.min_nodes, 2);
  EXPECT_EQ(read->jobs[0].request.id, sched::JobId{1});
  ASSERT_EQ(read->inputs.size(), 2U);
  EXPECT_EQ(read->inputs[0].at, base::Instant{std::chrono::milliseconds{500}});
  EXPECT_FALSE(read->timing_is_told());
}

// By a clock that showed 20 s and 700 ms at 0, a job that is submitted at 1.5 with now+10 begins at
// the clock's second 32: sbatch counts in whole seconds.
TEST(ScenarioFile, ReadsTheClock) {
  const base::Result<simulate::Scenario> read = read_scenario(
      "clock: 20.7\n" + file_with("- {t: 1.5, submit: A, args: -b now+10, run: 7}\n"), "f");
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read->configuration.cluster.recorded_clock, std::chrono::milliseconds{20'700});
  EXPECT_EQ(read->jobs[0].request.begin_time, base::Instant{std::chrono::milliseconds{11'300}});
  EXPECT_EQ(refusal("clock: 60\n" + file_with("")),
            "f:1: clock: must be the second of a minute, less than 60");
}

// A file that says when the scheduler passes is replayed; any other plays by itself. Both at once
// would be two clocks in one run.
TEST(ScenarioFile, TimingIsToldByAPassASliceOrAnEnd) {
  for (const char* input : {"- {t: 1, pass: main}\n", "- {t: 1, slice: true}\n"}) {
    EXPECT_TRUE(read_scenario(file_with(input), "f")->timing_is_told()) << input;
  }
}

// A recording is decided as Slurm 22.05 decided it, a file that says so too, and any other as the
// operator decides.
TEST(ScenarioFile, SaysWhoseDecisionsAreWanted) {
  const auto as_recorded = [](const std::string& text) {
    const base::Result<simulate::Scenario> read = read_scenario(text, "f");
    EXPECT_TRUE(read.ok()) << read.error().message;
    return read->configuration.cluster.quirks.any();
  };
  const std::string plain = file_with("- {t: 0, submit: A, run: 7}\n");
  EXPECT_FALSE(as_recorded(plain));
  EXPECT_TRUE(as_recorded("as: slurm-22.05\n" + plain));
  EXPECT_TRUE(as_recorded(file_with("- {t: 1, pass: main}\n")));
  EXPECT_EQ(
      refusal("as: slurm-23.02\n" + plain),
      "f:1: as \"slurm-23.02\": must be slurm-22.05, or left out: then the scenario is decided "
      "as the operator decides");
}

// Every message has the place, the wrong word, and what would be right. "f" is the file's name. The
// cases go from the top of a file to its inputs: unknown keys, missing sections, values that
// Slurm's own readers refuse, names that nothing has, and text that is not YAML or not UTF-8.
TEST(ScenarioFile, NamesFileLineKeyAndWhatIsAllowed) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"nodes: []\npartitions: []\ninput: []\n",
       "f:3: key \"input\": unknown; allowed are name, description, as, nodes, conf, "
       "clock, partitions, accounting, users, accounts, qos, topology, end and inputs"},
      {"nodes: []\npartitions: []\ninputs: []\n",
       "f:1: nodes: must be a list of at least one node"},
      {"nodes: 1\npartitions: []\n", "f:1: inputs: is missing"},
      {"nodes:\n- {name: n1, sockts: 2}\npartitions: []\ninputs: []\n",
       "f:2: key of a node \"sockts\": unknown; allowed are name, sockets, cores, threads, memory, "
       "cpus, features, weight, gres and tmpdisk"},
      {"nodes:\n- {name: n1}\n- {name: n1}\npartitions: []\ninputs: []\n",
       "f:2: nodes: \"n1\" appears twice"},
      {"nodes:\n- {name: n1}\nconf:\n  SchedulerTimeSlice: 1\npartitions: []\ninputs: []\n",
       "f:4: SchedulerTimeSlice \"1\": must be from 5 to 65533 seconds"},
      {"nodes:\n- {name: n1}\npartitions:\n- {name: p, Nodes: n2}\ninputs: []\n",
       "f:4: partition p: Nodes: there is no node \"n2\""},
      {"nodes:\n- {name: n1}\nqos:\n- {Name: a}\n- {Name: b, Preempt: c}\npartitions:\n- {name: "
       "p}\ninputs: []\n",
       "f:5: QOS \"b\": Preempt: there is no QOS c: create it or remove it here"},
      {"nodes:\n- {name: n1}\npartitions:\n- {name: p}\n- {name: q, QOS: c}\ninputs: []\n",
       "f:5: partition \"q\": QOS: there is no QOS c: create it or choose another"},
      {"nodes:\n- {name: n1}\nconf:\n  PreemptMode: CANCEL\npartitions:\n- {name: p}\ninputs: []\n",
       "f:4: PreemptMode: CANCEL without a PreemptType: set PreemptType, or PreemptMode to OFF"},
      {"nodes:\n- {name: n1, cores: two}\npartitions: []\ninputs: []\n",
       "f:2: cores \"two\": not a whole number"},
      {"nodes:\n- {name: n1, memory: -1}\npartitions: []\ninputs: []\n",
       "f:2: memory \"-1\": not a size of memory; write a whole number with K, M, G or T (MiB "
       "without a "
       "unit)"},
      {"", "f:1: a scenario: must be a map of keys and values"},
      {file_with("- {t: 0, submit: caf\xE9}\n"), "f:8: must be UTF-8"},
      {"nodes: [\n", "f:2: end of sequence flow not found"},
  };
  for (const auto& [text, want] : cases) EXPECT_EQ(refusal(text), want);
}

// Beside what the file names there are the account acct, whose jobs root submits, and root itself.
TEST(ScenarioFile, ReadsAccountsAndTheirUsers) {
  const std::string head =
      "nodes:\n- {name: n1}\npartitions:\n- {name: p}\ninputs: []\naccounts:\n";
  const base::Result<simulate::Scenario> read =
      read_scenario(head +
                        "- {name: a, fairshare: 5}\n- {name: b, parent: a, GrpJobs: 2}\n"
                        "users:\n- {name: ada, account: b}\n- bob\n",
                    "f");
  ASSERT_TRUE(read.ok()) << read.error().message;
  const sched::Configuration& configuration = read->configuration;
  ASSERT_EQ(configuration.accounts.size(), 3U);
  EXPECT_EQ(configuration.accounts[2].parent, "a");
  EXPECT_EQ(configuration.accounts[2].limits.group_jobs, 2);
  ASSERT_EQ(configuration.users.size(), 4U);
  EXPECT_EQ(configuration.users[2].account, "b");
  EXPECT_EQ(configuration.users[3].account, "acct");
  EXPECT_EQ(refusal(head + "- {name: b, parent: c}\n"),
            "f:7: account \"b\": there is no account \"c\" above it");
}

// A user with shares makes the file one with accounts, also for those who stand before.
TEST(ScenarioFile, OrderOfUsersDoesNotMatter) {
  const base::Result<simulate::Scenario> read =
      read_scenario("users: [bob, {name: ada, fairshare: 2}]\n" +
                        file_with("- {t: 0, submit: A, user: bob, run: 1}\n"),
                    "f");
  ASSERT_TRUE(read.ok()) << read.error().message;
  const std::vector<sched::UserConfig>& users = read->configuration.users;
  ASSERT_EQ(users.size(), 4U);  // with root in two accounts
  EXPECT_EQ(users[2].name, "ada");
  EXPECT_EQ(users[3].name, "bob");
  EXPECT_EQ(users[3].account, "acct");
}

// Users write inputs by hand, so every mistake names the line and, where there are few, all allowed
// words.
TEST(ScenarioFile, NamesWhatIsWrongWithAnInput) {
  const std::string submit = "- {t: 0, submit: A}\n";
  const std::vector<std::pair<std::string, std::string>> cases = {
      {file_with("- {t: 0, submit: A, nodes: 2}\n"),
       "f:8: key of the input submit \"nodes\": unknown; allowed are args, run, user, mode, t, "
       "refused and submit"},
      {file_with("- {t: 0, sumbit: A}\n"),
       "f:8: input \"sumbit\": unknown; allowed are submit, pass, slice, end, timeLimit, suspend, "
       "resume, hold, release, cancel, requeue, node and scontrol"},
      {file_with(submit + "- {t: 1, end: B}\n"),
       "f:9: end \"B\": no such job was submitted before"},
      {file_with(submit + "- {t: 1, submit: A}\n"),
       "f:9: submit \"A\": a job of this name was submitted before"},
      {file_with("- {t: 5, pass: main}\n- {t: 4, pass: main}\n"),
       "f:9: t: is before that of the input above it"},
      {file_with("- {t: -1, pass: main}\n"), "f:8: t \"-1\": must be seconds from 0 to 3153600000"},
      {file_with("- {t: .nan, pass: main}\n"),
       "f:8: t \".nan\": must be seconds from 0 to 3153600000"},
      {file_with("- {submit: A}\n"), "f:8: t: is missing"},
      {file_with("- {t: 0, pass: maine}\n"),
       "f:8: pass \"maine\": unknown; allowed are main, backfill and both"},
      {file_with("- {t: 0, submit: A, args: -N0}\n"),
       "f:8: args: -N \"0\": must be from 1 to 1000000"},
      {file_with("- {t: 0, submit: A, args: -p q}\n"), "f:8: args: there is no partition \"q\""},
      {file_with("- {t: 0, submit: A, args: -w n7}\n"), "f:8: args: there is no node \"n7\""},
      {file_with("- {t: 0, submit: A, args: --qos=x}\n"), "f:8: args: there is no QOS \"x\""},
      {file_with("- {t: 0, node: n7, state: DOWN}\n"), "f:8: node: there is no node \"n7\""},
      {file_with("- {t: 0, node: n1, state: OFF}\n"),
       "f:8: state \"OFF\": unknown; allowed are DOWN, DRAIN and RESUME"},
      {file_with("- {t: 0, t: 1}\n"), "f:8: an input: the key \"t\" appears twice"},
      {file_with("- {t: 0, scontrol: shutdown}\n"),
       "f:8: scontrol \"shutdown\": supported are reconfigure, update PartitionName=… KEY=VALUE … "
       "and update JobId=… KEY=VALUE …"},
      {file_with("- {t: 0, submit: A, run: 5}\n- {t: 0, submit: B}\n"),
       "f:9: submit \"B\": say how many seconds it runs (run), or when the scenario ends (end)"},
      {file_with("- {t: 0, submit: A, mode: batch}\n"),
       "f:8: mode \"batch\": unknown; allowed are ignoreterm"},
      {file_with("- {t: 0, submit: A, run: soon}\n"),
       "f:8: run \"soon\": must be seconds from 0 to 3153600000"},
      {file_with("- {t: 0, submit: A, args: -t x}\n"),
       "f:8: args: -t \"x\": not a time; write minutes, M:S, H:M:S, D-H, D-H:M, D-H:M:S or "
       "UNLIMITED"},
      {file_with("- {t: 0, submit: A, args: --frobnicate}\n"),
       "f:8: args: --frobnicate: unknown option"},
      {file_with(submit + "- {t: 1, suspend: B}\n"),
       "f:9: suspend \"B\": no such job was submitted before"},
      {file_with(submit + "- {t: 1, scontrol: 'update JobId={B} Priority=3'}\n"),
       "f:9: {B}: no such job was submitted before"},
      {file_with(submit + "- {t: 1, scontrol: 'update JobId={A} Colour=3'}\n"),
       "f:9: scontrol: update JobId \"Colour\": unknown; allowed are TimeLimit, Priority, Nice, "
       "Partition, QOS and ArrayTaskThrottle"},
      {file_with(submit + "- {t: 1, scontrol: 'update PartitionName=q State=UP'}\n"),
       "f:9: scontrol: there is no partition \"q\""},
  };
  for (const auto& [text, want] : cases) EXPECT_EQ(refusal(text), want);
}

// The scheduler's own check of a configuration, with the line of the file: a scenario that no
// cluster could have would show nothing.
TEST(ScenarioFile, RefusesAnIllegalConfiguration) {
  // C1: SUSPEND needs GANG.
  const std::string text =
      "nodes:\n- {name: n1}\nconf: {PreemptMode: SUSPEND, PreemptType: preempt/partition_prio}\n"
      "partitions:\n- {name: p}\ninputs: []\n";
  EXPECT_EQ(refusal(text),
            "f:3: PreemptMode: SUSPEND needs GANG, which resumes the victims: add GANG");
}

// Names are known in the file only; the scheduler knows ids. Each change of the configuration
// builds on the one before. The configuration at the beginning stays as it was: each input has its
// own.
TEST(ScenarioFile, PutsJobIdsInThePlaceOfNames) {
  const base::Result<simulate::Scenario> read =
      read_scenario(file_with("- {t: 0, submit: A, args: -t1, run: 5}\n"
                              "- {t: 1, scontrol: 'update JobId={A} TimeLimit=2'}\n"
                              "- {t: 2, scontrol: 'update PartitionName=p OverSubscribe=FORCE:3'}\n"
                              "- {t: 3, scontrol: 'update PartitionName=p PriorityTier=7'}\n"),
                    "f");
  ASSERT_TRUE(read.ok()) << read.error().message;
  const auto& update = std::get<simulate::UpdateJob>(*read->inputs[1].happening);
  EXPECT_EQ(update.request.time_limit, std::chrono::minutes{2});
  const auto& change = std::get<simulate::SetConfiguration>(*read->inputs[3].happening);
  EXPECT_EQ(change.configuration.partitions[0].max_share, 3);  // of the change before
  EXPECT_EQ(change.configuration.partitions[0].priority_tier, 7);
  EXPECT_EQ(read->configuration.partitions[0].max_share, 4);
}

// As in Slurm: updates are not written to slurm.conf, and reading it again forgets them. The last
// update must not bring the share of the first one back.
TEST(ScenarioFile, ReconfigureTakesUpdatesBack) {
  const base::Result<simulate::Scenario> read =
      read_scenario(file_with("- {t: 2, scontrol: 'update PartitionName=p OverSubscribe=FORCE:3'}\n"
                              "- {t: 3, scontrol: reconfigure}\n"
                              "- {t: 4, scontrol: 'update PartitionName=p PriorityTier=7'}\n"),
                    "f");
  ASSERT_TRUE(read.ok()) << read.error().message;
  const auto& after = std::get<simulate::SetConfiguration>(*read->inputs[1].happening);
  EXPECT_EQ(after.configuration, read->configuration);
  const auto& later = std::get<simulate::SetConfiguration>(*read->inputs[2].happening);
  EXPECT_EQ(later.configuration.partitions[0].max_share, 4);
}

// R9.1, by scontrol. Another priority is not a command but a change of the request, which also
// takes the hold of --hold back.
TEST(ScenarioFile, PriorityZeroHolds) {
  const base::Result<simulate::Scenario> read =
      read_scenario(file_with("- {t: 0, submit: A, args: --hold, run: 5}\n"
                              "- {t: 1, scontrol: 'update JobId={A} Priority=0'}\n"
                              "- {t: 2, scontrol: 'update JobId={A} Priority=9 Partition=p'}\n"),
                    "f");
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(std::get<simulate::Command>(*read->inputs[1].happening).kind,
            simulate::CommandKind::kHold);
  EXPECT_FALSE(std::get<simulate::UpdateJob>(*read->inputs[2].happening).request.hold);
}

// The program's own run time does not matter if the file says when it ends. Without told timing the
// simulation would not know how long such a job runs, and the file is refused.
TEST(ScenarioFile, AnUnknownProgramIsFineWhereTimingIsTold) {
  EXPECT_TRUE(
      read_scenario(file_with("- {t: 0, submit: A, mode: batch}\n- {t: 1, pass: main}\n"), "f")
          .ok());
}

}  // namespace
}  // namespace cli
