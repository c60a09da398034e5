#include "cli/completion.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "api/account.h"
#include "api/job.h"
#include "api/partition.h"
#include "api/qos.h"
#include "cli/cluster/read.h"
#include "cli/cluster/submit.h"
#include "kube/api/namespace.h"
#include "view/queue_lines.h"

namespace cli {
namespace {

// The user waits for the tab key: no names are better than late ones.
constexpr base::Duration kClusterTimeout = std::chrono::seconds{3};

// Words with descriptions, by the alphabet.
using Words = std::map<std::string, std::string>;

// Candidates for the next word; with `files`, the shell adds its own file names.
struct Possibilities {
  Words words;
  bool files = false;
};

// Returns the command of this name; null if there is none.
CLI::App* command_named(CLI::App& app, const std::string& name) {
  const auto is_it = [&](const CLI::App* command) { return command->get_name() == name; };
  const std::vector<CLI::App*> found = app.get_subcommands(is_it);
  return found.empty() ? nullptr : found.front();
}

// Returns each with its description, which some shells show beside it.
Words commands_of(CLI::App& app) {
  Words words;
  for (const CLI::App* command : app.get_subcommands({})) {
    words[command->get_name()] = command->get_description();
  }
  return words;
}

bool reads_as_sbatch(const CLI::App& command) {
  return command.get_name() == "submit" || command.get_name() == "whatif";
}

// Returns the options that the help of `submit` names: it reads its command line as sbatch does, so
// CLI11 knows none of them.
// A word of two dashes alone, which ends the options, is passed over.
Words submit_options() {
  Words words;
  const std::string help = submit_help();
  for (std::size_t at = help.find("--"); at != std::string::npos; at = help.find("--", at + 2)) {
    const std::size_t end = help.find_first_not_of("abcdefghijklmnopqrstuvwxyz-", at);
    const std::string word = help.substr(at, end - at);
    if (word.size() > 2) words[word] = "";
  }
  return words;
}

// Long names only; a single letter needs no completion.
Words options_of(const CLI::App& command) {
  if (reads_as_sbatch(command)) return submit_options();
  Words words;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) {
      words["--" + name] = option->get_description();
    }
  }
  return words;
}

// Returns the option whose value the next word is: `word` names it, it takes a value, and the value
// is not in the same word. Null if there is none.
const CLI::Option* value_option(const CLI::App& command, const std::string& word) {
  if (word.size() < 2 || word[0] != '-' || word.find('=') != std::string::npos) return nullptr;
  const CLI::Option* option = command.get_option_no_throw(word);
  return option != nullptr && !option->get_type_name().empty() ? option : nullptr;
}

// Returns the values that an option allows, which CLI11 keeps only in the text of its type:
// "TEXT:{json,wide}".
Words choices_of(const CLI::Option& option) {
  Words words;
  const std::string type = option.get_type_name();
  const std::size_t open = type.find('{');
  const std::size_t close = type.find('}');
  if (open == std::string::npos || close == std::string::npos) return words;
  std::string list = type.substr(open + 1, close - open - 1);
  while (!list.empty()) {
    const std::size_t comma = std::min(list.find(','), list.size());
    words[list.substr(0, comma)] = "";
    list.erase(0, std::min(comma + 1, list.size()));
  }
  return words;
}

// Returns the names of all objects of a kind; none if they cannot be listed, for the tab key has no
// place for an error.
template <kube::ApiObject T>
Words names_in(const Session& session, const std::string& ns) {
  Words words;
  const base::Result<kube::ObjectList<T>> list = session.client.list<T>({.ns = ns});
  if (!list) return words;
  for (const T& object : list->items) words[object.metadata.name] = "";
  return words;
}

// Returns the jobs that a command may still be about, with their states. A job that belongs to a
// batch Job is offered under both names.
Words unfinished_jobs(const Session& session) {
  Words words;
  const base::Result<kube::ObjectList<kube::Job>> list =
      session.client.list<kube::Job>({.ns = session.ns});
  if (!list) return words;
  for (const kube::Job& job : list->items) {
    const kube::JobState state = job.status.state.value_or(kube::JobState::kPending);
    if (kube::is_final(state)) continue;
    words[job.metadata.name] = to_string(state);
    const std::string batch = view::batch_job_of(job);
    if (!batch.empty()) words["job/" + batch] = to_string(state);
  }
  return words;
}

// A question to the cluster for the value of an option, or for an argument ("").
using Question = Words (*)(const Session&);

// Returns how to ask the cluster for an option's values; null if the cluster does not know them.
Question question_for(const std::string& option) {
  if (option == "partition") {
    return [](const Session& session) { return names_in<kube::Partition>(session, ""); };
  }
  if (option == "namespace") {
    return [](const Session& session) { return names_in<kube::Namespace>(session, ""); };
  }
  return nullptr;
}

// Does the same for the options of submit, which are not CLI11's. Null: its value is not known, or
// the word takes none.
Question question_of_submit(const std::string& word) {
  if (word == "-p" || word == "--partition") return question_for("partition");
  if (word == "--namespace") return question_for("namespace");
  if (word == "-q" || word == "--qos") {
    return [](const Session& session) { return names_in<kube::Qos>(session, ""); };
  }
  if (word == "-A" || word == "--account") {
    return [](const Session& session) { return names_in<kube::Account>(session, ""); };
  }
  return nullptr;
}

// Asks with the connection that the words before the last describe; an error gives no words.
// `connect` is a copy: the limit of time is that of completion alone.
Words ask(Question question, ConnectOptions connect, const WithSession& with_session) {
  Words words;
  connect.request_timeout = kClusterTimeout;
  (void)with_session(connect, [&](const Session& session) {
    words = question(session);
    return kExitOk;
  });
  return words;
}

// Notes what the words before the last say about the cluster and the namespace. A command line that
// is not complete is not an error here.
void read_connection(std::span<const std::string> words, CLI::App& app) {
  std::vector<std::string> reversed{words.rbegin(), words.rend()};
  try {
    app.parse(reversed);
  } catch (const CLI::ParseError&) {
    return;
  }
}

// 1. the first word: a command, or an option that needs none
// 2. behind an option that takes a value: its values
// 3. a word that begins with -: options of the command
// 4. an argument: files, jobs, or nothing
Possibilities possibilities(std::span<const std::string> words, CLI::App& app,
                            const ConnectOptions& connect, const WithSession& with_session) {
  const std::string& last = words.back();
  if (words.size() == 1)
    return {.words = last.starts_with('-') ? options_of(app) : commands_of(app)};
  const CLI::App* command = command_named(app, words.front());
  if (command == nullptr) return {};
  if (const CLI::Option* option = value_option(*command, words[words.size() - 2]); option) {
    const std::string name = option->get_lnames().empty() ? "" : option->get_lnames().front();
    const Question question = question_for(name);
    if (question != nullptr) return {.words = ask(question, connect, with_session)};
    return {.words = choices_of(*option), .files = name == "kubeconfig" || name == "svg"};
  }
  const Question submit = question_of_submit(words[words.size() - 2]);
  if (reads_as_sbatch(*command) && submit != nullptr) {
    return {.words = ask(submit, connect, with_session)};
  }
  if (last.starts_with('-')) return {.words = options_of(*command)};
  const std::string& name = command->get_name();
  if (reads_as_sbatch(*command) || name == "simulate" || name == "import") return {.files = true};
  if (command->get_option_no_throw("JOB") == nullptr) return {};
  return {.words = ask(unfinished_jobs, connect, with_session)};
}

}  // namespace

// Prints what begins as the last word does, one word a line with a tab before its description.
// kubectl calls this for each press of the tab key, with the words so far; an empty last word asks
// for everything.
int run_complete(std::span<const std::string> words, CLI::App& app, ConnectOptions& connect,
                 const WithSession& with_session, Output output) {
  if (words.empty()) return kExitUsage;
  read_connection(words.first(words.size() - 1), app);
  const Possibilities found = possibilities(words, app, connect, with_session);
  for (const auto& [word, description] : found.words) {
    if (!word.starts_with(words.back())) continue;
    output.out << word << (description.empty() ? "" : "\t" + description) << "\n";
  }
  // kubectl's protocol of completion (cobra): the last line is a colon and a number, 0 to complete
  // file names as well, 4 not to.
  output.out << (found.files ? ":0\n" : ":4\n");
  return kExitOk;
}

}  // namespace cli
