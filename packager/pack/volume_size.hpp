// SPDX-License-Identifier: Apache-2.0
// How large a volume may be, as typed on the command line: a number, or the medium that it has to fit on.
#pragma once

#include <cstdint>
#include <string>

namespace sealift::packager {

// "1G", "4700MB", "0", in bytes: K, M, G, T are powers of 1024, KB, MB, GB, TB powers of 1000. Throws Usage.
std::uint64_t parse_size(const std::string& text);

// "cd", "dvd", "dvd-dl", "bd", "fat32", or what parse_size takes; 0 means one volume. In
// bytes, of which a volume takes whole chunks. Throws Usage listing the words.
std::uint64_t parse_volume_size(const std::string& text);

// "5%" or "5", from 1 to 100: how much recovery data. Throws Usage.
unsigned parse_percent(const std::string& text);

}  // namespace sealift::packager
