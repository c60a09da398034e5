// records.kubegang.io/v1alpha1: answers to requests that the API server passes on, after its RBAC
// has judged user, path and method. Pure, but for the database.
#pragma once

#include <map>
#include <string>

#include "records/store.h"

namespace records {

inline constexpr const char* kApiGroup = "records.kubegang.io";
inline constexpr const char* kApiVersion = "v1alpha1";

struct ApiRequest {
  std::string method{};
  std::string path{};  // decoded, without the query
  std::map<std::string, std::string> query{};
};

struct ApiAnswer {
  int status = 200;
  std::string body{};  // JSON
};

// A list of records has the parameters from, until (RFC 3339), user, jobs ("12,13"), limit and
// continue; its metadata say in `recordedSince` how far back it can see.
ApiAnswer answer_of(const ApiRequest& request, const Reader& reader, const std::string& cluster);
// Returns a Status of Kubernetes.
ApiAnswer refusal(int status, const std::string& reason, const std::string& message);

}  // namespace records
