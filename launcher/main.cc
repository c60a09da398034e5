// kubegang-launcher: the first process in the pods of batch scripts, and the commands of Slurm that
// need nothing but the pod. Its name, or its first argument, says which of these it is.
#include <cstdio>
#include <span>
#include <string>
#include <vector>

#include "base/standard_streams.h"
#include "launcher/batch.h"
#include "launcher/install.h"
#include "launcher/join.h"
#include "launcher/names.h"
#include "launcher/srun.h"
#include "launcher/wait.h"

namespace {

constexpr int kUsage = 2;

int usage() {
  std::fputs(
      "usage: kubegang-launcher batch OPTIONS -- ARGUMENTS   run the script of the environment\n"
      "       kubegang-launcher wait OPTIONS                 run tasks of the job's steps\n"
      "       kubegang-launcher install DIRECTORY [--commands]\n"
      "                                                      copy the program and its names, and "
      "what the names need\n"
      "       kubegang-launcher join                         call srun as standard input says\n"
      "       kubegang-launcher signal SIGNAL WHO            signal steps, script or all of the "
      "job\n"
      "       kubegang-launcher release CODE                 end the job with this exit code\n"
      "       kubegang-launcher hold[=SECONDS]               the script of a job that is held "
      "open; ends after SECONDS without join\n"
      "       kubegang-launcher srun|squeue|... ...          as under these names\n",
      stderr);
  return kUsage;
}

}  // namespace

int main(int argc, char** argv) {
  base::open_closed_streams();
  std::vector<std::string> words(argv, argv + argc);
  if (words.empty()) return usage();
  std::string name = words[0].substr(words[0].rfind('/') + 1);
  std::span<const std::string> rest{words.begin() + 1, words.end()};
  if (name != "srun" && !launcher::is_command(name)) {
    if (rest.empty()) return usage();
    name = rest.front();
    rest = rest.subspan(1);
  }
  if (name == "srun") return launcher::run_srun(rest);
  if (launcher::is_command(name)) return launcher::run_command(name, rest);
  if (name == "batch") return launcher::run_batch(rest);
  if (name == "wait") return launcher::run_wait(rest);
  if (name == "join") return launcher::run_join();
  if (name == "signal" && rest.size() == 2) return launcher::run_signal(rest[0], rest[1]);
  if (name == "release" && rest.size() == 1) return launcher::run_release(rest[0]);
  if (name == "hold") return launcher::run_hold("");
  if (name.starts_with("hold=")) return launcher::run_hold(name.substr(5));
  if (name == "install" && rest.size() == 1) return launcher::install(rest[0], false);
  if (name == "install" && rest.size() == 2 && rest[1] == "--commands") {
    return launcher::install(rest[0], true);
  }
  return usage();
}
