#include "cli/import/import_command.h"

#include <utility>

#include "cli/files.h"
#include "cli/import/importer.h"
#include "slurm/conf.h"

namespace cli {

int run_import(const std::vector<std::string>& files, Output output) {
  std::vector<ImportFile> read;
  for (const std::string& name : files) {
    base::Result<std::string> text = read_file(name, slurm::kSlurmConfBytesMax);
    if (!text) {
      output.err << "kubectl-gang import: " << text.error().message << "\n";
      return kExitFailed;
    }
    read.push_back({name, std::move(*text)});
  }
  const Imported imported = import_slurm(read);
  output.out << imported.yaml;
  for (const std::string& remark : imported.remarks) output.err << remark << "\n";
  return imported.yaml.empty() ? kExitFailed : kExitOk;
}

}  // namespace cli
