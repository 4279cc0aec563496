// SPDX-License-Identifier: Apache-2.0
// Downloads into the cache, several at a time, each hashed while it arrives; fetch.cpp is the only door to libcurl.
// What has the wrong digest is never kept; what was cut is resumed, in this run or the next.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "packager/files/cache.hpp"
#include "packager/host/console.hpp"

namespace sealift::packager {

struct Download {
  std::string name;  // for messages
  std::string url;
  bundle::Digest sha256;
  std::uint64_t size = 0;  // bytes; 0 when nobody said
  std::string bearer;      // a token for this host alone: libcurl leaves it out when it is sent on to another
};

struct FetchOptions {
  unsigned jobs = 4;
  int attempts = 5;                             // in a row that bring nothing, of each file
  std::chrono::milliseconds first_pause{1000};  // doubled after each failure
  bool trust_cache = false;                     // for who hashes what is cached when it is used
};

// Afterwards the cache holds every download, with the right digest. Cached files are hashed first; a damaged one is
// removed and fetched again. Throws Space before anything is fetched; Network or Digest when everything else has
// arrived, naming every file that has not and every one that is not what was locked. Returns how many were fetched.
std::size_t fetch(const std::vector<Download>& downloads, const Cache& cache, Console& console,
                  const FetchOptions& options = {});

struct Answer {
  std::string body;
  std::string link;  // the header of that name, empty when there is none
};

// What small documents say, in the order of the URLs, with the same patience; none longer than `max_size`. Throws
// Network; `what` is its sentence and `hint` what to do when the server does not let us in or has nothing there.
std::vector<Answer> ask(const std::vector<std::string>& urls, const std::string& bearer, std::uint64_t max_size,
                        const FetchOptions& options, const std::string& what, const std::string& hint);

// What the servers say about sizes (HEAD), in the same order; 0 where they do not.
std::vector<std::uint64_t> remote_sizes(const std::vector<std::string>& urls, unsigned jobs);

}  // namespace sealift::packager
