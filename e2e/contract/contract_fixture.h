// The fixture of all contract tests: a server, a namespace of the test's own, the test's kind
// Widget, and plain requests. The suite names facts of the Kubernetes API that kubegang relies on;
// nothing in it may depend on which server answers. Only for the .cc files of the suite, all of
// which write JSON objects out and take replies apart: so it includes all of nlohmann/json.hpp.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "e2e/contract/contract_server.h"
#include "kube/transport.h"

namespace contract {

using nlohmann::json;

struct Reply {
  int status = 0;
  json body;
  std::map<std::string, std::string> headers;
  std::string message() const { return body.is_object() ? body.value("message", "") : ""; }
  std::string reason() const { return body.is_object() ? body.value("reason", "") : ""; }
};

struct CallOptions {
  std::string content_type = "application/json";
  std::string accept = "application/json";
};

class ApiServerContract : public testing::TestWithParam<ServerKind> {
 protected:
  void SetUp() override;
  void TearDown() override;

  Reply call(kube::Method method, const std::string& path, const json& body = nullptr,
             const CallOptions& options = {});
  Reply raw(kube::Method method, const std::string& path, const std::string& body,
            const CallOptions& options = {});
  Reply get(const std::string& path) { return call(kube::Method::kGet, path); }
  Reply post(const std::string& path, const json& body) {
    return call(kube::Method::kPost, path, body);
  }
  Reply put(const std::string& path, const json& body) {
    return call(kube::Method::kPut, path, body);
  }
  Reply merge_patch(const std::string& path, const json& body);
  Reply json_patch(const std::string& path, const json& body);
  Reply remove(const std::string& path, const json& options = nullptr) {
    return call(kube::Method::kDelete, path, options);
  }

  // Returns events of a watch until `enough` is true for the last, or nothing came for ten seconds.
  std::vector<json> watch(const std::string& path,
                          const std::function<bool(const std::vector<json>&)>& enough);
  std::vector<json> watch_count(const std::string& path, std::size_t count);

  // Asks until `done`: for what real servers do in the background. False after ten
  // seconds, of a real server after ninety.
  bool eventually(const std::function<bool()>& done);

  // Returns "/apis/contract.kubegang.io/v1/namespaces/NS/widgets" plus "/NAME"; create_widget
  // expects success.
  std::string widgets(const std::string& name = "") const;
  std::string core(const std::string& resource, const std::string& name = "") const;
  json widget(const std::string& name, const json& spec = {{"size", 1}}) const;
  json config_map(const std::string& name) const;
  json pod(const std::string& name, const std::string& node = "") const;
  json create(const std::string& path, const json& object);
  std::string list_rv(const std::string& path);

  bool is_real() const { return GetParam() == ServerKind::kReal; }

  std::unique_ptr<ContractServer> server_;
  std::string ns_;
};

std::string name_of(const json& object);
std::string rv_of(const json& object);
std::vector<std::string> names_in(const json& list);
// Returns "ADDED a", "MODIFIED a", …
std::vector<std::string> summary(const std::vector<json>& events);

}  // namespace contract
