// Shared by the tests of the chart. They need Helm: skipped, aloud, where there is none.
#pragma once

#include <gtest/gtest.h>

#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>
#include <vector>

#include "charts/helm.h"

namespace charts {

using nlohmann::json;
using Objects = std::vector<json>;
using Strings = std::set<std::string>;

inline constexpr char kDigest[] =
    "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

class Chart : public testing::Test {
 protected:
  void SetUp() override;
};

// Options for render(): these values.
std::string set(const std::vector<std::string>& values);
// Returns every value that a template asks for or walks through, as it is not by default.
std::vector<std::string> all_switches();
// Checks that hold for any rendering, whatever the values; `options` names it in a failure.
void check_whole(const Objects& objects, const std::string& options);

std::string read(const std::string& path);
// Reads the first document.
json read_yaml(const std::string& path);

}  // namespace charts
