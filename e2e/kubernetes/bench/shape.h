// The shape of a measurement: numbers of jobs and of their pods, on fake nodes of one size.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

namespace kubernetes_bench {

inline constexpr int kCoresPerNode = 32;
inline constexpr int kCpusPerPod = 3;  // ten pods fill a node
inline constexpr int kPodsPerNode = kCoresPerNode / kCpusPerPod;
inline constexpr int kConnections = 16;  // of the plain client; the operator has as many writers

struct Shape {
  int jobs = 0;
  int pods_per_job = 0;

  int pods() const { return jobs * pods_per_job; }
  std::string name() const { return std::to_string(jobs) + " x " + std::to_string(pods_per_job); }
  // Returns a scale-th of the pods: fewer jobs, and smaller ones only when there is but one.
  Shape scaled(int scale) const {
    const int fewer = std::max(1, jobs / scale);
    return {fewer, std::max(1, pods() / scale / fewer)};
  }
};

struct Options {
  std::string kubeconfig;           // the administrator's
  std::string operator_kubeconfig;  // of the chart's service account, under its policies
  std::string operator_program;
  std::string plugin;            // kubectl-gang
  std::string state;  // pids/ and logs/ of what run-bench started
  std::string out;
  std::string network = "None";
  std::string only;  // "shapes", "pair", "adopted", "jobs", "watch", or empty for all
  // 10,000 pods, which fill the nodes, in jobs of medium size; then few large ones, and 5,000 pods
  // as one job and as jobs of one pod each.
  std::vector<Shape> shapes{{500, 20}, {20, 500}, {1, 5000}, {5000, 1}};
  int nodes = 1000;
  int scale = 1;
};

}  // namespace kubernetes_bench
