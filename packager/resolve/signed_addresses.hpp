// SPDX-License-Identifier: Apache-2.0
// Addresses whose query is a token that the index made for a while, as indexes before object stores give them. It is a
// password, so the lock keeps the address without it and the index's page, and `create` asks that page again.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "packager/host/http_logins.hpp"
#include "packager/lock/locked_indexes.hpp"
#include "packager/network/parallel_requests.hpp"

namespace sealift::packager {

// Notes the queries of all files that a pylock has from these indexes, and returns the pages that gave them, which are
// asked for that. Throws Usage for an address that the job itself names with what looks like a token, CannotCheck for
// one that is on no page: nobody could be asked for it again.
std::vector<std::string> take_signed_addresses(std::string_view pylock, const LockedIndexes& indexes,
                                               HttpLogins& logins);

// Asks these pages, and notes the queries that their links have now. Throws Network.
void ask_signed_addresses(const std::vector<std::string>& pages, HttpLogins& logins, const FetchOptions& options);

}  // namespace sealift::packager
