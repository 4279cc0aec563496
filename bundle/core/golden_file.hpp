// SPDX-License-Identifier: Apache-2.0
// The golden run as a file: a job, the bytes that it read, what it computed, where, and what may differ elsewhere.
// `sealift-verify golden` writes it, [[golden]] of a job file has it carried, a site's checks read it: all three read
// it here, so that what a site would refuse is refused before it is packed. docs/verify_checks_training.md has the
// format.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "sealift/bundle/core/digest.hpp"

namespace sealift::bundle {

inline constexpr std::uint64_t kMaxGoldenBytes = std::uint64_t{64} << 20;
inline constexpr std::uint64_t kMaxGoldenRanks = 64;

struct GoldenFile {
  std::string name, verb;
  std::map<std::string, std::string> settings;  // paths are below the prefix
  std::uint64_t rows = 0;                       // of a step; 0 where the job says it by itself (`run`)
  std::uint64_t ranks = 1;                      // that computed it, on one host
  std::string method = "none";                  // of several ranks: ddp or fsdp
  std::map<std::string, Digest> inputs;         // of each file that was read, by its path below the prefix
  std::vector<double> losses, norms;            // one a step
  Digest weights;                               // the final parameters as they are saved
  std::string device, arch, torch;              // where it was computed
  std::uint64_t threads = 1;
  std::string by_rank;                       // the setting for which it holds for one process only; or empty
  std::map<std::string, double> tolerances;  // relative, by precision, or precision@arch or @device
};

// Numbers are texts of 17 digits in it, so that every reader has the same bits. Throws Format for anything but strict
// JSON with these keys, and Usage for values that no site would take, naming `where`.
GoldenFile parse_golden(std::string_view text, const std::string& where);

// Settings whose values are paths below the prefix.
bool is_path_setting(std::string_view name);

// True for a path that stays below the prefix: relative, without "..", ".", empty parts and odd characters.
bool is_path_below(std::string_view path);

}  // namespace sealift::bundle
