// The image of the launcher, which pods mount, and what an init container makes of it.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <cstdlib>
#include <filesystem>
#include <set>
#include <string>

#include "launcher/process.h"

namespace launcher {
namespace {

namespace fs = std::filesystem;

std::string files_of(const fs::path& folder) {
  std::set<std::string> all;
  for (const auto& entry : fs::recursive_directory_iterator{folder}) {
    const fs::path& path = entry.path();
    // An image has these, too.
    const std::string name = path.lexically_relative(folder).string();
    if (name == "etc/passwd" || name == "etc" || name == "tmp" || name == "run") continue;
    all.insert(name + (fs::is_symlink(path) ? " -> " + fs::read_symlink(path).string() : ""));
  }
  std::string text;
  for (const std::string& line : all) text += line + "\n";
  return text + text_of_file((folder / "env.sh").string());
}

class Install : public testing::Test {
 protected:
  Install() {
    EXPECT_NE(::mkdtemp(folder_.data()), nullptr);
    // It says how it is called, in the place of the program that asks the cluster.
    fs::copy_file("/bin/echo", folder_ + "/kubectl-gang");
    const fs::path programs = fs::read_symlink("/proc/self/exe").parent_path() / "../bin";
    const std::string launcher = (programs / "kubegang-launcher").string();
    const std::string pmix = (programs / "kubegang-pmix").string();
    run(std::string{KUBEGANG_SOURCE_DIR} + "/e2e/kubernetes/image-tree " + folder_ + "/image " +
        launcher + " " + pmix + " " + folder_ + "/kubectl-gang");
  }
  ~Install() override { fs::remove_all(folder_); }

  void install(const std::string& options) {
    run(folder_ + "/image/kubegang-launcher install " + folder_ + "/kubegang" + options);
  }

  // Returns what squeue says, with these variables alone.
  std::string squeue(const std::string& variables) {
    (void)std::system(("env -i " + variables + " " + folder_ + "/kubegang/squeue -h 'a b' >" +
                       folder_ + "/said 2>&1")
                          .c_str());
    return text_of_file(folder_ + "/said");
  }

  static void run(const std::string& command) { ASSERT_EQ(std::system(command.c_str()), 0); }

  std::string folder_ = (fs::temp_directory_path() / "kubegang-install-XXXXXX").string();
};

TEST_F(Install, MakesWhatTheImageHas) {
  install(" --commands");
  // The path of the folder is that of the pods.
  const std::string installed = folder_ + "/kubegang";
  std::string made = files_of(installed);
  for (std::size_t at = 0; (at = made.find(installed, at)) != std::string::npos;) {
    made.replace(at, installed.size(), "/kubegang");
  }
  EXPECT_EQ(files_of(folder_ + "/image"), made);
}

TEST_F(Install, TheCommandsAskTheClusterWhereTheyCanLogIn) {
  install(" --commands");
  EXPECT_EQ(squeue("KUBECONFIG=/file"), "squeue -h a b\n");
  const std::string refusal =
      "squeue: error: this pod has no token of the API server: submit the job with "
      "--service-account NAME, of an account that may do this\n";
  EXPECT_EQ(squeue("KUBECONFIG="), refusal);
  fs::create_directories(folder_ + "/.kube");
  fs::copy_file("/etc/passwd", folder_ + "/.kube/config");
  EXPECT_EQ(squeue("HOME=" + folder_), "squeue -h a b\n");
}

TEST_F(Install, AnImageMayHaveCommandsOfItsOwn) {
  install("");
  fs::create_directories(folder_ + "/own");
  fs::create_symlink("/bin/echo", folder_ + "/own/squeue");
  const std::string path = "PATH=" + folder_ + "/kubegang/:" + folder_ + "/own";
  EXPECT_EQ(squeue(path), "-h a b\n");
  EXPECT_EQ(squeue("KUBECONFIG=/file " + path), "-h a b\n") << "nothing was installed for it";
}

}  // namespace
}  // namespace launcher
