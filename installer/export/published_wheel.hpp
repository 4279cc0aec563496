// SPDX-License-Identifier: Apache-2.0
// The archive of a wheel that a delta carries as a patch, as it was published: from the patch and from bundles that
// have the wheel it builds on. Its SHA-256, which the manifest promises, decides; nothing else is believed.
#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include "sealift/bundle/verified_bundle.hpp"

namespace sealift::installer {

using VerifiedBundles = std::vector<std::shared_ptr<const bundle::VerifiedBundle>>;

// Gives `sink` the archive's bytes in order. The base of `entry` is looked up in `bases`, and the base of that base, if
// it is a patch as well. `scratch` is a folder for one file of each wheel at a time, and for the archives of bases that
// are patches. Throws Missing where a base is in none of them, CannotCheck where the published archive was compressed
// in a way that cannot be done again, Digest where something else comes out; what the sink got must not be used before
// this returns. Memory: as PatchedWheel; files are mapped.
void stream_published(const bundle::VerifiedBundle& bundle, const bundle::Entry& entry, const VerifiedBundles& bases,
                      const std::filesystem::path& scratch, const bundle::ByteSink& sink);

}  // namespace sealift::installer
