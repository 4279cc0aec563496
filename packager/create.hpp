// SPDX-License-Identifier: Apache-2.0
// `sealift-pack create`: lock -> contents -> fetch -> plan -> check -> write and sign -> one rename at the end.
#pragma once

#include <filesystem>

#include "packager/host/sandbox.hpp"
#include "packager/keys/sign.hpp"
#include "packager/native/native_report.hpp"
#include "packager/network/fetch.hpp"
#include "packager/pack/environment_image.hpp"
#include "packager/python/offline_breakers.hpp"
#include "sealift/bundle/host/progress.hpp"
#include "sealift/bundle/manifest/manifest.hpp"

namespace sealift::packager {

struct CreateOptions {
  std::filesystem::path lock;
  std::vector<std::filesystem::path> roots;  // the chain that travels along, oldest first
  std::vector<std::filesystem::path> keys;   // private keys that sign
  std::string passphrase;                    // of the keys that have one
  std::string apt_key;                       // fingerprint of the OpenPGP key that signs for apt; empty: none does
  std::string rpm_key;                       // likewise for dnf
  std::filesystem::path out;                 // the folder that gets NAME-VERSION/
  std::filesystem::path cache;               // empty: the default
  std::filesystem::path installer;           // the static sealift-install
  std::filesystem::path base;                // an inventory or a bundle, for a delta; empty: none
  bool patches = false;                      // with a bundle as base: wheels that changed travel as patches
  std::uint64_t volume_size = 0;             // bytes; 0: one volume
  unsigned recovery_percent = 0;             // recovery data, of the payload; 0: none
  Isolation isolation = Isolation::Sandbox;  // of wheels that have to be built again
  FetchOptions fetch;
  OnDraft on_draft = {};  // of a bundle that carries its image alone: with what is not carried
};

struct CreateResult {
  std::filesystem::path folder;
  bundle::Manifest manifest;
  std::vector<bundle::Digest> signers;
  std::vector<OfflineFinding> findings;  // packages that expect a network
  std::vector<RoleStatus> roles;         // the signatures that each role has, and needs
  NativeReport native;
};

// Throws Conflict when the folder exists. It gets its name last, so nothing incomplete is left under it.
CreateResult create(const CreateOptions& options, bundle::Progress& progress);

}  // namespace sealift::packager
