// SPDX-License-Identifier: Apache-2.0
// CACHE/builds/DIGEST and a file beside it that is locked; see build_place.hpp.
#include "packager/builds/build_place.hpp"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>

#include <cerrno>
#include <string>

#include "bundle/host/named_lock.hpp"
#include "bundle/host/scratch_folder.hpp"
#include "sealift/bundle/host/interrupt.hpp"

namespace sealift::packager {

namespace fs = std::filesystem;

BuildPlace::BuildPlace(const Cache& cache, const bundle::Digest& source)
    : path_(cache.builds() / source.hex().substr(0, 16)), scratch_(cache.scratch()) {
  fs::create_directories(path_.parent_path());
  lock_ =
      bundle::Descriptor(::open((path_.string() + ".lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644));
  if (!lock_) bundle::throw_errno("a build cannot be locked", path_);
  while (::flock(lock_.get(), LOCK_EX) != 0) {
    if (errno != EINTR) bundle::throw_no_lock("a build cannot be locked", path_, errno);
    bundle::stop_if_interrupted();
  }
}

BuildPlace::~BuildPlace() {  // the flock's file stays, since a process that waits for it has it open
  // By another name, so that what an interrupt leaves of it is cleared by the next run.
  std::string left = (scratch_ / "build-XXXXXX").string();
  std::error_code error;
  if (::mkdtemp(left.data()) != nullptr) fs::rename(path_, left, error);
  bundle::remove_scratch(path_);
  bundle::remove_scratch(left);
}

}  // namespace sealift::packager
