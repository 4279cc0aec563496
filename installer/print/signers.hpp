// SPDX-License-Identifier: Apache-2.0
// Who vouches for a bundle or a generation: the keys that signed it and the trust root by which they count.
// Digests are printed whole: an operator compares them with a sheet of paper.
#pragma once

#include "bundle/core/json.hpp"
#include "sealift/bundle/trust/root_chain.hpp"

namespace sealift::installer {

bundle::Json fingerprints(const std::vector<bundle::Digest>& digests);
std::string text_of(const std::vector<bundle::Digest>& digests);

bundle::Json json_of(const bundle::RootName& root);
std::string text_of(const bundle::RootName& root);

}  // namespace sealift::installer
