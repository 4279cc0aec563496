// SPDX-License-Identifier: Apache-2.0
// Writes a part of the cache; see part_file.hpp. The lock is on the open file, so a crash releases it.
#include "packager/files/part_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <utility>

#include "bundle/host/named_lock.hpp"
#include "sealift/bundle/core/byte_source.hpp"
#include "sealift/bundle/host/interrupt.hpp"

namespace sealift::packager {

namespace fs = std::filesystem;
using bundle::Error;
using bundle::ErrorCode;

PartFile::PartFile(const Cache& cache, const bundle::Digest& digest, bundle::Progress& progress)
    : cache_(cache),
      digest_(digest),
      progress_(progress),
      path_(cache.part(digest)),
      payload_{.digest = cache.payload_digest()} {
  std::optional<bundle::Descriptor> locked = bundle::lock_named(path_, [this] {
    bundle::Descriptor file(::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644));
    if (!file) bundle::throw_errno("a download cannot be written", path_);
    return file;
  });
  if (!locked)
    throw Error(ErrorCode::Conflict, {.what = "another process is fetching this file into the same cache",
                                      .where = path_.string(),
                                      .next = "wait for it, then run the same command again"});
  file_ = *std::move(locked);
  hash_existing();
}

void PartFile::hash_existing() {
  bundle::FileSource source(path_);
  while (size_ < source.size()) {
    bundle::stop_if_interrupted();
    const bundle::ByteView piece = source.view(size_, std::size_t{1} << 20);
    hasher_.update(piece);
    chunks_.update(piece);
    size_ += piece.size();
  }
  progress_.skip(size_);
  ::lseek(file_.get(), 0, SEEK_END);
}

void PartFile::write(bundle::ByteView bytes) {
  hasher_.update(bytes);
  chunks_.update(bytes);
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t written = ::write(file_.get(), bytes.data() + done, bytes.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) bundle::throw_errno("a download cannot be written", path_);
    done += static_cast<std::size_t>(written);
  }
  size_ += bytes.size();
  progress_.add(bytes.size());
}

void PartFile::discard() {
  if (::ftruncate(file_.get(), 0) != 0) bundle::throw_errno("a download cannot be started anew", path_);
  ::lseek(file_.get(), 0, SEEK_SET);
  progress_.take_back(std::exchange(size_, 0));
  hasher_ = bundle::Hasher();
  chunks_ = bundle::ChunkDigester(payload_.chunk_size, payload_.digest);
}

void PartFile::adopt() {
  if (::fsync(file_.get()) != 0) bundle::throw_errno("a download cannot be synced", path_);
  cache_.adopt(path_, digest_);
  KnownChunks(cache_).write(digest_, size_, payload_, chunks_.finish());
  file_ = bundle::Descriptor();
}

void PartFile::remove() {
  progress_.take_back(std::exchange(size_, 0));
  file_ = bundle::Descriptor();
  std::error_code ignored;
  fs::remove(path_, ignored);
}

}  // namespace sealift::packager
