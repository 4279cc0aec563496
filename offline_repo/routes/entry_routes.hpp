// SPDX-License-Identifier: Apache-2.0
// A bundle's files under their paths in it.
#pragma once

#include "offline_repo/routes/route.hpp"

namespace sealift::offline_repo {

// /entries/NAME/ is the list with digests, /entries/NAME/PATH a file.
Response entry_answer(const Asked& asked);

}  // namespace sealift::offline_repo
