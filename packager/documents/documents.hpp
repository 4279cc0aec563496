// SPDX-License-Identifier: Apache-2.0
// `sealift-pack papers`: what people want to file with a bundle, made from the bundle alone: SBOM, provenance, licences
// and a page for the media desk. Verified by a pinned root first; every byte is read through the VerifiedBundle, so the
// papers say nothing that was not signed. The same bundle gives the same bytes, whenever and wherever they are made, so
// anyone who has the bundle can make them again and compare; that is why they are not signed themselves.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "packager/host/console.hpp"
#include "packager/documents/deb_facts.hpp"
#include "packager/documents/licence_files.hpp"
#include "packager/job/lock.hpp"
#include "packager/documents/wheel_facts.hpp"
#include "sealift/bundle/verified_bundle.hpp"

namespace sealift::packager {

struct PapersOptions {
  std::filesystem::path bundle;
  bundle::Digest fingerprint;  // of the root by which the bundle is verified
  std::filesystem::path lock;  // empty: papers without addresses
  std::filesystem::path out;   // the new folder
};

struct PaperWheel {
  bool carried = true;  // not by a delta; then only its file name says what it is
  WheelFacts facts;
  std::string folder;  // below licences/; empty when it has no licence file
  CollectedLicences licences;
};

// Everything that the papers are written from.
struct PaperFacts {
  const bundle::VerifiedBundle& source;
  bundle::Digest seal;  // SHA-256 of the seal's file
  std::uint64_t seal_size = 0;
  std::vector<bundle::Digest> volumes;       // SHA-256 of each volume's file, of checked chunks
  std::map<std::string, PaperWheel> wheels;  // by the entry's path
  std::map<std::string, DebFacts> debs;      // the same
  std::optional<Lock> lock = std::nullopt;   // that this bundle was made from

  const bundle::Manifest& manifest() const { return source.manifest(); }
};

// "urn:uuid:...", of the form 8 that RFC 9562 leaves to its makers: the first bits of the manifest's digest.
std::string serial_number(const bundle::Digest& identity);

// The files that were written, sorted. Throws what bundle::verify throws; Digest when any chunk differs; Conflict when
// `out` exists or the lock is another bundle's.
std::vector<std::filesystem::path> write_papers(const PapersOptions& options, Console& console);

}  // namespace sealift::packager
