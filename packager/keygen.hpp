// SPDX-License-Identifier: Apache-2.0
// `sealift-pack keygen`: a new Ed25519 key, its public half and its fingerprint, which people compare by another way.
#pragma once

#include <filesystem>

#include "sealift/bundle/digest.hpp"

namespace sealift::packager {

// Writes release.key (PKCS#8 PEM, for its owner only), release.pub (SPKI PEM) and release.fingerprint into `folder`;
// throws Conflict when one of them exists. Returns the fingerprint.
bundle::Digest keygen(const std::filesystem::path& folder);

}  // namespace sealift::packager
