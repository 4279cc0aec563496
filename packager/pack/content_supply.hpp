// SPDX-License-Identifier: Apache-2.0
// Brings the bytes of contents to this machine: fetched, built or written into the cache. Before planning it brings
// what is missing; later, one by one, what turns out to be damaged where it is read.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "packager/content/content.hpp"
#include "packager/host/sandbox.hpp"
#include "packager/lock/locked_indexes.hpp"

namespace sealift::packager {

// What wheels were built with, and are built again with.
struct Rebuild {
  std::string python_version;  // "3.11.2"
  LockedIndexes indexes;
  Isolation isolation = Isolation::Sandbox;
};

class ContentSupply {
 public:
  ContentSupply(const Cache& cache, bundle::Progress& progress, FetchOptions fetch, Rebuild rebuild);

  // Afterwards the cache holds all of them; what it had before is not read. Returns the wheels that it built. Throws as
  // fetch and rebuild_missing do.
  std::set<bundle::Digest> bring(const std::vector<Content>& contents) const;

  // A Repair: see content.hpp. What only `lock` or this machine has cannot be brought again, and is never damaged here.
  // Throws Digest for a wheel that would be built outside of a sandbox: by now the manifest says otherwise of it.
  bool repair(const Content& content) const;

 private:
  void refuse_unsandboxed(const Content& content) const;

  const Cache& cache_;
  bundle::Progress& console_;
  FetchOptions fetch_;
  Rebuild rebuild_;
};

}  // namespace sealift::packager
