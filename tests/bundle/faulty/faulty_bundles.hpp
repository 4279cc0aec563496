// SPDX-License-Identifier: Apache-2.0
// What the lists of faults are made with: small bundles, each in a folder of its own, signed by one key or by others.
// Each one is printed as "NAME FINGERPRINT" with the fingerprint of the root that a verifier has pinned.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "bundle/core/json.hpp"
#include "tests/support/tiny_bundle.hpp"

namespace sealift::test {

using namespace sealift::bundle;
namespace fs = std::filesystem;

extern fs::path faulty_folder;  // where they are written
extern const PrivateKey key, other, third, chinese;
using Keys = std::vector<const PrivateKey*>;
using Chain = std::vector<Envelope>;

TinyBundle tiny(DigestAlgorithm digest = DigestAlgorithm::Sha256);

void report(const std::string& name, const Digest& pinned);
MadeBundle fresh(const std::string& name, const TinyBundle& made = tiny());
// A bundle under these roots, signed by `signers`.
MadeBundle under(const std::string& name, const Chain& roots, const Keys& signers, std::size_t pinned = 0);
// Signs `manifest`, whatever it says.
void seal_bytes(const MadeBundle& made, const std::string& manifest, std::string_view type = kBundlePayloadType);
void flip(const fs::path& file, std::uint64_t bit);
// A rightly signed root that `change` made wrong.
void root(const std::string& name, const std::function<void(Json&)>& change, const Keys& signers = {&key});

// The lists, in the order of verification.
void signers_and_roots();
void bad_seals();
void bad_roots();
void bad_manifests();
void deltas();
void recovery_data();
void bad_folders();

}  // namespace sealift::test
