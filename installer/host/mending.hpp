// SPDX-License-Identifier: Apache-2.0
// What a verb does about a damaged disc of a bundle with recovery data: mend what it reads, and name the command for
// what is too much. Beside ask_volume.hpp, which asks for another disc.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "sealift/bundle/payload/volumes.hpp"

namespace sealift::installer {

// Mends while it reads. The command in its messages is the one to run here: `trust` is "--prefix PREFIX" or
// "--fingerprint sha256:...", words for a shell.
bundle::Mending mending_here(const std::filesystem::path& bundle, const std::vector<std::filesystem::path>& volumes,
                             const std::string& trust);

// `option` and the path, as words for a shell; nothing for an empty path.
std::string shell_option(const std::string& option, const std::filesystem::path& path);

// "3 chunks (12 MiB) of env-7.vol002", of each volume.
std::string text_of(const std::vector<bundle::MendedVolume>& mended);

}  // namespace sealift::installer
