// SPDX-License-Identifier: Apache-2.0
// Presets: settings that belong together, as files that are installed beside the program.
// The weakest layer of a fine-tuning job's settings: `--preset fsdp_lora`.
// Files, not code, so that a site reads what a name means and adds names of its own.
#pragma once

#include <filesystem>
#include <string>

namespace sealift::trainer {

/// The file of preset `name`: a path with an ending is itself; else NAME.toml in SEALIFT_TRAIN_PRESETS, or in
/// share/sealift/presets beside the program's bin. Throws std::invalid_argument with the names that there are.
std::filesystem::path find_preset(const std::string& name);

}  // namespace sealift::trainer
