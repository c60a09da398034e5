#include "records/acknowledger.h"

#include <nlohmann/json.hpp>
#include <string>
namespace records {
namespace {

constexpr base::Duration kRest = std::chrono::seconds{2};

}  // namespace

base::Duration Acknowledger::step() {
  const kube::RecordedVersions stored = stored_();
  // A lower one, too: the API server's store was set back.
  if (stored == told_) return kRest;
  const nlohmann::json patch{
      {"metadata",
       {{"annotations",
         {{std::string{kube::kRecordedVersion}, std::to_string(stored.version)},
          {std::string{kube::kRecordedSince}, std::to_string(stored.since)}}}}}};
  const auto written = client_.patch<kube::Lease>(lease_, patch);
  if (written) {
    told_ = stored;
  } else {
    on_error_(written.error());
  }
  return kRest;
}

}  // namespace records
