// SPDX-License-Identifier: Apache-2.0
// A bundle's files under their paths in it: /entries/NAME/ is the list with digests, /entries/NAME/PATH a file.
#pragma once

#include "offline_repo/requests/request_target.hpp"
#include "offline_repo/requests/response.hpp"

namespace sealift::offline_repo {

// `target` begins with "entries".
Response entry_answer(const Catalogue& catalogue, const Request& request, const Target& target);

}  // namespace sealift::offline_repo
