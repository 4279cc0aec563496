// SPDX-License-Identifier: Apache-2.0
// Where the last whole line of a file ends.
// See whole_lines.hpp.
#include "trainer/monitor/whole_lines.hpp"

#include <algorithm>
#include <fstream>
#include <string>

namespace sealift::trainer {
namespace {

/// Of the end of the file so much is looked at; a line is a few hundred bytes long.
constexpr std::uintmax_t kMostBytes = 1 << 20;

/// How much of `end` is whole lines. The first zero byte and all behind it do not count.
std::size_t whole_part(const std::string& end) {
  const auto last = end.rfind('\n', std::min(end.find('\0'), end.size()));
  return last == std::string::npos ? 0 : last + 1;
}

}  // namespace

void end_in_whole_line(const std::filesystem::path& path) {
  std::error_code none;
  const auto size = std::filesystem::file_size(path, none);
  if (none || size == 0) return;
  const auto from = size > kMostBytes ? size - kMostBytes : 0;
  std::string end(static_cast<std::size_t>(size - from), ' ');
  std::ifstream file(path, std::ios::binary);
  file.seekg(static_cast<std::streamoff>(from));
  if (!file.read(end.data(), static_cast<std::streamsize>(end.size()))) return;
  const auto whole = whole_part(end);
  if (whole == end.size() || (whole == 0 && from > 0)) return;
  std::filesystem::resize_file(path, from + whole, none);
}

}  // namespace sealift::trainer
