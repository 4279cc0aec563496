// SPDX-License-Identifier: Apache-2.0
// What apt is answered: /apt/NAME/FILE, and with the "./" that a flat source has, /apt/NAME/./FILE.
#pragma once

#include "offline_repo/routes/route.hpp"

namespace sealift::offline_repo {

Response apt_file(const Asked& asked);

// Whether a client that has read an index may ask for this after a switch: its index says what it must be.
bool is_apt_package(std::string_view target);

}  // namespace sealift::offline_repo
