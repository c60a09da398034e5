#include "api/job.h"

#include <map>
#include <set>

#include "api/job_codec.h"
#include "api/packed_tasks.h"

namespace kube {

template <>
base::Result<Job> decode<Job>(const JsonView& object) {
  base::Result<Job> job = codec::decode_object<Job>(object);
  if (!job.ok()) return job;
  if (const base::Status unpacked = unpack_tasks(job->status); !unpacked.ok()) {
    return codec::decode_error(Job::kResource, job->metadata, unpacked.error().message);
  }
  return job;
}
template <>
const KnownFields& known_fields<Job>() {
  return codec::fields_of<Job>();
}

// Compares the encoded specs, not the C++ structs: a field that is added to JobSpec takes part
// without a change here, and the names are those that users know. Two levels: what lies deeper
// (for example resources.nodes) is compared and named as one field.
std::vector<std::string> changed_fields(const JobSpec& before, const JobSpec& now) {
  const auto fields = [](const JobSpec& spec) {
    nlohmann::json object = nlohmann::json::object();
    codec::Encoder encoder{object};
    visit(encoder, spec);
    // The informers drop the template and the batch script, so one of the two specs may lack them.
    // The facts of a template are compared elsewhere, and the CRD lets neither change.
    object.erase("template");
    object.erase("batch");
    std::map<std::string, nlohmann::json> flat;
    for (const auto& [name, value] : object.items()) {
      if (!value.is_object()) {
        flat["spec." + name] = value;
        continue;
      }
      for (const auto& [inner, field] : value.items()) flat["spec." + name + "." + inner] = field;
    }
    return flat;
  };
  const auto was = fields(before);
  const auto is = fields(now);
  std::set<std::string> changed;
  for (const auto& [name, value] : was) {
    if (const auto found = is.find(name); found == is.end() || found->second != value) {
      changed.insert(name);
    }
  }
  // Fields that were absent before.
  for (const auto& [name, unused] : is) {
    if (!was.contains(name)) changed.insert(name);
  }
  return {changed.begin(), changed.end()};
}

std::string to_string(const JobReference& job) {
  return job.ns + "/" + job.name;
}

nlohmann::json encode(const Job& job) {
  nlohmann::json object = codec::encode_object(job);
  if (const auto status = object.find("status"); status != object.end()) pack_tasks(*status);
  return object;
}

}  // namespace kube
