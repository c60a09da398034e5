#include "slurm/licenses.h"

#include <algorithm>
#include <cstdint>
#include <string>

#include "slurm/text.h"

namespace slurm {
namespace {

constexpr std::int64_t kLicensesMax = 1'000'000;  // of one name

base::Error wrong_list(std::string_view what, std::string_view text, std::string_view advice) {
  return base::invalid_argument(std::string{what} + " " + in_quotes(text) + ": " +
                                std::string{advice});
}

// A server of licenses stands behind an @.
bool is_name(std::string_view name) {
  return !name.empty() && name.size() <= 63 && std::ranges::all_of(name, [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
           c == '-' || c == '.' || c == '@';
  });
}

}  // namespace

base::Result<sched::Licenses> parse_licenses(std::string_view what, std::string_view text) {
  sched::Licenses licenses;
  std::string list{text};
  std::ranges::replace(list, ';', ',');
  for (const std::string& each : split(list, ',')) {
    if (each.empty()) continue;  // as strtok() reads it
    if (each.find('|') != std::string::npos) {
      return wrong_list(what, text, "one license or another is not supported; name those it needs");
    }
    const std::size_t sign = each.find(':');
    const std::string name = each.substr(0, sign);
    if (!is_name(name)) return wrong_list(what, text, "write name[:count], such as foo:2,bar");
    std::int64_t count = 1;
    if (sign != std::string::npos) {
      const auto read = parse_integer(what, std::string_view{each}.substr(sign + 1),
                                      {.min = 0, .max = kLicensesMax});
      if (!read) return read.error();
      count = *read;
    }
    int& sum = licenses[name];
    sum = static_cast<int>(std::min<std::int64_t>(sum + count, kLicensesMax));
  }
  return licenses;
}

}  // namespace slurm
