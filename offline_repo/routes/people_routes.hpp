// SPDX-License-Identifier: Apache-2.0
// Pages for people at the addresses that they know from elsewhere: a model's or data set's name, as on its hub, and an
// image's.
#pragma once

#include "offline_repo/routes/route.hpp"

namespace sealift::offline_repo {

// "org/name", "org/name/tree/REV[/FOLDER]", "org/name/blob/REV/PATH", behind "datasets/" too, and the name of an image;
// 404 for any other path.
Response page_of_name(const Asked& asked);

}  // namespace sealift::offline_repo
