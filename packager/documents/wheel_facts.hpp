// SPDX-License-Identifier: Apache-2.0
// What the documents repeat of a wheel's METADATA: version, licence, requirements, names of licence files.
// Its authors wrote it, so every text is made fit to be shown before it leaves here.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "packager/documents/requires_dist.hpp"

namespace sealift::packager {

struct WheelFacts {
  std::string project;                // as METADATA spells it
  std::string version;                // the same
  std::string expression;             // License-Expression, if it can be one of SPDX; then `licences` is empty
  std::vector<std::string> licences;  // else names, as License or the classifiers give them; may be empty
  std::vector<WheelRequirement> requires_dist;
  std::vector<std::string> licence_files;  // what License-File names, as written: not yet a path of anything

  // "MIT", "BSD License, MIT License" or nothing.
  std::string licence() const;
};

WheelFacts read_wheel_facts(std::string_view metadata);

// `text` on one line, without control characters and without characters that turn the reading direction, which could
// make a name look like another one; cut at 200 bytes.
std::string shown(std::string_view text);

// "pkg:pypi/NAME@VERSION", percent-encoded as the purl specification says.
std::string purl_of(std::string_view type, std::string_view name, std::string_view version);

}  // namespace sealift::packager
