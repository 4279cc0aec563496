// SPDX-License-Identifier: Apache-2.0
// What a bundle's rpm packages say of themselves, read from each package's own header in the verified payload.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "sealift/bundle/verified_bundle.hpp"

namespace sealift::packager {

struct RpmFacts {
  std::string name;
  std::string epoch;         // "0" when there is none
  std::string version;       // with its epoch and release: "1:2.0-1.el9"
  std::string architecture;  // "x86_64", "noarch"
  std::string licence;       // as its maker states it; may be empty

  // "pkg:rpm/NAME@VERSION-RELEASE?arch=ARCHITECTURE&epoch=EPOCH"
  std::string purl() const;
};

// By the entry's path; without packages that a delta does not carry. Throws Format unless it is an rpm package.
std::map<std::string, RpmFacts> read_rpm_facts(const bundle::VerifiedBundle& source);

// Whether an entry's path is that of an rpm package.
bool is_rpm(std::string_view path);

}  // namespace sealift::packager
