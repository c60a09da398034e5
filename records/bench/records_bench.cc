// Measures what records cost: writes, and sacct's questions to a database with many of them.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "api/job.h"
#include "base/prng.h"
#include "kube/api/json_text.h"
#include "records/job_changes.h"
#include "records/store.h"

namespace records {
namespace {

constexpr std::int64_t kUsers = 200;
constexpr std::int64_t kYear = 365LL * 86'400;
constexpr std::int64_t kBegin = 1'700'000'000;

base::Instant at(std::int64_t seconds) {
  return base::instant_from_micros((kBegin + seconds) * 1'000'000);
}

// Returns an ended job somewhere in a year, as a cluster of `all` jobs a year has it.
Change ended_job(std::int64_t number, std::int64_t all) {
  base::Prng prng{static_cast<std::uint64_t>(number)};
  const auto below = [&](std::int64_t bound) {
    return static_cast<std::int64_t>(prng.below(static_cast<std::uint64_t>(bound)));
  };
  Record record{.cluster = "kubegang"};
  record.job_uid = "7c9e6679-7425-40de-944b-" + std::to_string(100'000'000'000 + number);
  record.job_id = number;
  record.ns = "team-" + std::to_string(below(20));
  record.object = record.name = "simulate-protein-" + std::to_string(below(1'000));
  record.user = "user-" + std::to_string(below(kUsers));
  record.account = "physics";
  record.qos = "normal";
  record.partition = "batch";
  record.tasks = 4;
  record.hostlist = "n[12-15]";
  record.allocated_nodes = 4;
  record.allocated_cpus = 32;
  const std::int64_t submit = number * kYear / all;
  record.submit_time = record.eligible_time = at(submit);
  record.start_time = at(submit + below(3'600));
  record.elapsed = std::chrono::seconds{below(7'200)};
  record.end_time = record.elapsed_as_of = *record.start_time + record.elapsed;
  record.state = RecordState::kCompleted;
  record.exit_code = 0;
  return Written{record};
}

std::string file_of(std::int64_t jobs) {
  return (std::filesystem::temp_directory_path() /
          ("records_bench_" + std::to_string(jobs) + ".db"))
      .string();
}

void remove(const std::string& file) {
  for (const char* end : {"", "-wal", "-shm"}) std::filesystem::remove(file + end);
}

// The same jobs by SQL alone, without indexes at first: ten million of them take minutes instead of
// an hour. Parameters: first, end, seconds of the
// beginning and of the time, jobs in it.
constexpr const char* kFill = R"(
WITH RECURSIVE numbers(i) AS (SELECT ?1 UNION ALL SELECT i + 1 FROM numbers WHERE i + 1 < ?2),
  jobs AS (SELECT i, ?3 + i * ?4 / ?5 AS submit, i * 2654435761 % 4294967296 AS x,
                  i * 40503 % 65536 AS y FROM numbers)
INSERT INTO record (cluster, jobUID, restart, jobID, namespace, object, name, user, account, qos,
  partition, nodes, tasks, devices, licenses, constraints, priority, isHeld, isScript, workDir,
  comment, hostlist, allocatedNodes, allocatedCPUs, allocatedMemory, submitTime, eligibleTime,
  startTime, endTime, elapsed, elapsedAsOf, suspended, state, reason, exitCode, preemptedBy, steps,
  changed)
SELECT 'kubegang', '7c9e6679-7425-40de-944b-' || (100000000000 + i), 0, i, 'team-' || (x % 20),
  'simulate-protein-' || (y % 1000), 'simulate-protein-' || (y % 1000), 'user-' || (x / 20 % 200),
  'physics', 'normal', 'batch', 1, 4, '', '', '', 0, 0, 0, '', '', 'n[12-15]', 4, 32, 0,
  submit * 1000000, submit * 1000000, (submit + y % 3600) * 1000000,
  (submit + y % 3600 + x % 7200) * 1000000, x % 7200 * 1000000,
  (submit + y % 3600 + x % 7200) * 1000000, 0, 'Completed', '', 0, '', '', i / 1000 FROM jobs)";

void must(const base::Status& status) {
  if (!status) std::abort();
}

// The indexes of the schema are the program's own: they are taken away and made again.
void fill(const std::string& file, std::int64_t jobs) {
  auto database = Database::open(file, Database::Access::kWrite);
  if (!database) std::abort();
  must(database->run("PRAGMA synchronous = OFF; PRAGMA cache_size = -1000000"));
  std::vector<std::pair<std::string, std::string>> indexes;
  {
    auto rows = database->prepare(
        "SELECT name, sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL");
    for (auto has_row = rows->step(); has_row && *has_row; has_row = rows->step()) {
      indexes.emplace_back(rows->text(0), rows->text(1));
    }
  }
  for (const auto& [name, sql] : indexes) must(database->run("DROP INDEX " + name));
  auto insert = database->prepare(kFill);
  constexpr std::int64_t kStep = 500'000;
  for (std::int64_t from = 0; from < jobs; from += kStep) {
    insert->bind(1, from);
    insert->bind(2, std::min(jobs, from + kStep));
    insert->bind(3, kBegin);
    insert->bind(4, kYear);
    insert->bind(5, jobs);
    must(insert->run());
  }
  for (const auto& [name, sql] : indexes) must(database->run(sql));
  must(database->run("PRAGMA wal_checkpoint(TRUNCATE)"));
}

// Writes batches of changes into an empty database; items are changes.
void write(benchmark::State& state) {
  const std::string file = file_of(0);
  remove(file);
  auto writer = Writer::open(file, at(0));
  std::int64_t number = 0;
  for (auto unused : state) {
    std::vector<Change> batch;
    for (std::int64_t i = 0; i < state.range(0); ++i) batch.push_back(ended_job(number++, 1 << 20));
    if (!writer->write(batch).ok()) state.SkipWithError("cannot write");
  }
  state.SetItemsProcessed(number);
  remove(file);
}
BENCHMARK(write)->Arg(50)->Arg(1'000)->Unit(benchmark::kMillisecond);

// A week of one of 200 users, in the middle of a year of jobs.
void week_of_a_user(benchmark::State& state) {
  const std::string file = file_of(state.range(0));
  const bool is_kept = std::getenv("KUBEGANG_KEEP_RECORDS") != nullptr;
  if (!is_kept || !std::filesystem::exists(file)) {
    remove(file);
    if (!Writer::open(file, at(0))) std::abort();
    fill(file, state.range(0));
  }
  auto reader = Reader::open(file);
  std::size_t found = 0;
  for (auto unused : state) {
    Query query{.cluster = "kubegang", .user = "user-7"};
    query.from = at(kYear / 2);
    query.until = at(kYear / 2 + 7 * 86'400);
    query.limit = 1'000;
    found = 0;
    for (;;) {
      const auto page = reader->find(query);
      if (!page) return state.SkipWithError("cannot read");
      found += page->records.size();
      if (!page->next) break;
      query.after = page->next;
    }
  }
  state.counters["records"] = static_cast<double>(found);
  state.counters["MB"] = static_cast<double>(std::filesystem::file_size(file)) / 1e6;
  if (!is_kept) remove(file);
}
// The last one needs 5 GB. With KUBEGANG_KEEP_RECORDS set its file stays in TMPDIR, and is used
// again.
BENCHMARK(week_of_a_user)
    ->Arg(100'000)
    ->Arg(1'000'000)
    ->Arg(10'000'000)
    ->Unit(benchmark::kMillisecond);

// Returns a job with a script of 4 KB, which runs.
kube::Job job_that_runs() {
  kube::Job before;
  before.metadata = {.name = "simulate-protein-7", .ns = "team-a", .uid = "7c9e6679"};
  before.metadata.annotations["kubegang.io/user"] = "user-7";
  before.spec.batch.emplace().script = std::string(4'096, 'x');
  before.spec.pod_template = *kube::RawJson::parse_text(
      R"({"spec": {"containers": [{"name": "main", "image": "registry.example/protein:1"}]}})");
  before.status.state = kube::JobState::kRunning;
  before.status.job_id = 7;
  before.status.submit_time = before.status.eligible_time = before.status.start_time = at(0);
  before.status.allocation = kube::Allocation{.hostlist = "n[12-15]", .nodes = 4, .cpus = 32};
  before.status.run_time = kube::RunTime{.elapsed = {}, .as_of = at(0)};
  return before;
}

const kube::KnownFields& fields_of_jobs() {
  static const kube::KnownFields kFields = [] {
    kube::KnownFields fields = kube::known_fields<kube::Job>();
    fields.remove({"spec", "template"});
    fields.remove({"spec", "batch", "script"});
    return fields;
  }();
  return kFields;
}

kube::Job read_job(const std::string& text) {
  const auto read = kube::JsonText::read(text, fields_of_jobs());
  auto job = kube::decode<kube::Job>(read->root());
  return std::move(*job);
}

// A change of a job as the watch hands it on: read, decoded, compared.
void change_of_a_job(benchmark::State& state) {
  const kube::Job before = job_that_runs();
  kube::Job ended = before;
  ended.status.state = kube::JobState::kCompleted;
  ended.status.end_time = at(60);
  const std::string text = kube::encode(ended).dump();
  for (auto unused : state) {
    benchmark::DoNotOptimize(changes_of(&before, read_job(text), "kubegang", at(60)));
  }
}
BENCHMARK(change_of_a_job)->Unit(benchmark::kMicrosecond);

// The states of a short job as the operator writes them: new, submitted, started, ready, ended.
std::vector<std::string> life_of_a_job(std::int64_t number) {
  kube::Job job = job_that_runs();
  job.metadata.name += std::to_string(number);
  job.metadata.uid = "7c9e6679-7425-40de-944b-" + std::to_string(100'000'000'000 + number);
  job.status.job_id = number;
  const kube::JobStatus ready = job.status;
  std::vector<std::string> states;
  const auto say = [&](const kube::JobStatus& status) {
    job.status = status;
    states.push_back(kube::encode(job).dump());
  };
  kube::JobStatus waits = ready;
  waits.state = kube::JobState::kPending;
  waits.allocation.reset();
  waits.start_time.reset();
  waits.run_time.reset();
  kube::JobStatus starts = ready;
  starts.start_time.reset();
  starts.run_time.reset();
  kube::JobStatus ended = ready;
  ended.state = kube::JobState::kCompleted;
  ended.end_time = at(60);
  say({});
  say(waits);
  say(starts);
  say(ready);
  say(ended);
  return states;
}

// The work of kubegang-records for 500 jobs a second in a tenth of a second: all that the watch
// says about 50 jobs, in its order, and one transaction. Items are jobs.
void lives_of_jobs(benchmark::State& state) {
  const std::string file = file_of(0);
  remove(file);
  auto writer = Writer::open(file, at(0));
  std::int64_t number = 0;
  for (auto unused : state) {
    state.PauseTiming();
    std::vector<std::vector<std::string>> lives;
    for (int i = 0; i < 50; ++i) lives.push_back(life_of_a_job(++number));
    state.ResumeTiming();
    std::vector<kube::Job> known(lives.size());
    std::vector<Change> batch;
    for (std::size_t step = 0; step < lives[0].size(); ++step) {
      for (std::size_t i = 0; i < lives.size(); ++i) {
        kube::Job now = read_job(lives[i][step]);
        auto changes = changes_of(step == 0 ? nullptr : &known[i], now, "kubegang", at(60));
        std::ranges::move(changes, std::back_inserter(batch));
        known[i] = std::move(now);
      }
    }
    if (!writer->write(batch).ok()) state.SkipWithError("cannot write");
  }
  state.SetItemsProcessed(number);
  remove(file);
}
BENCHMARK(lives_of_jobs)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace records

BENCHMARK_MAIN();
