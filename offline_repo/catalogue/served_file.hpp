// SPDX-License-Identifier: Apache-2.0
// A file that is served as it is stored: an entry of a verified bundle, and what a client may be told of it.
// A wheel and a hub's file are both one, so ranges, digests and sending have one home each.
#pragma once

#include <cstdint>
#include <memory>

#include "sealift/bundle/verified_bundle.hpp"

namespace sealift::offline_repo {

struct ServedFile {
  std::uint64_t size = 0;  // bytes
  bundle::Digest sha256;
  std::shared_ptr<const bundle::VerifiedBundle> in;  // the bundle that holds it
  const bundle::Entry* entry = nullptr;              // of that bundle's manifest
};

// `entry` of `in` as a file that can be served. Throws CannotCheck, calling it `what`, when it is stored compressed, so
// that no range of it can be served.
ServedFile served_file(const std::shared_ptr<const bundle::VerifiedBundle>& in, const bundle::Entry& entry,
                       const char* what);

}  // namespace sealift::offline_repo
