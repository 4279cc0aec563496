// SPDX-License-Identifier: Apache-2.0
// Maps a token file, and holds its content to its digest.
// See token_file.hpp. Pages are read as they are used, so a file may be larger than memory.
// The digest is compared with the bytes that lie in memory, those that are used.
#include "data/token_file.hpp"

#include <sealift/train/checkpoint/digest.hpp>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>

namespace sealift::trainer {
namespace {

[[noreturn]] void cannot(const char* what, const std::filesystem::path& path, int error) {
  throw std::invalid_argument(std::string("cannot ") + what + " the token file " + path.string() + ": " +
                              std::strerror(error) + "; `sealift-train tokenize` makes one");
}

struct Descriptor {
  int number;
  ~Descriptor() {
    if (number >= 0) ::close(number);
  }
};

std::size_t size_of(const Descriptor& file, const std::filesystem::path& path) {
  struct stat status {};
  if (::fstat(file.number, &status) != 0) cannot("ask about", path, errno);
  if (!S_ISREG(status.st_mode)) cannot("map", path, EINVAL);
  return static_cast<std::size_t>(status.st_size);
}

std::shared_ptr<const std::byte> map(const std::filesystem::path& path, std::size_t& size) {
  const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (file.number < 0) cannot("open", path, errno);
  size = size_of(file, path);
  if (size == 0) return nullptr;
  void* const memory = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, file.number, 0);
  if (memory == MAP_FAILED) cannot("map", path, errno);
  return {static_cast<const std::byte*>(memory),
          [size](const std::byte* begin) { ::munmap(const_cast<std::byte*>(begin), size); }};
}

constexpr std::size_t kDigestAt = 128, kDigestEnd = TokenFileHeader::kBytes;

std::string digest_of(std::span<const std::byte> bytes) {
  train::Sha256 digest;
  digest.update(bytes.data(), kDigestAt);
  digest.update(bytes.data() + kDigestEnd, bytes.size() - kDigestEnd);
  return digest.hex();
}

}  // namespace

TokenFile TokenFile::open(const std::filesystem::path& path) {
  TokenFile file;
  std::size_t size = 0;
  file.memory_ = map(path, size);
  file.bytes_ = {file.memory_.get(), size};
  file.view_ = std::make_shared<TokenView>(file.bytes_, path.string());
  return file;
}

void TokenFile::check_content() const {
  const auto digest = digest_of(bytes_);
  const auto& expected = view_->header().content_sha256;
  if (digest != expected)
    throw std::invalid_argument("the token file " + view_->name() + " is damaged: its header says SHA-256 " + expected +
                                ", its content has " + digest + "; carry it again, or make it again");
  for (std::uint64_t index = 0; index < view_->header().sequences; ++index) view_->sequence(index);
  if (view_->header().kind == ExampleKind::Text || view_->header().kind == ExampleKind::Chat) return;
  for (std::uint64_t example = 0; example < view_->examples(); ++example) view_->value(example);
}

}  // namespace sealift::trainer
