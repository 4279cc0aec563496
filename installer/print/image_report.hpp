// SPDX-License-Identifier: Apache-2.0
// What `image` made, for people and for machines.
#pragma once

#include "bundle/core/json.hpp"
#include "installer/image/make_image.hpp"

namespace sealift::installer {

bundle::Json json_of(const MadeImage& made);
std::string text_of(const MadeImage& made);

}  // namespace sealift::installer
