// SPDX-License-Identifier: Apache-2.0
// What apt wants of an archive that it is to trust: Release over the index, signed by an OpenPGP key of the site's or
// the packer's. gpg signs, on the connected side, so that a key may lie on a card; the bundle's own signature then
// vouches for the key, which travels along.
#pragma once

#include <string>
#include <vector>

#include "packager/content/content.hpp"
#include "sealift/bundle/host/progress.hpp"

namespace sealift::packager {

// Over the lock's index, always the same for the same lock.
std::string release_text(const Lock& lock);

// apt/Release, Release.gpg, InRelease and archive-key.asc, signed by the secret key with this fingerprint (40
// hexadecimal digits) in gpg's keyring (GNUPGHOME). Warns when the key ends some day. Throws Usage when the lock has no
// Debian packages or the fingerprint is malformed, Missing without gpg or the key, Io when gpg does not sign.
std::vector<Content> signed_release(const Lock& lock, const std::string& fingerprint, bundle::Progress& progress);

}  // namespace sealift::packager
