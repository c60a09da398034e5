#include "linux/mountinfo.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace os {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// A hybrid machine, as systemd sets it up by default on older distributions. The unified hierarchy
// is the last line and comes first; the CPU hierarchy has no freezer. The second line has an
// optional field before the separator.
TEST(Mountinfo, FindsTheUnifiedAndTheFreezerHierarchyOfAHybridMachineUnifiedFirst) {
  constexpr std::string_view kText =
      "32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu\n"
      "37 31 0:34 / /sys/fs/cgroup/freezer rw,relatime shared:9 - cgroup cgroup rw,freezer\n"
      "41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n";
  EXPECT_THAT(parse_mountinfo(kText),
              ElementsAre(CgroupMount{CgroupVersion::kV2, "/sys/fs/cgroup/unified"},
                          CgroupMount{CgroupVersion::kV1, "/sys/fs/cgroup/freezer"}));
}

// Controllers of v1 can share one hierarchy; "freezer" is one word of a list.
TEST(Mountinfo, FindsAFreezerThatIsMountedTogetherWithOthers) {
  EXPECT_THAT(parse_mountinfo("1 2 0:3 / /c rw - cgroup cgroup rw,cpu,freezer,devices\n"),
              ElementsAre(CgroupMount{CgroupVersion::kV1, "/c"}));
}

// A path that is used as it stands in the file, with \040 in it, does not exist.
TEST(Mountinfo, UndoesTheEscapesOfThePath) {
  EXPECT_THAT(parse_mountinfo("1 2 0:3 / /a\\040b rw - cgroup2 none rw\n"),
              ElementsAre(CgroupMount{CgroupVersion::kV2, "/a b"}));
}

// File systems of other types, and text that is not a line of mountinfo: a cgroup must not be
// looked for at a path that was guessed from it.
TEST(Mountinfo, IgnoresLinesThatAreNone) {
  EXPECT_THAT(parse_mountinfo("\nnonsense\n1 2 0:3 / /x rw - ext4 /dev/vda rw\ncut off\n"),
              IsEmpty());
  EXPECT_THAT(parse_mountinfo(""), IsEmpty());
}

// Both mounts show the same hierarchy. "" tells the caller that the version is not mounted.
TEST(Mountinfo, NamesTheFirstMountOfAVersion) {
  const std::vector<CgroupMount> mounts =
      parse_mountinfo("1 2 0:3 / /a rw - cgroup2 none rw\n1 2 0:3 / /b rw - cgroup2 none rw\n");
  EXPECT_EQ(first_mount(mounts, CgroupVersion::kV2), "/a");
  EXPECT_EQ(first_mount(mounts, CgroupVersion::kV1), "");
}

}  // namespace
}  // namespace os
