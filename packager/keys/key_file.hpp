// SPDX-License-Identifier: Apache-2.0
// Keys as PEM files; only its owner may read a private one. Passphrases come from a file or the environment, never
// from the command line, which everybody on the machine can read.
#pragma once

#include <filesystem>
#include <string>

#include "sealift/bundle/trust/private_key.hpp"

namespace sealift::packager {

// The first line of `file`; without a file SEALIFT_PASSPHRASE; empty when there is neither. Throws Usage when group or
// others may read the file.
std::string read_passphrase(const std::filesystem::path& file);

// Throws Usage when group or others may read it, or when it is something else than a private key.
bundle::PrivateKey read_private_key(const std::filesystem::path& file, const std::string& passphrase);
bundle::PublicKey read_public_key(const std::filesystem::path& file);

}  // namespace sealift::packager
