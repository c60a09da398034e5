#include "cli/import/import_command.h"

#include <optional>
#include <utility>

#include "cli/files.h"
#include "cli/import/importer.h"
#include "cli/utf8.h"
#include "slurm/conf.h"

namespace cli {

// All files are read before any is translated: what one says (a QOS) may be needed by another (a
// partition's QOS).
int run_import(const std::vector<std::string>& files, Output output) {
  std::vector<ImportFile> read;
  for (const std::string& name : files) {
    base::Result<std::string> text = read_file(name, slurm::kSlurmConfBytesMax);
    if (!text) {
      output.err << "kubectl-gang import: " << text.error().message << "\n";
      return kExitFailed;
    }
    if (const std::optional<std::size_t> line = line_that_is_not_utf8(*text)) {
      output.err << "kubectl-gang import: " << name << ": line " << *line << ": must be UTF-8\n";
      return kExitFailed;
    }
    read.push_back({name, std::move(*text)});
  }
  // YAML on standard output and remarks on the other: `import slurm.conf | kubectl apply -f -`
  // works, and the user still sees what was left out.
  const Imported imported = import_slurm(read);
  output.out << imported.yaml;
  for (const std::string& remark : imported.remarks) output.err << remark << "\n";
  if (!imported.yaml.empty()) return kExitOk;
  output.err << "kubectl-gang import: nothing in the files can be translated; they must be a "
                "slurm.conf or output of sacctmgr\n";
  return kExitFailed;
}

}  // namespace cli
