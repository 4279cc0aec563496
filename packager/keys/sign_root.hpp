// SPDX-License-Identifier: Apache-2.0
// `sealift-pack root sign`: adds signatures to a root that is being made, and to nothing else. The first root is the
// one whose fingerprint the signer names; a later one must follow the chain from the root that they have pinned.
#pragma once

#include "packager/keys/sign.hpp"

namespace sealift::packager {

// Throws as sign does, and Signature for a root that is not the pinned one and does not follow it.
SignResult sign_root(const SignOptions& options, bundle::Progress& progress);

}  // namespace sealift::packager
