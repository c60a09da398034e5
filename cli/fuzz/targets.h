// The fuzzers run these on each input: a reader, and what must hold of whatever it accepts. Plain
// functions, so that the corpora also run as ordinary tests with g++. A broken property aborts.
#pragma once

#include <string_view>

namespace cli {

void fuzz_hostlist(std::string_view input);
void fuzz_time_string(std::string_view input);
void fuzz_slurm_conf(std::string_view input);
void fuzz_sbatch(std::string_view input);
void fuzz_scenario(std::string_view input);
void fuzz_swf(std::string_view input);
// A form feed ends a file: several files are imported together.
void fuzz_import(std::string_view input);
// A request body that a browser posts to the page.
void fuzz_page_body(std::string_view input);

}  // namespace cli
