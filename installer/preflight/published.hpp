// SPDX-License-Identifier: Apache-2.0
// `verify --deep`: what the signed chunks do not say. Whether each entry has the SHA-256 under which others published
// it, and each file of a wheel or tree the digest that installers take from its list without computing it. The packer
// has compared both; this is for a site that does not want to take its signers' word for that.
#pragma once

#include <vector>

#include "sealift/bundle/host/progress.hpp"
#include "sealift/bundle/verified_bundle.hpp"

namespace sealift::installer {

// Of all carried entries, in the manifest's order: each that is not what the manifest or its own list says of it.
std::vector<bundle::Error> check_published(const bundle::VerifiedBundle& bundle, unsigned threads,
                                           bundle::Progress& progress);

// Throws Digest unless `root` is the root hash that the manifest says of the image that the bundle carries.
void require_root(const bundle::VerifiedBundle& bundle, const bundle::Digest& root);

}  // namespace sealift::installer
