// The cluster's name server: the addresses of pods that have a subdomain, as
// <hostname>.<subdomain>.<namespace>.svc.cluster.local. It asks no other server, and looks at no
// Service: a port of one, `_<port>._tcp.<subdomain>…`, is the job's first pod's.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "base/result.h"
#include "linux/file_descriptor.h"

namespace devcluster {

// The domain of all names here.
inline constexpr const char* kClusterDomain = "cluster.local";

// The names that it knows. Thread-safe.
class PodNames {
 public:
  void set(const std::string& name, const std::string& address);
  // Unless another pod has the name by now.
  void remove(const std::string& name, const std::string& address);
  std::optional<std::string> find(const std::string& name) const;
  // `domain` is <subdomain>.<namespace>…
  void set_first(const std::string& domain, const std::string& hostname);
  std::optional<std::string> find_first(const std::string& domain) const;

 private:
  mutable std::mutex mutex_;
  std::map<std::string, std::string> addresses_;  // GUARDED_BY(mutex_)
  std::map<std::string, std::string> firsts_;     // host names by domains; GUARDED_BY(mutex_)
};

// Returns the answer to a question in the form of RFC 1035: an address of version 4, the pod of a
// port (RFC 2782), an empty answer for other kinds, or that there is no such name. Empty: it is not
// a question.
std::string answer(std::string_view question, const PodNames& names);

class NameServer {
 public:
  // At port 53 of the first free address of the loopback network. kPermissionDenied: not as this
  // user.
  static base::Result<NameServer> start(const PodNames& names);
  const std::string& address() const { return address_; }
  // Counts from 1; unique among the name servers that run on this machine.
  int number() const { return number_; }

 private:
  os::FileDescriptor socket_;
  std::string address_;
  int number_ = 0;
  std::jthread thread_;  // last: ends before the socket is closed
};

}  // namespace devcluster
