// SPDX-License-Identifier: Apache-2.0
// How large a volume may be, as people say it: a number, or the medium that it has to fit.
#pragma once

#include <cstdint>
#include <string>

namespace sealift::packager {

// "1G", "4700MB", "0", in bytes: K, M, G, T are powers of 1024, KB, MB, GB, TB powers of 1000. Throws Usage.
std::uint64_t parse_size(const std::string& text);

// "cd", "dvd", "dvd-dl", "bd", "fat32", or what parse_size takes; 0 is one volume. In bytes, before
// volumes are rounded down to whole chunks. Throws Usage naming the words.
std::uint64_t parse_volume_size(const std::string& text);

}  // namespace sealift::packager
