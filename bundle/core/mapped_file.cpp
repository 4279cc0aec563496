// SPDX-License-Identifier: Apache-2.0
// Maps a file privately and read-only; see mapped_file.hpp. An empty file has no mapping.
#include "sealift/bundle/core/mapped_file.hpp"

#include <sys/mman.h>
#include <sys/stat.h>

#include <string>

namespace sealift::bundle {

MappedFile::MappedFile(const Descriptor& file, std::uint64_t size, const std::filesystem::path& path) {
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) throw_errno("a file cannot be examined", path);
  if (!S_ISREG(status.st_mode) || static_cast<std::uint64_t>(status.st_size) != size)
    throw Error(ErrorCode::Digest, {.what = "a file is not as long as it was",
                                    .where = path.string(),
                                    .expected = "a file of " + std::to_string(size) + " bytes",
                                    .got = std::to_string(status.st_size) + " bytes"});
  if (size == 0) return;
  void* const begin = ::mmap(nullptr, static_cast<std::size_t>(size), PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (begin == MAP_FAILED) throw_errno("a file cannot be mapped", path);
  bytes_ = ByteView(static_cast<const std::byte*>(begin), static_cast<std::size_t>(size));
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

}  // namespace sealift::bundle
