// SPDX-License-Identifier: Apache-2.0
// Limits of files and threads against what ranks need.
// See enough_limits.hpp. The counts are those of runs on the CPU with 1, 2 and 4 ranks: 16 files and two for each rank
// of the world, five threads beside the computing ones; some more of each for what a run may add.
#include "trainer/ranks/enough_limits.hpp"

#include <sealift/train/launch/control_groups.hpp>

#include <pthread.h>
#include <sys/resource.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <stdexcept>
#include <vector>

namespace sealift::trainer {
namespace {

constexpr std::int64_t kFilesOfProcess = 24, kFilesOfPeer = 3, kThreadsOfRank = 8;
/// More are not tried: a limit that is met beyond is met by no job that fits a host.
constexpr std::int64_t kMostTried = 8192;

/// Threads that do nothing until it is gone.
class IdleThreads {
 public:
  IdleThreads() {
    pthread_attr_init(&small_);
    pthread_attr_setstacksize(&small_, 64 << 10);
  }
  ~IdleThreads() {
    {
      const std::lock_guard lock(mutex_);
      over_ = true;
    }
    changed_.notify_all();
    for (const auto thread : threads_) pthread_join(thread, nullptr);
    pthread_attr_destroy(&small_);
  }
  IdleThreads(const IdleThreads&) = delete;
  IdleThreads& operator=(const IdleThreads&) = delete;

  bool start_one() {
    pthread_t thread{};
    if (pthread_create(&thread, &small_, wait, this) != 0) return false;
    threads_.push_back(thread);
    return true;
  }

 private:
  static void* wait(void* self) {
    auto& all = *static_cast<IdleThreads*>(self);
    std::unique_lock lock(all.mutex_);
    all.changed_.wait(lock, [&] { return all.over_; });
    return nullptr;
  }

  pthread_attr_t small_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool over_ = false;
  std::vector<pthread_t> threads_;
};

std::string whole(double number) {
  return std::to_string(static_cast<std::int64_t>(number));
}

}  // namespace

std::int64_t files_needed(std::int64_t world_size) {
  return kFilesOfProcess + kFilesOfPeer * world_size;
}

std::int64_t threads_needed(std::int64_t ranks, std::int64_t threads) {
  return ranks * (kThreadsOfRank + threads);
}

void require_files(std::int64_t files) {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  const auto need = static_cast<rlim_t>(files);
  if (limit.rlim_cur >= need) return;
  if (limit.rlim_max >= need) {
    limit.rlim_cur = limit.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &limit) == 0) return;
  }
  throw std::runtime_error("this process may open " + std::to_string(limit.rlim_max) +
                           " files (ulimit -Hn), and its part of this job needs " + std::to_string(files) +
                           ", a connection to each rank among them; raise the limit (ulimit -n " +
                           std::to_string(std::max<std::int64_t>(files, 4096)) +
                           ", LimitNOFILE= of a service, --ulimit nofile= of a container), or use fewer ranks");
}

std::string limits_of_threads(const std::filesystem::path& root) {
  std::string text;
  rlimit limit{};
  if (getrlimit(RLIMIT_NPROC, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
    text = "this account may have " + std::to_string(limit.rlim_cur) + " processes and threads (ulimit -u)";
  }
  for (const auto& group : train::host::control_groups("pids", root)) {
    const auto most = train::host::number_in(group.folder / "pids.max");
    if (!most) continue;
    const auto now = train::host::number_in(group.folder / "pids.current");
    text += (text.empty() ? "" : ", ") + std::string("its group ") + whole(*most) + " (" +
            (group.folder / "pids.max").string() + (now ? ", " + whole(*now) + " are in it" : "") + ")";
  }
  if (const auto most = train::host::number_in(root / "proc/sys/kernel/threads-max")) {
    text += (text.empty() ? "" : ", ") + std::string("the machine ") + whole(*most);
  }
  return text;
}

void require_threads(std::int64_t threads, const std::filesystem::path& root) {
  IdleThreads idle;
  for (std::int64_t started = 0; started < std::min(threads, kMostTried); ++started) {
    if (idle.start_one()) continue;
    throw std::runtime_error("only " + std::to_string(started) + " more threads can be started, and this job needs " +
                             std::to_string(threads) + " here: " + limits_of_threads(root) +
                             "; raise the limit that is met (ulimit -u, TasksMax= of a service, --pids-limit of a "
                             "container, pids of a Slurm job), or use fewer --ranks or --threads");
  }
}

}  // namespace sealift::trainer
