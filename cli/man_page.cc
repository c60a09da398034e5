#include "cli/man_page.h"

#include <sstream>
#include <vector>

#include "cli/cluster/submit.h"
#include "cli/cluster/whatif.h"
#include "slurm/text.h"

namespace cli {
namespace {

// Returns text as roff takes it: a backslash and a minus are escaped, and so is a dot at the
// beginning of a line, where it would begin a request.
std::string roff(const std::string& text) {
  std::string out;
  bool line_begins = true;
  for (const char c : text) {
    if (line_begins && (c == '.' || c == '\'')) out += "\\&";
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else {
      out += c;
    }
    line_begins = c == '\n';
  }
  return out;
}

// ASCII alone: names of pages are commands.
std::string upper_case(std::string text) {
  for (char& c : text) c = static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
  return text;
}

// .TH is the title line: name, section 1 (commands), no date, so that pages are reproducible,
// version and manual. "name - summary" below NAME is what whatis and apropos read.
std::string head(const std::string& name, const std::string& summary) {
  return ".TH " + roff(upper_case(name)) +
         " 1 \"\" \"kubegang " KUBEGANG_VERSION "\" \"User Commands\"\n.SH NAME\n" +
         roff(name + " - " + summary) + "\n";
}

// Returns one option as a tagged paragraph (.TP): names and type in the first line, the text below,
// indented.
std::string option_item(const CLI::Option& option) {
  const std::string value =
      option.get_type_name().empty() ? "" : " \\fI" + roff(option.get_type_name()) + "\\fR";
  const std::string name = option.get_name(false, true);
  return ".TP\n\\fB" + roff(name) + "\\fR" + value + "\n" + roff(option.get_description()) + "\n";
}

// Positional arguments are among them: CLI11 treats them as options without dashes.
std::string options_section(const CLI::App& command) {
  std::string text = ".SH OPTIONS\n";
  for (const CLI::Option* option : command.get_options()) text += option_item(*option);
  return text;
}

// The same for all pages.
constexpr const char* kTail =
    ".SH EXIT STATUS\n0; 1 when it failed, with a sentence on standard error; 2 when the command "
    "line is wrong.\n";

// Returns the other pages. .BR prints the name bold and the section behind it in roman.
// Commas between the pages and none behind the last, as man-pages(7) asks.
std::string see_also(CLI::App& app, const std::string& except) {
  std::string text = ".SH SEE ALSO\n";
  std::vector<std::string> pages = {"kubectl-gang"};
  for (const CLI::App* command : app.get_subcommands({})) {
    pages.push_back("kubectl-gang-" + command->get_name());
  }
  std::erase(pages, except);
  for (const std::string& page : pages) {
    text += ".BR " + roff(page) + " (1)" + (page == pages.back() ? "\n" : ",\n");
  }
  return text;
}

// kubectl-gang(1): the commands and the options that need none.
std::string overview(CLI::App& app) {
  std::string text = head("kubectl-gang", "gang jobs on Kubernetes, as Slurm's users know them");
  text += ".SH SYNOPSIS\n\\fBkubectl gang\\fR \\fICOMMAND\\fR [\\fIOPTIONS\\fR]\n.SH COMMANDS\n";
  for (const CLI::App* command : app.get_subcommands({})) {
    text += ".TP\n\\fB" + roff(command->get_name()) + "\\fR\n" + roff(command->get_description()) +
            "\n";
  }
  return text + options_section(app) + kTail + see_also(app, "kubectl-gang");
}

}  // namespace

// Returns "" if there is no such command. The pages are made from the table of commands, so they
// cannot say other than --help. tools/dist writes a file for each page; none is in the
// repository.
std::string man_page(CLI::App& app, const std::string& name) {
  if (name.empty()) return overview(app);
  const auto is_it = [&](const CLI::App* command) { return command->get_name() == name; };
  const std::vector<CLI::App*> found = app.get_subcommands(is_it);
  if (found.empty()) return {};
  const CLI::App& command = *found.front();
  const std::string page = "kubectl-gang-" + name;
  std::string text = head(page, command.get_description());
  // submit has no options that CLI11 knows, so its help is the page, without filling lines (.nf).
  if (name == "submit" || name == "whatif") {
    text += ".SH DESCRIPTION\n.nf\n" + roff(name == "submit" ? submit_help() : whatif_help()) +
            "\n.fi\n";
  } else {
    text += ".SH SYNOPSIS\n\\fBkubectl gang " + roff(name) + "\\fR [\\fIOPTIONS\\fR]";
    for (const CLI::Option* option : command.get_options()) {
      if (option->get_positional()) text += " \\fI" + roff(option->get_name(true)) + "\\fR";
    }
    text += "\n" + options_section(command);
  }
  return text + kTail + see_also(app, page);
}

}  // namespace cli
