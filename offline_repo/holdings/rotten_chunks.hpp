// SPDX-License-Identifier: Apache-2.0
// Which chunks of which bundles could not be read, or were wrong, since they were opened: what the server met while it
// sent, and what a scrub found. From them follows which files are taken out; everything else of a bundle goes on.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "offline_repo/catalogue/catalogue.hpp"

namespace sealift::offline_repo {

// Safe from several threads.
class RottenChunks {
 public:
  using InBundle = std::shared_ptr<const bundle::VerifiedBundle>;

  // True when nobody has said so before.
  bool add(const InBundle& in, std::uint64_t chunk);
  // It was read and right after all.
  void remove(const InBundle& in, std::uint64_t chunk);
  void clear();
  std::set<std::uint64_t> of(const InBundle& in) const;
  // Grows with every change.
  std::uint64_t changes() const;

 private:
  mutable std::mutex guard_;
  std::map<std::weak_ptr<const bundle::VerifiedBundle>, std::set<std::uint64_t>, std::owner_less<>> chunks_;
  std::uint64_t changes_ = 0;
};

// The contents without wheels that have bytes in one of these chunks; files of hubs that have are listed as rotten.
Contents without(const Contents& contents, const std::set<std::uint64_t>& chunks);

}  // namespace sealift::offline_repo
