// SPDX-License-Identifier: Apache-2.0
#include "bundle/payload/volume_input.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <span>
#include <string>
#include <vector>

namespace sealift::bundle {

VolumeInput::VolumeInput(const std::filesystem::path& path, bool read_once) : InputFile(path) {
  if (read_once) open_past_the_cache();
}

bool VolumeInput::passes_the_cache(std::uint64_t offset, std::size_t count) const {
  return direct_ && offset % ChunkBuffer::kAlignment == 0 && !is_in_memory(offset, count);
}

std::size_t VolumeInput::read_past_the_cache(std::uint64_t offset, ChunkBuffer& buffer) const {
  const std::span<std::byte> pages = buffer.whole_pages();
  for (std::size_t done = 0; done < buffer.size();) {
    const std::uint64_t at = offset + done;
    const ssize_t count = ::pread(direct_.get(), pages.data() + done, pages.size() - done, static_cast<off_t>(at));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno != EINVAL) throw_errno("a file cannot be read at offset " + std::to_string(at), path());
    if (count <= 0) return done;
    done += static_cast<std::size_t>(count);
    if (done % ChunkBuffer::kAlignment != 0) return std::min(done, buffer.size());
  }
  return buffer.size();
}

// A second descriptor: the other one still serves what cannot be read this way.
void VolumeInput::open_past_the_cache() {
  direct_ = Descriptor(::open(path().c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_DIRECT));
  struct stat here {
  }, there{};
  if (direct_ && ::fstat(descriptor(), &here) == 0 && ::fstat(direct_.get(), &there) == 0 &&
      here.st_dev == there.st_dev && here.st_ino == there.st_ino)
    return;
  direct_ = Descriptor();
}

// Whether the page cache holds most of the range. mincore also answers yes to processes that may not know.
bool VolumeInput::is_in_memory(std::uint64_t offset, std::size_t count) const {
  void* const pages = ::mmap(nullptr, count, PROT_READ, MAP_SHARED, descriptor(), static_cast<off_t>(offset));
  if (pages == MAP_FAILED) return false;
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));  // up to 64 KiB on aarch64
  std::vector<unsigned char> resident((count + page - 1) / page);
  const bool known = ::mincore(pages, count, resident.data()) == 0;
  ::munmap(pages, count);
  const auto there = std::count_if(resident.begin(), resident.end(), [](unsigned char page) { return page & 1; });
  return known && static_cast<std::size_t>(there) * 2 > resident.size();
}

}  // namespace sealift::bundle
