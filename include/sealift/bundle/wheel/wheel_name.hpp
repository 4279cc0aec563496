// SPDX-License-Identifier: Apache-2.0
// The names in and around a wheel: its file name taken apart, projects and versions compared as Python compares them.
// Source: packaging.python.org, "Binary distribution format", "Names and normalization", "Version specifiers".
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace sealift::bundle {

// NAME-VERSION(-BUILD)-PYTHON-ABI-PLATFORM.whl taken apart; name and version as the file spells them.
struct WheelName {
  std::string name;
  std::string version;
  std::string build;  // empty: none
  std::string python_tag;
  std::string abi_tag;
  std::string platform_tag;
};

// std::nullopt when this is not the file name of a wheel.
std::optional<WheelName> parse_wheel_name(std::string_view file_name);

// PEP 503: lower case, and runs of '-', '_' and '.' become one '-'.
std::string normalized_project_name(std::string_view name);

// Equal for versions that Python takes for one: 2024.07.1 and 2024.7.1, 1.0 and 1.0.0, 1.0-RC1 and 1.0c1. Any other
// text is reduced to its letters and numbers.
std::string normalized_version(std::string_view version);

}  // namespace sealift::bundle
