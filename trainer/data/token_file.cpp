// SPDX-License-Identifier: Apache-2.0
// Reads a token file, and holds its content to its digest.
// See token_file.hpp. A sequence is read when it is used, so a file may be larger than memory.
// By pread and not by a mapping: where a file is cut, a mapping ends the process by SIGBUS, without a word.
#include "trainer/data/token_file.hpp"

#include <sealift/train/checkpoint/digest.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>

namespace sealift::trainer {
namespace {

[[noreturn]] void cannot(const char* what, const std::filesystem::path& path, int error) {
  throw std::invalid_argument(std::string("cannot ") + what + " the token file " + path.string() + ": " +
                              std::strerror(error) + "; `sealift-train tokenize` makes one");
}

/// The bytes of an open file.
class BytesOfFile final : public TokenBytes {
 public:
  explicit BytesOfFile(const std::filesystem::path& path) : path_(path) {
    number_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (number_ < 0) cannot("open", path, errno);
    struct stat status {};
    const int error = ::fstat(number_, &status) != 0 ? errno : S_ISREG(status.st_mode) ? 0 : EINVAL;
    if (error != 0) {
      ::close(number_);
      cannot("read", path, error);
    }
    size_ = static_cast<std::uint64_t>(status.st_size);
  }
  ~BytesOfFile() override { ::close(number_); }
  BytesOfFile(const BytesOfFile&) = delete;
  BytesOfFile& operator=(const BytesOfFile&) = delete;

  std::uint64_t size() const override { return size_; }

  void read(std::uint64_t at, std::span<std::byte> into) const override {
    while (!into.empty()) {
      const auto got = ::pread(number_, into.data(), into.size(), static_cast<off_t>(at));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) cannot("read", path_, errno);
      if (got == 0)
        throw std::invalid_argument("the token file " + path_.string() + " was cut while it was read: it had " +
                                    std::to_string(size_) + " bytes, now it ends before byte " +
                                    std::to_string(at + into.size()) + "; make it again, and begin the job again");
      at += static_cast<std::uint64_t>(got);
      into = into.subspan(static_cast<std::size_t>(got));
    }
  }

 private:
  std::filesystem::path path_;
  int number_ = -1;
  std::uint64_t size_ = 0;
};

constexpr std::size_t kDigestAt = 128, kDigestEnd = TokenFileHeader::kBytes;

std::string digest_of(const TokenBytes& bytes) {
  train::Sha256 digest;
  std::vector<std::byte> piece(1 << 20);
  const auto add = [&](std::uint64_t begin, std::uint64_t end) {
    for (; begin < end; begin += piece.size()) {
      const auto part = std::span(piece).first(std::min<std::uint64_t>(piece.size(), end - begin));
      bytes.read(begin, part);
      digest.update(part.data(), part.size());
    }
  };
  add(0, kDigestAt);
  add(kDigestEnd, bytes.size());
  return digest.hex();
}

}  // namespace

TokenFile TokenFile::open(const std::filesystem::path& path) {
  TokenFile file;
  file.bytes_ = std::make_shared<BytesOfFile>(path);
  file.view_ = std::make_shared<TokenView>(file.bytes_, path.string());
  return file;
}

void TokenFile::check_content() const {
  const auto digest = digest_of(*bytes_);
  const auto& expected = view_->header().content_sha256;
  if (digest != expected)
    throw std::invalid_argument("the token file " + view_->name() + " is damaged: its header says SHA-256 " + expected +
                                ", its content has " + digest + "; carry it again, or make it again");
  for (std::uint64_t index = 0; index < view_->header().sequences; ++index) view_->sequence(index);
  if (view_->header().kind == ExampleKind::Text || view_->header().kind == ExampleKind::Chat) return;
  for (std::uint64_t example = 0; example < view_->examples(); ++example) view_->value(example);
}

}  // namespace sealift::trainer
