// SPDX-License-Identifier: Apache-2.0
// What `mount` has mounted, for people and for machines.
#pragma once

#include "bundle/core/json.hpp"
#include "installer/mount/mount_image.hpp"

namespace sealift::installer {

bundle::Json json_of(const Mounted& mounted);
std::string text_of(const Mounted& mounted);

}  // namespace sealift::installer
