// The largest numbers that Slurm stores; the two values above them mean "no value" and "infinite".
#pragma once

#include <cstdint>

namespace slurm {

inline constexpr std::int64_t kUint16Max = 65'533;
inline constexpr std::int64_t kUint32Max = 4'294'967'293;

}  // namespace slurm
