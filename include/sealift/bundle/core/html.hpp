// SPDX-License-Identifier: Apache-2.0
// Text on its way into a page: what strangers have named must not become a tag or an attribute. Both sides write pages,
// the packager for the media desk and the repository its index.
#pragma once

#include <string>
#include <string_view>

namespace sealift::bundle {

// For text between tags and for attributes in quotes; U+FFFD stands for what commands a terminal or turns text round.
std::string html_escaped(std::string_view text);

}  // namespace sealift::bundle
