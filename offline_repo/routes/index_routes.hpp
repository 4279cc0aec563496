// SPDX-License-Identifier: Apache-2.0
// What pip and uv are answered: the index (PEP 503, PEP 691), wheels with their METADATA (PEP 658), and all wheels as
// one list.
#pragma once

#include "offline_repo/routes/route.hpp"

namespace sealift::offline_repo {

Response project_list(const Asked& asked);
// 301 to the normalized NAME with its slash.
Response project_page(const Asked& asked);
Response wheel_list(const Asked& asked);
// 409 where the wheels are no closure.
Response requirements_list(const Asked& asked);
Response wheel_file(const Asked& asked);
Response wheel_metadata(const Asked& asked);
// The older JSON API; without VERSION of the newest one that is here.
Response project_api(const Asked& asked);

// 301 from an index without its slash.
Response slash_behind_simple(const Asked& asked);
Response slash_behind_wheels(const Asked& asked);

}  // namespace sealift::offline_repo
