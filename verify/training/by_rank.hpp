// SPDX-License-Identifier: Apache-2.0
// Which setting of a golden run makes its numbers depend on how many ranks divide its rows.
// Beside the golden run's file; `golden` asks before it records, the checks before they hold a site's ranks to it.
// Known from the settings, so that no rank is blamed for what random numbers or means by rank do.
#pragma once

#include "verify/training/golden_file.hpp"

namespace sealift::verify {

/// The setting, as "lora_dropout"; empty where any number of ranks computes the same to rounding. Reads the adapters'
/// adapter_config.json below `prefix` where the job goes on from them.
std::string setting_by_rank(const TrainingJob& job, const std::filesystem::path& prefix);

/// What such a setting does: "lora_dropout draws random numbers on each rank for itself".
Phrase why_by_rank(const std::string& setting);

/// What a job says instead: "lora_dropout = 0".
std::string instead_of(const std::string& setting);

}  // namespace sealift::verify
