// SPDX-License-Identifier: Apache-2.0
// Names wait in batches, each of which keeps its folder open; the last ones that were read are taken first. A folder
// goes when the last batch of it has gone.
#include "bundle/host/empty_folder.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "sealift/bundle/core/file.hpp"
#include "sealift/bundle/core/parallel_for.hpp"

namespace sealift::bundle {

namespace {

constexpr std::size_t kThreads = 8;       // more than processors, since each of them waits most of the time
constexpr std::size_t kBatch = 64;        // names
constexpr std::size_t kWorthThreads = 8;  // batches that wait
constexpr std::size_t kWaiting = 4096;    // batches at most; beyond that who reads names removes them
constexpr std::size_t kOpen = 256;        // folders; beyond that who opens one removes what is in it
constexpr unsigned kDeepest = 32;  // kThreads * 2 * kDeepest + kOpen: below the 1,024 files that a process may open

struct Folder {
  Folder(std::shared_ptr<const Folder> above, std::string called, Descriptor descriptor, std::atomic<std::size_t>& open)
      : parent(std::move(above)), name(std::move(called)), opened(std::move(descriptor)), count(open) {
    ++count;
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() {
    if (parent) ::unlinkat(parent->opened.get(), name.c_str(), AT_REMOVEDIR);
    --count;
  }

  std::shared_ptr<const Folder> parent;  // none: the caller's own, which stays
  std::string name;
  Descriptor opened;
  std::atomic<std::size_t>& count;  // of folders that are open
  unsigned depth = parent ? parent->depth + 1 : 0;
};

struct Batch {
  std::shared_ptr<const Folder> folder;
  std::vector<std::string> names;
};

class Emptying {
 public:
  explicit Emptying(const std::function<bool()>& go_on) : go_on_(go_on) {}

  // Empties `folder`.
  void run(Descriptor folder) {
    read(std::make_shared<const Folder>(nullptr, std::string(), std::move(folder), open_));
    std::vector<std::jthread> others;
    take_turns(&others);
  }

 private:
  // The caller's own thread starts the `others` once there is enough for them.
  void take_turns(std::vector<std::jthread>* others) {
    std::unique_lock lock(guard_);
    for (;;) {
      changed_.wait(lock, [&] { return !waiting_.empty() || busy_ == 0; });
      if (waiting_.empty()) return;
      if (others != nullptr && others->empty() && waiting_.size() >= kWorthThreads)
        start_threads(*others, kThreads - 1, [this] { take_turns(nullptr); });
      Batch batch = std::move(waiting_.back());
      waiting_.pop_back();
      ++busy_;
      lock.unlock();
      try {
        remove(batch);
      } catch (const std::bad_alloc&) {  // then it stays
      }
      batch = {};  // perhaps the folder's last one
      lock.lock();
      --busy_;
      changed_.notify_all();
    }
  }

  void remove(const Batch& batch) {
    for (const std::string& name : batch.names) {
      if (!go_on_()) return;
      const int folder = batch.folder->opened.get();
      if (::unlinkat(folder, name.c_str(), 0) == 0 || errno != EISDIR || batch.folder->depth == kDeepest) continue;
      Descriptor inner(::openat(folder, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
      if (inner) read(std::make_shared<const Folder>(batch.folder, name, std::move(inner), open_));
    }
  }

  void read(const std::shared_ptr<const Folder>& folder) {
    Descriptor again(::dup(folder->opened.get()));
    const std::unique_ptr<DIR, int (*)(DIR*)> listing(::fdopendir(again.get()), ::closedir);
    if (!listing) return;
    again.release();
    Batch batch{.folder = folder, .names = {}};
    while (const dirent* const entry = ::readdir(listing.get())) {
      const std::string_view name = entry->d_name;
      if (name == "." || name == "..") continue;
      batch.names.emplace_back(name);
      if (batch.names.size() == kBatch) add(std::exchange(batch, {.folder = folder, .names = {}}));
    }
    if (!batch.names.empty()) add(std::move(batch));
  }

  void add(Batch batch) {
    {
      const std::lock_guard lock(guard_);
      if (waiting_.size() < kWaiting && open_ <= kOpen) {
        waiting_.push_back(std::move(batch));
        changed_.notify_one();
        return;
      }
    }
    remove(batch);
  }

  const std::function<bool()>& go_on_;
  std::atomic<std::size_t> open_ = 0;
  std::mutex guard_;
  std::condition_variable changed_;
  std::vector<Batch> waiting_;
  std::size_t busy_ = 0;
};

}  // namespace

void empty_folder(int folder, const std::function<bool()>& go_on) {
  // Opened once more: a copy of the descriptor would leave the caller's at the end of the list of names.
  Descriptor own(::openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (own) Emptying(go_on).run(std::move(own));
}

}  // namespace sealift::bundle
