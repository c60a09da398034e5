#include "node-agent/program/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "node-agent/freezer/hierarchy.h"

namespace agent {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// Both spellings of a flag. Options that are not named keep their defaults.
TEST(Options, TakesTheNodeFromTheFlag) {
  const ParsedOptions parsed =
      parse_options({"--node-name", "n1", "--run-dir=/run/x", "--lease", "ns/lease", "--no-fifo"});
  EXPECT_EQ(parsed.exit_code, std::nullopt) << parsed.text;
  EXPECT_EQ(parsed.options.node_name, "n1");
  EXPECT_EQ(parsed.options.run_directory, "/run/x");
  EXPECT_EQ(parsed.options.lease_key(), (kube::ObjectKey{"ns", "lease"}));
  EXPECT_FALSE(parsed.options.fifo);
  EXPECT_TRUE(parsed.options.supervise);
}

// People see these in a DaemonSet's log: one line, which names the word and the way to help.
TEST(Options, RefusesMistakesWithExitCode2AndASentence) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> mistakes = {
      {{}, "--node-name"},
      {{"--node-name", "n1", "--colour"}, "--colour"},
      {{"--node-name", "n1", "--lease", "nothing"}, "\"nothing\" is not NAMESPACE/NAME"},
      {{"--node-name", "n1", "--log-level", "loud"}, "loud"},
      {{"--node-name", "n1", "--metrics-address", "localhost"}, "\"localhost\" is not HOST:PORT"},
      {{"inspect", "--colour"}, "--colour"},
      {{"inspect", "default/a"}, "default/a"},
      {{"inspect", "--run-dir"}, "--run-dir"},
      {{"look"}, "look"},
  };
  for (const auto& [arguments, words] : mistakes) {
    const ParsedOptions parsed = parse_options(arguments);
    EXPECT_EQ(parsed.exit_code, 2);
    EXPECT_THAT(parsed.text, AllOf(StartsWith("kubegang-agent: "), HasSubstr(words),
                                   EndsWith("; see kubegang-agent --help\n")));
    EXPECT_EQ(std::count(parsed.text.begin(), parsed.text.end(), '\n'), 1) << parsed.text;
  }
}

// To standard output and with 0: `--help` is not a mistake, and people pipe it.
TEST(Options, HelpNamesEveryFlagAndEndsWith0) {
  const ParsedOptions parsed = parse_options({"--help"});
  EXPECT_EQ(parsed.exit_code, 0);
  for (const char* flag :
       {"--node-name", "--kubeconfig", "--cgroup-root", "--run-dir", "--lease", "--metrics-address",
        "--no-supervisor", "guard", "inspect", "check", "Exit codes"}) {
    EXPECT_THAT(parsed.text, HasSubstr(flag));
  }
}

// Without a host all addresses; IPv6 in brackets, as in a URL.
TEST(Options, SplitsHostAndPort) {
  EXPECT_EQ(parse_host_port("127.0.0.1:9473"), (HostPort{.host = "127.0.0.1", .port = 9473}));
  EXPECT_EQ(parse_host_port(":0"), (HostPort{.host = "0.0.0.0", .port = 0}));
  EXPECT_EQ(parse_host_port("[::1]:80"), (HostPort{.host = "::1", .port = 80}));
  // Port 65536 does not fit into 16 bits.
  for (const char* bad : {"", "host", "host:", "host:x", "host:65536", "host:-1"}) {
    EXPECT_EQ(parse_host_port(bad), std::nullopt) << bad;
  }
}

// It reads files alone, so a person may call it without any option.
TEST(Options, InspectNeedsNoNode) {
  const ParsedOptions parsed = parse_options({"inspect", "--run-dir", "/run/y"});
  EXPECT_EQ(parsed.exit_code, std::nullopt) << parsed.text;
  EXPECT_EQ(parsed.options.command, Command::kInspect);
  EXPECT_EQ(parsed.options.run_directory, "/run/y");
}

// The sentence names the option, since the default may be what is wrong.
TEST(Hierarchy, RefusesADirectoryThatIsNoCgroupWithASentence) {
  EXPECT_THAT(check_cgroup_root("/proc").error().message, HasSubstr("not a cgroup file system"));
  EXPECT_THAT(check_cgroup_root("/nowhere").error().message, HasSubstr("--cgroup-root"));
}

}  // namespace
}  // namespace agent
