// SPDX-License-Identifier: Apache-2.0
// A plan becomes a signed bundle folder. Every entry's chunks are hashed on their way, by several threads, and compared
// where they are known for its SHA-256; where they are not, SHA-256 is computed as well. So this is also where a
// damaged cache that no earlier reader has met is noticed, and repaired.
#pragma once

#include <filesystem>

#include "packager/files/known_chunks.hpp"
#include "packager/keys/signing.hpp"
#include "packager/pack/pack_plan.hpp"
#include "sealift/bundle/host/progress.hpp"

namespace sealift::packager {

// Where bytes come from, what is known of them, and who brings damaged ones again.
struct Stock {
  const Cache& cache;
  const KnownChunks& known;
  const Repair& repair;
};

struct WrittenBundle {
  bundle::Manifest manifest;
  bool mended = false;  // a file was not what was locked, and what `repair` brought was written in its place
};

// Into `folder`, which exists and is empty; volumes of at most `volume_size` bytes, 0: one volume. Throws Digest for an
// input that is not what was locked and cannot be repaired, and for a companion that changes meanwhile. What
// `stock.known` lacks, it gets.
WrittenBundle write_bundle(const PackPlan& plan, const std::filesystem::path& folder, std::uint64_t volume_size,
                           const Signing& signing, const Stock& stock, bundle::Progress& progress);

}  // namespace sealift::packager
