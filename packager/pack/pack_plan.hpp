// SPDX-License-Identifier: Apache-2.0
// What `create` will write, as a value: the manifest's draft and its entries, sorted. Making it reads every wheel's
// directory and changes nothing, so whatever cannot be installed is refused before a byte is written.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "packager/content/content.hpp"
#include "packager/owners/settle_owners.hpp"
#include "packager/owners/shared_packages.hpp"
#include "sealift/bundle/manifest/manifest.hpp"

namespace sealift::packager {

struct PlannedEntry {
  Content content;
  bundle::Entry draft;
  std::filesystem::path file;         // where its bytes are now
  std::filesystem::path stored = {};  // of a Patch: where what will be stored is now
};

// Name -> file: what is copied beside the payload.
using Companions = std::map<std::string, std::filesystem::path>;

struct PackPlan {
  bundle::Manifest draft;                        // without payload and entries
  bundle::Target profile;                        // all that the lock knows of the target; the draft's says less
  std::vector<std::string> host_libraries = {};  // patterns of what the target has itself
  std::filesystem::path system = {};             // where the target's glibc is read; empty: here
  std::string python;                            // "3.11"
  std::vector<PlannedEntry> entries;             // sorted by path
  std::vector<std::filesystem::path>
      companions;      // copied beside the payload, in the order and under the names of the draft's
  LeftOut left_out;    // by [[owner]] rules, or brought by another wheel too; the draft's placements say it as well
  Shares shares = {};  // wheels with files in packages of others; the draft says it as well
  std::vector<std::string> unused = {};  // files of two wheels that differ and that nobody uses, and whose is taken
  std::size_t left_out_bytecode = 0;     // compiled files of wheels, which are never installed
  std::vector<std::string> misdescribed = {};  // wheels whose RECORD is wrong about files, each with how many

  unsigned recovery_percent = 0;  // of the payload, as recovery data; 0: none

  std::uint64_t payload_size() const;  // bytes before compression that are carried; equal ones are carried once
  std::uint64_t total_size() const;    // the same with recovery data and what is copied beside the payload
};

// `contents` are the lock's, and in `cache` or where they say. Throws Missing, Digest, Format (a wheel that cannot be
// installed), Conflict (two owners of one path).
PackPlan plan_pack(const Lock& lock, const std::vector<Content>& contents, const Companions& companions,
                   const Cache& cache, const Repair& repair = {});

}  // namespace sealift::packager
