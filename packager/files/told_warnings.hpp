// SPDX-License-Identifier: Apache-2.0
// The warnings that `lock` and `create` have given for one lock. A run prints the new ones and counts the others:
// what comes with every run is no longer read, and hides the important one.
#pragma once

#include <filesystem>
#include <set>
#include <string>

#include "packager/files/cache.hpp"

namespace sealift::packager {

class ToldWarnings {
 public:
  // `lock` is the digest of the lock file's text: a new lock hears everything.
  ToldWarnings(const Cache& cache, const bundle::Digest& lock);

  // As if no run had been: for `lock`, which may write the same lock twice.
  void begin_anew();
  // Prints a warning that no earlier run has given.
  void warn(const std::string& text, bundle::Progress& progress);
  // Says how many were counted only, and notes all of them in the cache.
  void close(bundle::Progress& progress) const;

 private:
  Cache cache_;
  std::filesystem::path note_;
  std::set<std::string> before_, now_;  // digests of texts
};

}  // namespace sealift::packager
