// The order in which a pass tries jobs (3.3). Jobs are named by letters, in the order in which they
// were submitted unless a test says otherwise; the answer is the order as a word.
#include "scheduler/queue/job_queue.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

namespace sched {
namespace {

struct Waiting {
  char name;
  int tier = 1;
  std::uint32_t priority = 100;
  int submitted = 0;  // seconds
  std::string qos = {};
};

class QueueOf {
 public:
  explicit QueueOf(const std::vector<QosConfig>& qos = {}) {
    Configuration configuration;
    configuration.cluster.preempt_type =
        qos.empty() ? PreemptType::kPartitionPriority : PreemptType::kQos;
    configuration.qos = qos;
    cluster_.configure(configuration);
    cluster_.settle();
    queue_.configure(cluster_);
  }

  void add(const Waiting& waiting) { queue_.insert(record_of(waiting), cluster_); }
  void erase(const Waiting& waiting) { queue_.erase(record_of(waiting), cluster_); }
  std::string order() const {
    std::string text;
    queue_.walk([&](const QueueRecord& record) {
      text += static_cast<char>(record.job.number());
      return true;
    });
    return text;
  }
  std::size_t size() const { return queue_.size(); }

 private:
  QueueRecord record_of(const Waiting& waiting) {
    Job& job = jobs_[waiting.name];
    JobRequest request;
    request.qos = waiting.qos;
    job.request = std::make_shared<const JobRequest>(std::move(request));
    return {.tier = waiting.tier,
            .priority = Priority{waiting.priority},
            .submit_time = base::Instant{std::chrono::seconds{waiting.submitted}},
            .job = JobId{waiting.name},
            .record = &job};
  }

  Cluster cluster_;
  JobQueue queue_;
  std::map<char, Job> jobs_;
};

std::string order_of(const std::vector<Waiting>& all, const std::vector<QosConfig>& qos = {}) {
  QueueOf queue{qos};
  for (const Waiting& waiting : all) queue.add(waiting);
  return queue.order();
}

// Steps 4 to 7, each only where those before it say nothing.
TEST(JobQueue, OrdersByTierPrioritySubmissionAndId) {
  EXPECT_EQ(order_of({{.name = 'a', .tier = 1, .priority = 900}, {.name = 'b', .tier = 2}}), "ba");
  EXPECT_EQ(order_of({{.name = 'a', .priority = 1}, {.name = 'b', .priority = 2}}), "ba");
  EXPECT_EQ(order_of({{.name = 'a', .submitted = 7}, {.name = 'b', .submitted = 5}}), "ba");
  EXPECT_EQ(order_of({{.name = 'b'}, {.name = 'a'}}), "ab");
}

// A record is found again by what it was inserted with.
TEST(JobQueue, ForgetsWhatIsErased) {
  QueueOf queue;
  queue.add({.name = 'a'});
  queue.add({.name = 'b'});
  queue.erase({.name = 'a'});
  queue.erase({.name = 'a'});
  EXPECT_EQ(queue.order(), "b");
  EXPECT_EQ(queue.size(), 1U);
}

// Step 1: a QOS that may preempt another goes before it, whatever tier and priority say, …
TEST(JobQueue, PutsAPreemptingQosFirst) {
  const std::vector<QosConfig> qos{{.name = "low"}, {.name = "high", .preempt = {"low"}}};
  EXPECT_EQ(order_of({{.name = 'a', .tier = 9, .priority = 900, .qos = "low"},
                      {.name = 'b', .priority = 1, .qos = "high"}},
                     qos),
            "ba");
  // … but not before a job of neither: that one is compared as usual with the head of each lane.
  EXPECT_EQ(order_of({{.name = 'a', .qos = "low"},
                      {.name = 'b', .priority = 1, .qos = "high"},
                      {.name = 'c', .priority = 50}},
                     qos),
            "cba");
}

// Preemption is not transitive (1.4): "top" goes before "middle", not before "bottom".
TEST(JobQueue, DoesNotTakePreemptionForTransitive) {
  const std::vector<QosConfig> qos{{.name = "bottom"},
                                   {.name = "middle", .preempt = {"bottom"}},
                                   {.name = "top", .preempt = {"middle"}}};
  EXPECT_EQ(order_of({{.name = 'a', .priority = 900, .qos = "bottom"},
                      {.name = 'b', .priority = 1, .qos = "top"}},
                     qos),
            "ab");
}

// P13: QOS that may preempt each other in a circle are one group; inside it the usual order holds.
TEST(JobQueue, OrdersACircleOfQosAsUsual) {
  const std::vector<QosConfig> qos{{.name = "x", .preempt = {"y"}},
                                   {.name = "y", .preempt = {"x"}}};
  EXPECT_EQ(order_of({{.name = 'a', .priority = 1, .qos = "x"},
                      {.name = 'b', .priority = 2, .qos = "y"},
                      {.name = 'c', .priority = 3, .qos = "x"}},
                     qos),
            "cba");
}

// PRIORITY: the preempting QOS goes first only while it has a job of higher priority.
TEST(JobQueue, ComparesPrioritiesWhereTheQosHasPriority) {
  const std::vector<QosConfig> qos{{.name = "low"},
                                   {.name = "high", .preempt = {"low"}, .preempt_priority = true}};
  const Waiting low{.name = 'a', .tier = 9, .priority = 50, .qos = "low"};
  EXPECT_EQ(order_of({low, {.name = 'b', .priority = 60, .qos = "high"}}, qos), "ba");
  EXPECT_EQ(order_of({low, {.name = 'b', .priority = 40, .qos = "high"}}, qos), "ab");
}

// WITHIN: among the jobs of that QOS the higher priority goes before the higher tier.
TEST(JobQueue, PutsPriorityBeforeTiersWithinAQos) {
  const std::vector<QosConfig> within{{.name = "q", .preempt_within = true}};
  const std::vector<Waiting> jobs{{.name = 'a', .tier = 9, .priority = 1, .qos = "q"},
                                  {.name = 'b', .tier = 1, .priority = 2, .qos = "q"}};
  EXPECT_EQ(order_of(jobs, within), "ba");
  EXPECT_EQ(order_of(jobs, {{.name = "q"}}), "ab");
}

}  // namespace
}  // namespace sched
