#include <cstdio>
#include <string>
#include <vector>

#include "operator/process/options.h"
#include "operator/process/process.h"

int main(int argc, char** argv) {
  const control::ParsedOptions parsed =
      control::parse_options(std::vector<std::string>(argv + 1, argv + argc));
  if (parsed.exit_code) {
    std::fputs(parsed.text.c_str(), *parsed.exit_code == 0 ? stdout : stderr);
    return *parsed.exit_code;
  }
  return control::run_process(parsed.options);
}
