// SPDX-License-Identifier: Apache-2.0
// Folders are entered by descriptors, so that nobody can have one replaced by a link on the way. Several threads remove
// what they can; one then looks at what is left, and says why.
#include "installer/disk/remove_tree.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <string_view>

#include "bundle/host/empty_folder.hpp"
#include "sealift/bundle/core/file.hpp"

namespace sealift::installer {

namespace {

int remove_one_by_one(int folder, const char* name) {
  if (::unlinkat(folder, name, 0) == 0 || errno == ENOENT) return 0;
  if (errno != EISDIR) return errno;
  const int opened = ::openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (opened < 0) return errno;
  struct Closer {
    void operator()(DIR* open) const { ::closedir(open); }
  };
  const std::unique_ptr<DIR, Closer> names(::fdopendir(opened));
  if (!names) return ::close(opened), ENOMEM;
  for (errno = 0; const dirent* const entry = ::readdir(names.get()); errno = 0) {
    const std::string_view there = entry->d_name;
    if (there == "." || there == "..") continue;
    if (const int error = remove_one_by_one(opened, entry->d_name); error != 0) return error;
  }
  if (errno != 0) return errno;
  return ::unlinkat(folder, name, AT_REMOVEDIR) == 0 || errno == ENOENT ? 0 : errno;
}

}  // namespace

int remove_tree_at(int folder, const char* name) {
  if (const bundle::Descriptor opened(::openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)); opened)
    bundle::empty_folder(opened.get(), [] { return true; });
  return remove_one_by_one(folder, name);
}

}  // namespace sealift::installer
