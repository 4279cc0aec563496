// SPDX-License-Identifier: Apache-2.0
// The release is parsed and not compared as text: 5.10 is newer than 5.8.
#include "installer/disk/file_sync.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>

#include "installer/disk/disk_error.hpp"
#include "sealift/bundle/core/file.hpp"

namespace sealift::installer {

namespace fs = std::filesystem;

bool syncfs_reports_failures(std::string_view release) {
  unsigned major = 0, minor = 0;
  const char* const end = release.data() + release.size();
  const auto first = std::from_chars(release.data(), end, major);
  if (first.ec != std::errc() || first.ptr == end || *first.ptr != '.') return false;
  if (std::from_chars(first.ptr + 1, end, minor).ec != std::errc()) return false;
  return major > 5 || (major == 5 && minor >= 8);
}

std::uint64_t sync_each_file(const fs::path& folder) {
  std::uint64_t files = 0;
  for (const fs::directory_entry& there : fs::recursive_directory_iterator(folder)) {
    if (!fs::is_regular_file(there.symlink_status())) continue;
    const bundle::Descriptor file(::open(there.path().c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
    if (!file || ::fsync(file.get()) != 0) throw_disk_error("a file cannot be made durable", there.path(), errno);
    ++files;
  }
  return files;
}

}  // namespace sealift::installer
