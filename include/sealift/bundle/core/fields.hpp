// SPDX-License-Identifier: Apache-2.0
// What a plain name is: of bundles, channels, keys and modules. They become file names and are shown on terminals, so
// few characters are allowed.
#pragma once

#include <string_view>

namespace sealift::bundle {

// Starts with a letter or digit, then letters, digits, '.', '_', '-'; at most 100.
bool is_plain_name(std::string_view text);

}  // namespace sealift::bundle
