// SPDX-License-Identifier: Apache-2.0
// What servers say about files: small documents, kept in memory, and sizes. Asked while locking; the files themselves
// are fetched into the cache by fetch.hpp.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "packager/network/parallel_requests.hpp"

namespace sealift::packager {

struct RemoteDocument {
  std::string body;
  std::string link;  // the header of that name, empty when there is none
};

// The documents in the order of the URLs, each tried as often as a download and none longer than `max_size` bytes.
// `bearer` is a token for these hosts alone, or empty. Throws Network: `what` is its sentence, and `hint` says what to
// do when the server refuses us or has nothing there. `logins`: our name where we have no token.
std::vector<RemoteDocument> get_documents(const std::vector<std::string>& urls, const std::string& bearer,
                                          std::uint64_t max_size, const FetchOptions& options, const std::string& what,
                                          const std::string& hint, const HttpLogins* logins = nullptr);

// Sizes in bytes by HEAD, in the order of the URLs; 0 where the server does not say or does not answer.
std::vector<std::uint64_t> remote_sizes(const std::vector<std::string>& urls, unsigned jobs, const HttpLogins& logins);

}  // namespace sealift::packager
