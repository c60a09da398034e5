// A PMI server: how the tasks of a step that were started by `srun --mpi=pmi2` find each other.
// It speaks PMI-1 and PMI-2; which of them a task speaks follows from its first words. MPICH,
// MVAPICH and Intel MPI have clients of one or the other. Pure: bytes of tasks in, bytes out.
//
// SOURCE: "PMI v2 API" and the simple PMI wire protocol of the MPICH project.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace launcher {

// A message of a task is longer than any that its client sends (keys of 64 bytes, values of 1,024,
// ports of 1,024), or the task has put more than a step of 65,536 tasks puts: its connection ends.
inline constexpr std::size_t kPmiMessageBytesMax = 64U << 10U;
inline constexpr std::size_t kPmiStoreBytesMax = 256U << 20U;

class PmiServer {
 public:
  struct Reply {
    std::uint32_t rank = 0;
    std::string bytes;
    friend bool operator==(const Reply&, const Reply&) = default;
  };
  // The task has asked for the end of the step.
  struct Abort {
    std::uint32_t rank = 0;
    std::int32_t exit_code = 1;
    std::string message;
    friend bool operator==(const Abort&, const Abort&) = default;
  };

  // `job` names the step to its tasks ("1001.0"). `nodes`: the node of each rank, as an index.
  PmiServer(std::string job, std::vector<std::uint32_t> nodes);

  // Takes what the task wrote, in pieces of any size; adds what is to be sent. False: it does not
  // speak PMI, and is to be cut off. REQUIRES: rank is one of the step's.
  bool add(std::uint32_t rank, std::string_view bytes, std::vector<Reply>& replies);
  const std::optional<Abort>& abort() const { return abort_; }

 private:
  using Fields = std::vector<std::pair<std::string, std::string>>;
  struct Task {
    std::string begun;  // of a message that has not come as a whole
    int version = 0;    // 0: it has said nothing yet
    bool in_barrier = false;
    std::string thread;  // PMI-2: of the fence that it waits in
  };
  // Waits for what a task of its node will put.
  struct Waiting {
    std::uint32_t rank = 0;
    std::string key;
    std::string thread;
  };

  bool take_line(std::uint32_t rank, std::string_view line, std::vector<Reply>& replies);
  bool answer_1(std::uint32_t rank, const Fields& fields, std::vector<Reply>& replies);
  bool answer_2(std::uint32_t rank, const Fields& fields, std::vector<Reply>& replies);
  Fields full_init(std::uint32_t rank) const;
  Fields job_attribute(const std::string& key) const;
  Fields node_attribute(std::uint32_t rank, const Fields& fields, bool& waits);
  Fields put_node_attribute(std::uint32_t rank, const Fields& fields, std::vector<Reply>& replies);
  bool put(const std::string& key, const std::string& value);
  void enter_barrier(std::uint32_t rank, std::string thread, std::vector<Reply>& replies);
  void end_step(std::uint32_t rank, const std::string& exit_code, const std::string& message);

  const std::string job_;
  const std::vector<std::uint32_t> nodes_;
  const std::string mapping_;
  std::vector<Task> tasks_;
  std::map<std::string, std::string> store_;
  std::map<std::pair<std::uint32_t, std::string>, std::string> node_store_;
  std::vector<Waiting> waiting_;
  std::size_t stored_bytes_ = 0;
  std::uint32_t in_barrier_ = 0;
  std::optional<Abort> abort_;
};

// PMI_process_mapping: which ranks are on one node. "(vector,(0,3,2))": from node 0 on, three nodes
// with two ranks each.
std::string pmi_process_mapping(const std::vector<std::uint32_t>& nodes);

}  // namespace launcher
