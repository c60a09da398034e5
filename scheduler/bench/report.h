// How the results leave the program: benchmarks named NAME/SIZE and nothing more, and, behind
// everything, how the cost grows with the size.
#pragma once

#include <benchmark/benchmark.h>

#include <cstdint>
#include <map>
#include <ostream>
#include <string>
#include <vector>

namespace bench {

// Seconds of one iteration by size, by benchmark.
using Scaling = std::map<std::string, std::map<std::int64_t, double>>;

// The table; the exponent between two neighboring sizes is log(time ratio) / log(size ratio).
void print_scaling(std::ostream& out, const Scaling& scaling);

void note(Scaling& scaling, const benchmark::BenchmarkReporter::Run& run);

// Prints as `Base` does, under the names that the benchmarks were given: without "/manual_time" and
// "/iterations:…".
template <typename Base>
class PlainNames : public Base {
 public:
  explicit PlainNames(Scaling* scaling = nullptr) : scaling_{scaling} {}

  void ReportRuns(const std::vector<benchmark::BenchmarkReporter::Run>& runs) override {
    std::vector<benchmark::BenchmarkReporter::Run> plain = runs;
    for (benchmark::BenchmarkReporter::Run& run : plain) {
      run.run_name.time_type.clear();
      run.run_name.iterations.clear();
      if (scaling_ != nullptr) note(*scaling_, run);
    }
    Base::ReportRuns(plain);
  }

 private:
  Scaling* scaling_;
};

}  // namespace bench
