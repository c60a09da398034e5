#include "cli/import/import_command.h"

#include <optional>
#include <utility>

#include "cli/files.h"
#include "cli/import/importer.h"
#include "cli/utf8.h"
#include "slurm/conf.h"

namespace cli {

namespace {

// Reads the text of a file, which must be UTF-8: it goes to a terminal and into YAML.
base::Result<std::string> read_utf8(const std::string& name) {
  base::Result<std::string> text = read_file(name, slurm::kSlurmConfBytesMax);
  if (!text) return text;
  if (const std::optional<std::size_t> line = line_that_is_not_utf8(*text)) {
    return base::invalid_argument(name + ": line " + std::to_string(*line) + ": must be UTF-8");
  }
  return text;
}

}  // namespace

// All files are read before any is translated: what one says (a QOS) may be needed by another (a
// partition's QOS).
int run_import(const ImportOptions& options, Output output) {
  std::vector<ImportFile> read;
  for (const std::string& name : options.files) {
    base::Result<std::string> text = read_utf8(name);
    if (!text) {
      output.err << "kubectl-gang import: " << text.error().message << "\n";
      return kExitFailed;
    }
    read.push_back({name, std::move(*text)});
  }
  // YAML on standard output and remarks on the other: `import slurm.conf | kubectl apply -f -`
  // works, and the user still sees what was left out.
  const Imported imported = import_slurm(read, read_utf8);
  output.out << imported.yaml;
  for (const std::string& remark : imported.remarks) output.err << remark << "\n";
  if (imported.yaml.empty()) {
    output.err << "kubectl-gang import: nothing in the files can be translated; they must be a "
                  "slurm.conf, gres.conf or output of sacctmgr\n";
    return kExitFailed;
  }
  const bool is_loss = imported.object_lost || (options.strict && imported.setting_lost);
  return is_loss ? kExitLossy : kExitOk;
}

}  // namespace cli
