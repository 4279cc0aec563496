// SPDX-License-Identifier: Apache-2.0
// Everything that the documents of a bundle are written from, as one value: read once from the verified bundle, then
// only read by the SBOM, the provenance, the licence table and the review.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "packager/documents/deb_facts.hpp"
#include "packager/documents/licence_files.hpp"
#include "packager/documents/model_facts.hpp"
#include "packager/documents/rpm_facts.hpp"
#include "packager/documents/wheel_facts.hpp"
#include "packager/lock/lock.hpp"
#include "sealift/bundle/host/progress.hpp"
#include "sealift/bundle/open_bundle.hpp"
#include "sealift/bundle/verified_bundle.hpp"

namespace sealift::packager {

struct BundledWheel {
  bool carried = true;  // false where a delta or an image stands for it; then only its file name says what it is
  WheelFacts facts;
  std::string folder;  // below licences/; empty when it has no licence file
  CollectedLicences licences;
};

struct BundleFacts {
  const bundle::VerifiedBundle& source;
  bundle::Digest seal;  // SHA-256 of the seal's file
  std::uint64_t seal_size = 0;
  std::vector<bundle::Digest> volumes;         // SHA-256 of each volume's file, of checked chunks
  std::map<std::string, BundledWheel> wheels;  // by the entry's path
  std::map<std::string, DebFacts> debs;        // the same
  std::map<std::string, RpmFacts> rpms = {};   // the same
  std::optional<Lock> lock = std::nullopt;     // that this bundle was made from
  std::vector<BundledModel> models = {};       // and data

  const bundle::Manifest& manifest() const { return source.manifest(); }
};

// Reads every chunk and every wheel of `source`, whose seal is `seal`, and copies licence files of wheels and models
// below `licences`, which exists. `lock` is a file, or empty. The facts refer to `source`. Throws Digest when any chunk
// differs, Conflict when the lock is another bundle's.
BundleFacts read_bundle_facts(const bundle::VerifiedBundle& source, const bundle::Seal& seal,
                              const std::filesystem::path& lock, const std::filesystem::path& licences,
                              bundle::Progress& progress);

// "urn:uuid:...", of version 8, which RFC 9562 leaves to its makers: the first bits of the manifest's digest.
std::string serial_number(const bundle::Digest& identity);

// The interpreter's entry is this and its version.
inline constexpr std::string_view kInterpreterPrefix = "python/cpython-";

// What an entry is to people: "wheel", "interpreter", "program", "model", "data", "deb", "rpm", "image",
// "squashfs" or "file".
std::string_view sort_of(const bundle::Entry& entry);

// Of a carried glibc, as its COPYING.LIB and the heads of its files say; a bundle carries no metadata of it.
inline constexpr const char* kGlibcLicence = "LGPL-2.1-or-later";

}  // namespace sealift::packager
