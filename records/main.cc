#include <cstdio>
#include <string>
#include <vector>

#include "records/options.h"
#include "records/process.h"

int main(int argc, char** argv) {
  const records::ParsedOptions parsed =
      records::parse_options(std::vector<std::string>(argv + 1, argv + argc));
  if (parsed.exit_code) {
    std::fputs(parsed.text.c_str(), *parsed.exit_code == 0 ? stdout : stderr);
    return *parsed.exit_code;
  }
  return records::run_process(parsed.options);
}
