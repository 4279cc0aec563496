// SPDX-License-Identifier: Apache-2.0
// What a bundle says about the Debian packages that it carries: the stanzas of its `apt/Packages`, which `lock` took
// from apt's lists. The packages themselves are not opened.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "sealift/bundle/verified_bundle.hpp"

namespace sealift::packager {

struct DebFacts {
  std::string name;
  std::string version;       // with its epoch: "4:12.2.0-3"
  std::string architecture;  // "amd64", "all"
  std::string origin;        // who made it, in lower case: "debian", "ubuntu"

  // "pkg:deb/debian/NAME@VERSION?arch=ARCHITECTURE"
  std::string purl() const;
};

// By the entry's path. Only packages whose stanza has the entry's SHA-256 are there; none when a delta does not carry
// the index. Throws Digest when the index is not the signed one, Format when it is larger than any is.
std::map<std::string, DebFacts> read_deb_facts(const bundle::VerifiedBundle& source);

// Whether an entry's path is that of a Debian package.
bool is_deb(std::string_view path);

}  // namespace sealift::packager
