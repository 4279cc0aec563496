// SPDX-License-Identifier: Apache-2.0
// CACHE/builds/DIGEST and a file beside it that is locked; see build_place.hpp.
#include "packager/builds/build_place.hpp"

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>

#include "sealift/bundle/host/interrupt.hpp"

namespace sealift::packager {

namespace fs = std::filesystem;

BuildPlace::BuildPlace(const Cache& cache, const bundle::Digest& source)
    : path_(cache.root() / "builds" / source.hex().substr(0, 16)) {
  fs::create_directories(path_.parent_path());
  lock_ =
      bundle::Descriptor(::open((path_.string() + ".lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644));
  if (!lock_) bundle::throw_errno("a build cannot be locked", path_);
  while (::flock(lock_.get(), LOCK_EX) != 0) {
    if (errno != EINTR) bundle::throw_errno("a build cannot be locked", path_);
    bundle::stop_if_interrupted();
  }
}

BuildPlace::~BuildPlace() {  // the flock's file stays, since a process that waits for it has it open
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

}  // namespace sealift::packager
