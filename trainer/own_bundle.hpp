// SPDX-License-Identifier: Apache-2.0
// Which bundle this program was installed from, for results and checkpoints.
// Last in the flow: read when the first of them is written, from the record that sealift-install made.
// What it says comes from that record or not at all; a program outside of a bundle says "none".
#pragma once

#include <nlohmann/json.hpp>

#include <filesystem>

namespace sealift::trainer {

/// The folder above this program's bin: of an installed program, the root of its generation.
std::filesystem::path own_root();

/// The bundle of the generation at `root`: an object of name, version, identity (SHA-256 of the signed manifest) and
/// generation; "none" where there is no generation.json; "unreadable: " and why, where it cannot be believed.
nlohmann::ordered_json bundle_at(const std::filesystem::path& root);

/// The same of this program, read once.
const nlohmann::ordered_json& own_bundle();

}  // namespace sealift::trainer
