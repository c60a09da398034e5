// Runs kubectl-gang in process against the in-memory API server.
#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "api/job.h"
#include "api/node_timetable.h"
#include "api/partition.h"
#include "cli/cluster/session.h"
#include "cli/program.h"
#include "kube/api/batch_job.h"
#include "kube/testing/api_server/api_server.h"
#include "kube/testing/api_server/in_process_transport.h"
#include "kube/testing/manual_clock.h"
#include "kube/testing/manual_sleeper.h"

namespace cli {

// Sleeps on a manual clock. While a command sleeps, jobs get the numbers that an operator would
// give them.
class NumbersJobs final : public kube::Sleeper {
 public:
  NumbersJobs(kube::ManualSleeper& sleeper, const kube::Client& client)
      : sleeper_{sleeper}, client_{client} {}
  base::Status sleep(base::Duration duration, std::stop_token stop) override;

 private:
  kube::ManualSleeper& sleeper_;
  const kube::Client& client_;
  std::int64_t numbers_ = 0;
};

class ProgramTest : public testing::Test {
 protected:
  struct Ran {
    int code = 0;
    std::string out;
    std::string err;
  };

  ProgramTest();

  Ran run(const std::vector<std::string>& arguments);

  base::Instant now() const { return clock_.wall(); }

  // Adds a job as the operator would leave it: spec and status as given.
  kube::Job add_job(const std::string& ns, const std::string& name, kube::JobSpec spec,
                    kube::JobStatus status, const kube::ObjectMeta& metadata = {});

  kube::BatchJob add_batch_job(const std::string& ns, const std::string& name,
                               const std::string& managed_by);
  // Returns the metadata of a job that is an attempt at it.
  static kube::ObjectMeta attempt_at(const kube::BatchJob& batch, const std::string& number);

  // Adds nodes of eight CPUs each, which are Ready.
  void add_nodes(const std::string& hostlist);

  static kube::Allocation on(const std::string& nodes);
  static kube::Conditions ready();

  kube::ManualClock clock_;
  kube::ManualSleeper sleeper_{clock_};
  devcluster::ApiServer server_{clock_};
  devcluster::InProcessTransport transport_{server_};
  kube::Client client_{transport_, clock_, sleeper_, {}};
  NumbersJobs numbers_jobs_{sleeper_, client_};
  kube::Sleeper* session_sleeper_ = &sleeper_;   // of commands that wait
  std::optional<std::size_t> terminal_columns_;  // nothing: what is written goes to no terminal
};

}  // namespace cli
