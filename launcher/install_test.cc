// The image of the launcher, which pods mount, and what an init container makes of it.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "launcher/process.h"

namespace launcher {
namespace {

namespace fs = std::filesystem;

std::string all_of(const fs::path& folder) {
  std::string all;
  for (const char* name : {"kubegang-launcher", "kubegang-pmix", "srun", "scontrol", "env.sh"}) {
    const fs::path path = folder / name;
    all += name;
    if (fs::is_symlink(path)) all += " -> " + fs::read_symlink(path).string();
    if (!fs::exists(path)) all += " is missing";
    all += "\n";
  }
  return all + text_of_file((folder / "env.sh").string());
}

TEST(Install, MakesWhatTheImageHas) {
  std::string folder = (fs::temp_directory_path() / "kubegang-install-XXXXXX").string();
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  const fs::path programs = fs::read_symlink("/proc/self/exe").parent_path() / "../bin";
  const std::string launcher = (programs / "kubegang-launcher").string();
  const std::string tree = std::string{KUBEGANG_SOURCE_DIR} + "/e2e/kubernetes/image-tree " +
                           folder + "/image " + launcher + " " +
                           (programs / "kubegang-pmix").string();
  ASSERT_EQ(std::system(tree.c_str()), 0);
  const std::string installed = folder + "/kubegang";
  ASSERT_EQ(std::system((launcher + " install " + installed).c_str()), 0);
  // The path of the folder is that of the pods.
  std::string made = all_of(installed);
  for (std::size_t at = 0; (at = made.find(installed, at)) != std::string::npos;) {
    made.replace(at, installed.size(), "/kubegang");
  }
  EXPECT_EQ(all_of(folder + "/image"), made);
  fs::remove_all(folder);
}

}  // namespace
}  // namespace launcher
