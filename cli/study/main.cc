// kubegang-study FOLDER: writes the tables into design/does-it-help.md there, between the comments
// that name the model, and the pictures into FOLDER. Called by `make does-it-help`; minutes of
// work.
#include <iostream>
#include <string>
#include <vector>

#include "cli/files.h"
#include "cli/study/study.h"

namespace {

// Returns the document with the text between the comments `<!-- NAME -->` and `<!-- end -->`
// exchanged. A document without the two comments is an error: the table must not be put where it
// does not belong.
base::Result<std::string> with_table(const std::string& document, const std::string& name,
                                     const std::string& table) {
  const std::string begin_mark = "<!-- " + name + " -->\n";
  const std::size_t mark = document.find(begin_mark);
  // The nearest one behind the mark. Without a mark the search begins beyond the text and finds
  // none.
  const std::size_t end = document.find("<!-- end -->", mark);
  if (mark == std::string::npos || end == std::string::npos) {
    return base::invalid_argument("there is no place for the table of " + name);
  }
  return document.substr(0, mark) + begin_mark + table + document.substr(end);
}

// Studies all loads and policies; prints each row when it is worked out.
std::vector<cli::Studied> study_all(const cli::WorkloadModel& model) {
  std::vector<cli::Studied> all;
  for (const double load : cli::kLoads) {
    for (const cli::Policy& policy : cli::kPolicies) {
      all.push_back({load, policy.name, cli::study(model, policy, load)});
      std::cerr << model.name << " " << cli::study_row(all.back());
    }
  }
  return all;
}

// Plays one model after the other; the document is written last, when all tables are in it, so that
// a run that is stopped leaves it as it was.
base::Status write_study(const std::string& folder) {
  const std::string path = folder + "/design/does-it-help.md";
  base::Result<std::string> document = cli::read_file(path, 1U << 20U);
  if (!document) return document.error();
  for (const cli::WorkloadModel& model : cli::kStudiedModels) {
    const std::vector<cli::Studied> all = study_all(model);
    const std::string name{model.name};
    document = with_table(*document, name, cli::study_table(all));
    if (!document) return document.error().with_context(path);
    const base::Status drawn =
        cli::write_file(folder + "/does-it-help-" + name + ".svg", cli::study_svg(model, all));
    if (!drawn) return drawn;
  }
  return cli::write_file(path, *document);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: kubegang-study FOLDER\n";
    return 2;
  }
  const base::Status written = write_study(argv[1]);
  if (written) return 0;
  std::cerr << "kubegang-study: " << written.error().message << "\n";
  return 1;
}
