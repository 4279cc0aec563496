// SPDX-License-Identifier: Apache-2.0
// Roots as files that an operator names (root.N.json, or several in one file). `create`, `sign` and `root` read them
// here, so that no root is used whose own signatures were not looked at.
#pragma once

#include <filesystem>
#include <vector>

#include "sealift/bundle/trust/seal.hpp"

namespace sealift::packager {

// The envelopes of root files, in order, as they were read: for who follows them from a pinned root.
std::vector<bundle::Envelope> read_root_files(const std::vector<std::filesystem::path>& files);

// The envelopes of root files, in order, held to every rule of a chain; throws as bundle::read_root_chain does.
std::vector<bundle::Envelope> read_roots(const std::vector<std::filesystem::path>& files);

}  // namespace sealift::packager
