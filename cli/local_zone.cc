#include "cli/local_zone.h"

#include <ctime>

#include "kube/clock.h"

namespace cli {

slurm::Now local_now() {
  const base::Instant now = kube::SystemClock{}.wall();
  const std::time_t seconds =
      std::chrono::floor<std::chrono::seconds>(now.time_since_epoch()).count();
  std::tm local{};
  if (localtime_r(&seconds, &local) == nullptr) return {.instant = now};
  return {.instant = now, .zone = std::chrono::seconds{local.tm_gmtoff}};
}

}  // namespace cli
