// SPDX-License-Identifier: Apache-2.0
// The wheel tzdata brings a table of time zones, which Python takes where the system has none; see machine_notes.hpp.
#include "installer/doctor/machine_notes.hpp"

#include <algorithm>

#include "installer/upkeep/status.hpp"

namespace sealift::installer {

namespace fs = std::filesystem;

std::vector<std::string> machine_notes(const Prefix& prefix, const Machine& machine) {
  const Status status = status_of(prefix);
  const auto current = std::find_if(status.generations.begin(), status.generations.end(),
                                    [&](const auto& generation) { return generation.number == status.current; });
  if (current == status.generations.end() || !current->record) return {};
  const fs::path root = prefix.generation(current->number);
  std::error_code ignored;
  if (current->record->interpreter.empty() || !fs::exists(root / current->record->interpreter, ignored)) return {};
  std::vector<std::string> notes;
  if (machine.authorities.empty())
    notes.emplace_back(
        "this machine has no certificate authorities, and none are carried: https to servers of this site fails; "
        "install ca-certificates, or set SSL_CERT_FILE in the jobs");
  if (!machine.time_zones && !fs::exists(root / current->record->site_packages / "tzdata/zoneinfo", ignored))
    notes.emplace_back(
        "there is no table of time zones, neither /usr/share/zoneinfo nor the wheel tzdata: programs that ask for a "
        "zone by name fail; install tzdata, or add it to the job's requirements");
  return notes;
}

}  // namespace sealift::installer
