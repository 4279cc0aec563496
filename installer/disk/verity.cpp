// SPDX-License-Identifier: Apache-2.0
// One ioctl; see verity.hpp.
#include "installer/disk/verity.hpp"

#include <sys/ioctl.h>

#include <cerrno>
#include <cstdint>

namespace sealift::installer {

namespace {

// fs-verity's request, spelled here since the headers of an older system lack it (linux/fsverity.h).
struct VerityRequest {
  std::uint32_t version, hash_algorithm, block_size, salt_size;
  std::uint64_t salt;
  std::uint32_t signature_size, reserved;
  std::uint64_t signature;
  std::uint64_t reserved_too[11];
};
static_assert(sizeof(VerityRequest) == 128);
constexpr unsigned long kEnableVerity = _IOW('f', 133, VerityRequest);

}  // namespace

bool enable_verity(const bundle::Descriptor& file) {
  const VerityRequest request{.version = 1, .hash_algorithm = 1, .block_size = 4096};  // 1: SHA-256
  return ::ioctl(file.get(), kEnableVerity, &request) == 0 || errno == EEXIST;
}

}  // namespace sealift::installer
