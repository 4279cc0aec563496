// SPDX-License-Identifier: Apache-2.0
// See locked_folder.hpp.
// The lock is the kernel's, so one that a killed run left holds nobody up; the file only says whose it is.
#include "trainer/ranks/locked_folder.hpp"

#include "bundle/core/foreign_text.hpp"
#include "trainer/failure.hpp"

#include <sys/file.h>
#include <unistd.h>

#include <fcntl.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace sealift::trainer {
namespace {

std::string name_of_host() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "this host";
}

/// The open, locked file; -1, with a note, where there can be none: what a full disk does is the saves' to say.
int locked(const std::filesystem::path& path) {
  const auto unlocked = [&](int error) {
    say("note: " + path.string() + " cannot be locked (" + std::strerror(error) +
        "); see that no other run writes there");
    return -1;
  };
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
  if (file < 0) return unlocked(errno);
  if (::flock(file, LOCK_EX | LOCK_NB) == 0) return file;
  const int error = errno;
  std::array<char, 200> text{};
  const auto size = ::pread(file, text.data(), text.size() - 1, 0);
  ::close(file);
  TORCH_CHECK(error != EWOULDBLOCK, path.parent_path().string(), " is in use by ",
              size > 0 ? bundle::one_line(text.data()) : "another run",
              "; wait for it or end it, or choose another output_dir. Where one job was meant, its launcher is not ",
              "known and each task trains alone: start it by sealift-launch, torchrun, srun or mpirun");
  return unlocked(error);
}

}  // namespace

LockedFolder::LockedFolder(const std::filesystem::path& folder, train::Collectives& world) {
  if (folder.empty()) return;
  train::detail::all_or_none(world, "locking " + folder.string(), [&]() -> std::string {
    if (world.rank() != 0) return "";
    std::error_code refused;  // the writer there says it
    std::filesystem::create_directories(folder, refused);
    if (refused) return "";
    file_ = locked(folder / ".in_use");
    const auto whose = "process " + std::to_string(::getpid()) + " on " + name_of_host();
    if (file_ >= 0 && ::ftruncate(file_, 0) == 0) {
      [[maybe_unused]] const auto written = ::pwrite(file_, whose.data(), whose.size(), 0);  // a full disk is no reason
    }
    return "";
  });
}

LockedFolder::~LockedFolder() {
  if (file_ >= 0) ::close(file_);
}

}  // namespace sealift::trainer
