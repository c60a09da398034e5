#include "api/job.h"

#include "api/job_codec.h"

namespace kube {

template <>
base::Result<Job> decode<Job>(const nlohmann::json& object) {
  return codec::decode_object<Job>(object);
}
nlohmann::json encode(const Job& job) {
  return codec::encode_object(job);
}

}  // namespace kube
