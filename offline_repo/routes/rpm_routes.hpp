// SPDX-License-Identifier: Apache-2.0
// What dnf is answered: /rpm/NAME/repodata/repomd.xml and /rpm/NAME/PACKAGE.rpm. What a path holds changes with the
// bundle.
#pragma once

#include "offline_repo/routes/route.hpp"

namespace sealift::offline_repo {

Response rpm_file(const Asked& asked);

}  // namespace sealift::offline_repo
