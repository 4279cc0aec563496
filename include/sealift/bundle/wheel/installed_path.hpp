// SPDX-License-Identifier: Apache-2.0
// Where a wheel's file lies in a generation. The packager asks to find two owners of one path and to follow libraries,
// the installer to put files there; one answer, so that a bundle that was packed can be installed.
// Source: packaging.python.org, "Binary distribution format", "The .data directory".
#pragma once

#include <string>
#include <string_view>

#include "sealift/bundle/wheel/wheel.hpp"

namespace sealift::bundle {

// The folder of "3.11"'s packages below a generation's root: "lib/python3.11/site-packages".
std::string site_packages_of(std::string_view python);

// The path below a generation's root of the file `path` of `scheme`, as WheelFile has them; `dist_info` is the wheel's,
// `site_packages` the environment's.
std::string installed_path(Scheme scheme, std::string_view path, std::string_view dist_info,
                           std::string_view site_packages);

}  // namespace sealift::bundle
