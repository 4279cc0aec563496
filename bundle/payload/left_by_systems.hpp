// SPDX-License-Identifier: Apache-2.0
// Files that systems leave on a medium beside a bundle's, and the names that a second copy gets. Beside changed_names:
// the former are passed over, of the latter messages say what they are.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace sealift::bundle {

// "._NAME", which macOS writes beside each file on FAT and exFAT. ".DS_Store", "Thumbs.db" and "desktop.ini" end as no
// file of a bundle does, so nobody asks of them.
bool is_left_by_system(std::string_view name);

// "demo-1.vol001" of "demo-1 (1).vol001", "demo-1(1).vol001", "demo-1 - Copy.vol001", "demo-1 copy 2.vol001": names
// that browsers and file managers give a second copy. Empty for any other.
std::optional<std::string> original_name(std::string_view name);

}  // namespace sealift::bundle
