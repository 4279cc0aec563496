// SPDX-License-Identifier: Apache-2.0
// The files of bundles under their paths in them, as folders.
#pragma once

#include "offline_repo/routes/route.hpp"

namespace sealift::offline_repo {

// /entries/ lists the bundles, /entries/NAME/ and each folder below it what lies there; /entries/NAME/PATH is a file,
// /entries/NAME/SHA256SUMS the digests of all of them. 301 to a folder's slash.
Response entry_answer(const Asked& asked);

}  // namespace sealift::offline_repo
