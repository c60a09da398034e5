// The command line of kubegang-records.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kube/api/meta.h"

namespace records {

struct Options {
  std::string kubeconfig;
  std::string context;
  std::string database = "/var/lib/kubegang-records/records.db";
  std::string cluster = "kubegang";  // in the key of each record
  // File with the address of a PostgreSQL that gets a copy; "" = there is none.
  std::string postgresql_file{};
  // That says how far Jobs are stored; absent: none does.
  std::optional<kube::ObjectKey> lease{};
  std::string metrics_host = "0.0.0.0";
  int metrics_port = 8080;
  // Where the API server asks; port 0: nowhere.
  int api_port = 0;
  std::string tls_certificate;
  std::string tls_key;
  std::string log_level = "info";
};

struct ParsedOptions {
  Options options;
  std::optional<int> exit_code;  // if set: print text and exit
  std::string text;
};

ParsedOptions parse_options(std::vector<std::string> arguments);

}  // namespace records
