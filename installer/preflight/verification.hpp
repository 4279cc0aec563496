// SPDX-License-Identifier: Apache-2.0
// The story of `sealift-install verify`: reads every byte of a bundle, and describes it or lists everything that is
// wrong. Installs and writes nothing, so a media desk can run it.
#pragma once

#include <optional>

#include "sealift/bundle/damaged_payload.hpp"
#include "sealift/bundle/host/progress.hpp"
#include "sealift/bundle/verified_bundle.hpp"

namespace sealift::installer {

struct Verification {
  std::string name;
  std::uint64_t version = 0;
  std::string channel;
  std::string created;
  bundle::Target target;
  bundle::Digest identity;
  std::vector<bundle::Digest> signers;
  bundle::RootName root;
  std::vector<std::string> warnings;
  std::uint64_t entries = 0;
  std::uint64_t absent = 0;                         // of those, not carried by a delta
  std::optional<bundle::Digest> base;               // of a delta: the inventory that it was made for
  std::vector<std::string> sandboxed, unsandboxed;  // wheels that the packer built, by file name
  std::vector<std::string> shared;                  // "NAME.whl: FOLDER", in another wheel's package
  std::uint64_t volumes = 0;
  std::uint64_t chunks = 0;
  std::uint64_t bytes = 0;
  std::optional<bundle::Damage> damage;  // of a bundle with recovery data: what its files have
  bool deep = false;                     // the published digests were compared, too
  std::vector<bundle::Error> failures;   // of chunks, in payload order, then of entries; empty: the bundle is whole
};

// Throws when seal, manifest or chunk list are wrong, since then no chunk can be checked; also for a missing volume or
// a wrong size, unless the bundle has recovery data: then these are failures, and `damage` says what can be mended.
// `deep`: also what published.hpp compares, where every chunk is right.
Verification verify_every_byte(const bundle::OpenBundle& opened, const bundle::Trust& trust, bundle::Time now,
                               unsigned threads, bundle::Progress& progress, bool deep = false);

}  // namespace sealift::installer
