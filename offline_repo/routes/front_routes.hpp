// SPDX-License-Identifier: Apache-2.0
// The page for people, at the root.
#pragma once

#include "offline_repo/routes/route.hpp"

namespace sealift::offline_repo {

// In the language that ?lang= or Accept-Language asks for; ?q= searches.
Response front_page(const Asked& asked);

}  // namespace sealift::offline_repo
