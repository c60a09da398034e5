// Hostlists, Slurm's spelling of a set of node names: "n[12-16,20],login". The API uses them too
// (Partition.spec.nodes.hostlist, Job.spec.nodeList, allocation.nodeList).
// SOURCE: slurm.conf(5), NodeName; scontrol(1), "show hostlist". Pure functions, no state.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/natural_order.h"
#include "base/result.h"

namespace slurm {

// Bounds of what is read: a short text must not grow into an unbounded list.
inline constexpr std::size_t kHostlistNamesMax = 65'536;
inline constexpr std::size_t kHostlistBytesMax = 1U << 20U;
inline constexpr std::size_t kHostNameBytesMax = 253;  // a DNS name (RFC 1035)

// Returns the names in the order in which they are written, repetitions kept; "" = none. A name is
// letters, digits, '-', '.' and '_', with any number of bracketed groups of numbers and ranges,
// each padded as its first number is: "r[1-2]n[08-10]-ib" has six names. kInvalidArgument says
// where the text is wrong and what was expected. Cost: the length of the result.
base::Result<std::vector<std::string>> expand_hostlist(std::string_view text);

// Does the same for a list of slurm.conf, where blanks separate too and a separator too many, as in
// "n1,n2,", does not count.
base::Result<std::vector<std::string>> expand_node_list(std::string_view text);

// Returns the shortest hostlist that this writer knows: names in natural order
// (base::natural_less), repetitions dropped, neighbors that differ in one number joined:
// "r1n[1-2],r2n1". expand_hostlist of it gives exactly the sorted names, unless it is longer than
// kHostlistBytesMax. REQUIRES: names that expand_hostlist could have returned.
std::string compress_hostlist(std::span<const std::string> names);

}  // namespace slurm
