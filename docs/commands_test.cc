// The commands in the pages for users: their words exist, and docs/commands.txt says where each is
// run. With KUBEGANG_WRITE_REFERENCE set, commands that are new or gone are written into that file.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "cli/cluster/session.h"
#include "cli/program.h"
#include "cli/slurm/reference.h"
#include "cli/slurm/slurm_program.h"

namespace docs {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

const fs::path kTree{KUBEGANG_SOURCE_DIR};
// Marks a new command, until an author says where it is run.
constexpr const char* kUnmarked = "?";

std::string text_of(const fs::path& path) {
  std::ifstream file{path};
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// Returns the pages for users and administrators; docs/design is for developers.
std::vector<fs::path> pages() {
  std::vector<fs::path> found{kTree / "README.md", kTree / "charts/kubegang/README.md"};
  for (const char* folder : {"docs", "docs/integrations"}) {
    for (const auto& entry : fs::directory_iterator{kTree / folder}) {
      if (entry.path().extension() == ".md") found.push_back(entry.path());
    }
  }
  std::ranges::sort(found);
  EXPECT_GE(found.size(), 30U);
  return found;
}

struct Command {
  std::string page{};
  std::string line{};  // as a user types it, without prompt, comment and line breaks
  Words words{};
};

// Returns words as a shell has them, up to a comment, a pipe or a redirection. Expands nothing.
Words words_of(const std::string& line) {
  Words words;
  std::string word;
  char quote = 0;
  bool begun = false;
  const auto end_word = [&] {
    if (begun) words.push_back(word);
    word.clear();
    begun = false;
  };
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (quote != 0) {
      if (c == quote) {
        quote = 0;
      } else {
        word += c;
      }
    } else if (c == '\'' || c == '"') {
      quote = c;
      begun = true;
    } else if (c == ' ') {
      end_word();
    } else if ((c == '#' && !begun) || c == '|' || c == '>' || c == ';') {
      break;
    } else {
      word += c;
      begun = true;
    }
  }
  end_word();
  // Variables before a command.
  while (!words.empty() && std::regex_match(words.front(), std::regex{"[A-Z]+=.*"})) {
    words.erase(words.begin());
  }
  return words;
}

bool is_program(const std::string& word) {
  static const std::set<std::string> kPrograms{"kubectl", "helm", "make", "docker", "kind", "ctr"};
  return kPrograms.contains(word) || cli::is_slurm_command(word) || word.starts_with("build/bin/");
}

// Returns the lines of a page's blocks of code: fenced ones of shells, and indented ones. Where one
// line of a block has a prompt, the others are what is printed.
std::vector<Words> blocks_of(const std::string& page) {
  std::vector<Words> blocks;
  std::optional<Words> block;
  bool fenced = false, of_shell = false, after_blank = true;
  const auto end_block = [&] {
    if (block && !block->empty()) blocks.push_back(*block);
    block.reset();
  };
  std::istringstream in{page};
  for (std::string line; std::getline(in, line);) {
    const std::size_t indent = line.find_first_not_of(' ');
    const std::string trimmed = indent == std::string::npos ? "" : line.substr(indent);
    if (trimmed.starts_with("```")) {
      end_block();
      fenced = !fenced;
      of_shell = trimmed == "```" || trimmed == "```sh" || trimmed == "```bash";
      if (fenced && of_shell) block.emplace();
    } else if (fenced) {
      if (of_shell) block->push_back(trimmed);
    } else if (line.starts_with("    ") && (block || after_blank)) {
      if (!block) block.emplace();
      block->push_back(trimmed);
    } else if (!trimmed.empty()) {
      end_block();
    }
    after_blank = trimmed.empty();
  }
  end_block();
  return blocks;
}

std::vector<Command> commands_of(const fs::path& page) {
  std::vector<Command> commands;
  for (const Words& block : blocks_of(text_of(page))) {
    const bool has_prompts =
        std::ranges::any_of(block, [](const auto& line) { return line.starts_with("$ "); });
    std::string line;
    for (const std::string& part : block) {
      if (line.empty() && has_prompts && !part.starts_with("$ ")) continue;
      line += line.empty() && has_prompts ? part.substr(2) : part;
      if (line.ends_with("\\")) {  // it goes on
        line.pop_back();
        continue;
      }
      static const std::regex kLoop{"for .*; do (.*); done"};
      line = std::regex_replace(line, kLoop, "$1");
      const Words words = words_of(line);
      if (!words.empty() && is_program(words.front())) {
        static const std::regex kComment{" +# .*"}, kSpaces{" +"};
        std::string typed = std::regex_replace(line, kComment, "");
        typed = std::regex_replace(typed, kSpaces, " ");
        commands.push_back({fs::relative(page, kTree), typed, words});
      }
      line.clear();
    }
  }
  return commands;
}

std::vector<Command> all_commands() {
  std::vector<Command> all;
  for (const fs::path& page : pages()) {
    for (Command& command : commands_of(page)) all.push_back(std::move(command));
  }
  EXPECT_GE(all.size(), 60U);
  return all;
}

// Returns the arguments of our program in a command, as `kubectl gang` has them; nullopt if it is
// another program's.
std::optional<Words> of_our_program(const Words& words) {
  const auto rest = [&](std::size_t from) {
    return Words{words.begin() + static_cast<std::ptrdiff_t>(from), words.end()};
  };
  if (cli::is_slurm_command(words.front())) return words;
  if (words.front() == "build/bin/kubectl-gang") return rest(1);
  if (words.size() > 1 && words[0] == "kubectl" && words[1] == "gang") return rest(2);
  const auto in_pod = std::ranges::find(words, "/kubectl-gang");
  if (in_pod != words.end()) return Words{in_pod + 1, words.end()};
  return std::nullopt;
}

class DocsCommands : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "docs-commands-XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    fs::current_path(folder_);
  }
  void TearDown() override {
    fs::current_path("/");
    fs::remove_all(folder_);
  }

  // The files that a command reads: scripts are anything, the others are the tree's.
  void make_files(const Words& words) const {
    for (const std::string& word : words) {
      if (!word.ends_with(".sh")) continue;
      if (const fs::path parent = (folder_ / word).parent_path(); parent != folder_) {
        fs::create_directories(parent);
      }
      std::ofstream{folder_ / word} << "#!/bin/sh\ntrue\n";
    }
  }

  // The program's own parser takes the words if it comes to its cluster, or to the end.
  void expect_understood(const Command& command, const Words& arguments) {
    make_files(arguments);
    std::ostringstream out, err;
    bool has_connected = false;
    const cli::WithSession no_cluster = [&](const auto&, const auto&) -> base::Result<int> {
      has_connected = true;
      return 1;
    };
    const cli::Output output{.out = out, .err = err};
    const int code =
        cli::is_slurm_command(arguments.front())
            ? cli::run_slurm_command(arguments.front(), std::span{arguments}.subspan(1), no_cluster,
                                     output)
            : cli::run_program(arguments, no_cluster, output);
    if (has_connected || code == cli::kExitOk) return;
    EXPECT_THAT(err.str(), testing::HasSubstr("No such file"))
        << command.page << ": " << command.line;
  }

  fs::path folder_;
};

TEST_F(DocsCommands, OurProgramUnderstandsThem) {
  int count = 0;
  for (const Command& command : all_commands()) {
    const std::optional<Words> arguments = of_our_program(command.words);
    if (!arguments || arguments->empty()) continue;
    expect_understood(command, *arguments);
    ++count;
  }
  EXPECT_GE(count, 20);
}

// make: the target, and the variables that it is called with.
TEST_F(DocsCommands, MakefileHasTheirTargetsAndVariables) {
  const std::string makefile = text_of(kTree / "Makefile");
  const auto check = [&](const std::string& page, const Words& words) {
    for (std::size_t i = 1; i < words.size(); ++i) {
      const std::size_t equals = words[i].find('=');
      if (equals == std::string::npos) {
        EXPECT_NE(makefile.find("\n" + words[i] + ":"), std::string::npos)
            << page << ": make " << words[i];
      } else {
        EXPECT_NE(makefile.find("$(" + words[i].substr(0, equals)), std::string::npos)
            << page << ": make " << words[i];
      }
    }
  };
  for (const Command& command : all_commands()) {
    if (command.words.front() == "make") check(command.page, command.words);
  }
  // And those in sentences.
  static const std::regex kInline{"`(make [a-z][^`]*)`"};
  for (const fs::path& page : pages()) {
    const std::string text = text_of(page);
    for (std::sregex_iterator at{text.begin(), text.end(), kInline}, end; at != end; ++at) {
      check(page.filename(), words_of((*at)[1]));
    }
  }
}

// A path below a folder of the tree, in a command, is there.
TEST_F(DocsCommands, FilesThatTheyNameExist) {
  static const std::regex kPath{"(examples|charts|docs|e2e|tools|scheduler)/[A-Za-z0-9_./-]+"};
  int count = 0;
  for (const Command& command : all_commands()) {
    for (const std::string& word : command.words) {
      if (!std::regex_match(word, kPath)) continue;
      EXPECT_TRUE(fs::exists(kTree / word)) << command.page << ": " << command.line;
      ++count;
    }
  }
  EXPECT_GE(count, 10);
}

std::string help_of(const std::string& command) {
  std::ostringstream out, err;
  const cli::WithSession no_cluster = [](const auto&, const auto&) -> base::Result<int> {
    return 1;
  };
  (void)cli::run_program(Words{command, "--help"}, no_cluster, {.out = out, .err = err});
  return out.str();
}

// In sentences arguments are often left out, so the command and the names of its options are looked
// for in its help.
TEST_F(DocsCommands, CommandsInSentencesExist) {
  static const std::regex kInline{"`kubectl gang ([a-z-]+)([^`]*)`"};
  static const std::regex kOption{"--[a-z][a-z-]+"};
  std::map<std::string, std::string> help;
  int count = 0;
  for (const fs::path& page : pages()) {
    const std::string text = text_of(page);
    for (std::sregex_iterator at{text.begin(), text.end(), kInline}, end; at != end; ++at) {
      const std::string command = (*at)[1], rest = (*at)[2];
      ++count;
      if (cli::is_slurm_command(command)) continue;
      if (!help.contains(command)) help[command] = help_of(command);
      EXPECT_FALSE(help[command].empty()) << page << ": there is no command " << command;
      for (std::sregex_iterator option{rest.begin(), rest.end(), kOption}; option != end;
           ++option) {
        EXPECT_THAT(help[command], testing::HasSubstr(option->str()))
            << page << ": kubectl gang " << command;
      }
    }
  }
  EXPECT_GE(count, 50);
}

// docs/commands.txt: a line "WHERE | COMMAND" for each, sorted by command. WHERE is the test or the
// script that runs it, or the like of it, or says that none does.
TEST_F(DocsCommands, EachIsRunByATestOrMarked) {
  const fs::path path = kTree / "docs/commands.txt";
  std::map<std::string, std::string> marked;
  std::string head;
  std::istringstream in{text_of(path)};
  for (std::string line; std::getline(in, line);) {
    const std::size_t bar = line.find(" | ");
    if (line.starts_with("#")) {
      head += line + "\n";
    } else if (bar != std::string::npos) {
      marked[line.substr(bar + 3)] = line.substr(0, bar);
    }
  }
  std::map<std::string, std::string> now;
  for (const Command& command : all_commands()) {
    const auto found = marked.find(command.line);
    now[command.line] = found == marked.end() ? kUnmarked : found->second;
  }
  if (std::getenv("KUBEGANG_WRITE_REFERENCE") != nullptr) {
    std::ofstream out{path};
    out << head;
    for (const auto& [command, where] : now) out << where << " | " << command << "\n";
  }
  for (const auto& [command, where] : now) {
    EXPECT_NE(where, kUnmarked) << "docs/commands.txt does not say where this is run: " << command;
  }
  for (const auto& [command, where] : marked) {
    EXPECT_TRUE(now.contains(command)) << "docs/commands.txt has what no page has: " << command;
    // A place is a file of the tree; anything else begins with "not run".
    if (where == kUnmarked || where.starts_with("not run")) continue;
    EXPECT_TRUE(fs::exists(kTree / where.substr(0, where.find(' ')))) << where;
  }
}

}  // namespace
}  // namespace docs
