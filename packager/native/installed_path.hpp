// SPDX-License-Identifier: Apache-2.0
// Where a wheel's file comes to lie in a generation. Path owners and the native check ask the same question, and the
// installer gives the same answer (place_of_wheel_file).
#pragma once

#include <string>

#include "sealift/bundle/wheel/wheel.hpp"

namespace sealift::packager {

// Relative to the generation's root; `python` is like "3.11".
std::string installed_path(const bundle::Wheel& wheel, const bundle::WheelFile& file, const std::string& python);

}  // namespace sealift::packager
