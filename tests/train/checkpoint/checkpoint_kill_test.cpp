// SPDX-License-Identifier: Apache-2.0
// kill -9 at every write, sync, rename, and removal of a save: the last whole checkpoint always loads.
// A program of its own: its main thread only forks, so a child starts without LibTorch's threads. Some children save as
// two ranks; others load what is left.
// The calls are intercepted by defining them here, before the C library's; the code that saves is not changed.
#include "tests/train/checkpoint/checkpoint_fixture.hpp"

#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <signal.h>

#include <atomic>
#include <sstream>

using namespace sealift::test;
namespace fs = std::filesystem;

namespace {

std::atomic<bool> armed = false;
std::atomic<std::int64_t> left = 0;  ///< calls until the kill
std::atomic<std::int64_t>* calls;    ///< counted while armed; shared with the parent
int trace = -1;                      ///< file descriptor for the names of calls, if any

bool is_on_disk(int file) {
  struct stat status {};
  return fstat(file, &status) == 0 && (S_ISREG(status.st_mode) || S_ISDIR(status.st_mode));
}

/// Counts a call; the process dies in place of the due call.
void count(const char* name, const std::string& path) {
  if (!armed) return;
  ++*calls;
  if (trace >= 0) {
    const auto line = std::string(name) + " " + path + "\n";
    syscall(SYS_write, trace, line.data(), line.size());
  }
  if (--left == 0) kill(getpid(), SIGKILL);
}

std::string path_of(int file) {
  char target[4096];
  const auto size = readlink(("/proc/self/fd/" + std::to_string(file)).c_str(), target, sizeof target);
  return std::string(target, size > 0 ? static_cast<std::size_t>(size) : 0);
}

}  // namespace

extern "C" {

ssize_t write(int file, const void* data, size_t bytes) {
  if (armed && is_on_disk(file)) {
    // Half of what was to be written is there when the process dies: a torn write.
    if (left == 1) syscall(SYS_write, file, data, bytes / 2);
    count("write", path_of(file));
  }
  return syscall(SYS_write, file, data, bytes);
}

int fsync(int file) {
  if (armed) count("fsync", path_of(file));
  return static_cast<int>(syscall(SYS_fsync, file));
}

int rename(const char* from, const char* to) noexcept {
  count("rename", to);
  return static_cast<int>(syscall(SYS_rename, from, to));
}

int unlinkat(int folder, const char* path, int flags) noexcept {
  count("unlink", path);
  return static_cast<int>(syscall(SYS_unlinkat, folder, path, flags));
}

int unlink(const char* path) noexcept {
  count("unlink", path);
  return static_cast<int>(syscall(SYS_unlink, path));
}

int remove(const char* path) noexcept {
  count("unlink", path);
  struct stat status {};
  const bool is_folder = lstat(path, &status) == 0 && S_ISDIR(status.st_mode);
  return static_cast<int>(syscall(SYS_unlinkat, AT_FDCWD, path, is_folder ? AT_REMOVEDIR : 0));
}

int mkdir(const char* path, mode_t mode) noexcept {
  count("mkdir", path);
  return static_cast<int>(syscall(SYS_mkdirat, AT_FDCWD, path, mode));
}

}  // extern "C"

namespace {

/// Runs `work` in a child; its exit status, or minus the signal that ended it.
template <class Work>
int in_child(Work work) {
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    try {
      work();
      _exit(0);
    } catch (const std::exception& error) {
      std::fprintf(stderr, "child: %s\n", error.what());
      _exit(1);
    }
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

/// Two ranks train a step and save it, as step `step`, dying at call number `kill_at` of the save (0: never).
int save(const fs::path& folder, std::int64_t step, std::int64_t kill_at, bool in_background) {
  return in_child([&] {
    on_ranks(2, [&](const World& world) {
      Trainee trainee(world, fsdp());
      if (const auto last = latest_checkpoint(folder)) trainee.load(*last);
      auto& everyone = trainee.parallel.groups().world;
      trainee.train(step - 1, step);
      everyone.barrier();
      if (world.rank == 0) {
        left = kill_at;
        armed = true;
      }
      everyone.barrier();
      constexpr SaveOptions kOptions{.keep_last = 2};
      if (in_background) {
        auto save = save_checkpoint_async(folder, *trainee.net, trainee.parallel, &trainee.optimizer,
                                          Trainee::state(step), kOptions);
        save.wait();
      } else {
        trainee.save(folder, step, kOptions);
      }
      everyone.barrier();
      armed = false;
    });
  });
}

/// The step of the last whole checkpoint, after loading it; minus 1 when it does not load.
std::int64_t last_that_loads(const fs::path& folder) {
  auto* step = static_cast<std::int64_t*>(
      mmap(nullptr, sizeof(std::int64_t), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  *step = -1;
  const auto status = in_child([&] {
    on_ranks(1, [&](const World& world) {
      Trainee trainee(world, none(), 1.0);
      const auto last = latest_checkpoint(folder);
      TORCH_CHECK(last, "no checkpoint was left");
      const auto state = trainee.load(*last);
      TORCH_CHECK(state == Trainee::state(state.step), "the state is not the one that was saved");
      *step = state.step;
    });
  });
  CHECK(status == 0);
  return *step;
}

}  // namespace

TEST_CASE("wherever a save is killed, the last whole checkpoint loads, and the next save goes through") {
  calls = static_cast<std::atomic<std::int64_t>*>(
      mmap(nullptr, sizeof(std::int64_t), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  const TempDir original;
  for (std::int64_t step = 1; step <= 3; ++step) REQUIRE(save(original / "saved", step, 0, false) == 0);
  REQUIRE(last_that_loads(original / "saved") == 3);

  for (const bool in_background : {false, true}) {
    CAPTURE(in_background);
    std::int64_t total = 0, old_kept = 0, new_kept = 0;
    for (std::int64_t kill_at = 1;; ++kill_at) {
      CAPTURE(kill_at);
      const TempDir folder;
      fs::copy(original / "saved", folder / "saved", fs::copy_options::recursive);
      *calls = 0;
      const auto status = save(folder / "saved", 4, kill_at, in_background);
      if (status == 0) {
        total = *calls;
        CHECK(last_that_loads(folder / "saved") == 4);
        CHECK(list_steps(folder / "saved").size() == 2);
        break;
      }
      REQUIRE(status == -SIGKILL);
      const auto last = last_that_loads(folder / "saved");
      (last == 3 ? old_kept : new_kept) += 1;
      const bool is_known = last == 3 || last == 4;
      CHECK(is_known);
      // Every third, to save time: leftovers must not hinder the run that resumes.
      if (kill_at % 3 == 0) {
        CHECK(save(folder / "saved", last + 1, 0, in_background) == 0);
        CHECK(last_that_loads(folder / "saved") == last + 1);
        CHECK(list_steps(folder / "saved").size() == 2);
      }
    }
    // Two rank files, the buffers and the index are each made of a write or more, two syncs and a rename.
    CHECK(total >= 16);
    CHECK(old_kept >= 14);
    CHECK(new_kept >= 3);  // the index is there, old checkpoints are being removed
    MESSAGE("killed at each of ", total, " calls: ", old_kept, " left the old one, ", new_kept, " the new one");
  }
}

TEST_CASE("contents are durable before names, and everything before the index is named") {
  const TempDir folder;
  calls = static_cast<std::atomic<std::int64_t>*>(
      mmap(nullptr, sizeof(std::int64_t), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  trace = ::open((folder / "trace").c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
  REQUIRE(save(folder / "saved", 1, 0, false) == 0);
  ::close(std::exchange(trace, -1));
  std::vector<std::string> lines;
  std::istringstream text(read_file(folder / "trace"));
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  const auto step = (folder / "saved" / "step-000001").string();
  const auto last = [&](const std::string& line) {
    const auto found = std::find(lines.rbegin(), lines.rend(), line);
    CAPTURE(line);
    REQUIRE(found != lines.rend());
    return lines.rend() - found;
  };
  const auto index = last("rename " + step + "/index.json");
  for (const std::string name :
       {"rank-00000.safetensors", "rank-00001.safetensors", "buffers.safetensors", "index.json"}) {
    CAPTURE(name);
    const auto temporary = step + "/" + name + ".tmp";
    CHECK(last("write " + temporary) < last("fsync " + temporary));
    CHECK(last("fsync " + temporary) < last("rename " + step + "/" + name));
    CHECK(last("rename " + step + "/" + name) <= index);
  }
  CHECK(last("fsync " + step) > index);
  CHECK(last("fsync " + (folder / "saved").string()) < index);
}
