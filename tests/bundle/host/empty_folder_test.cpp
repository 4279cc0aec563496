// SPDX-License-Identifier: Apache-2.0
// What lies below a folder goes by several threads, and nothing beside it.
#include "bundle/host/empty_folder.hpp"

#include <dirent.h>
#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>

#include "bundle/host/scratch_folder.hpp"
#include "sealift/bundle/core/file.hpp"
#include "tests/support/temp_dir.hpp"

using namespace sealift::bundle;
namespace fs = std::filesystem;

namespace {

void fill(const fs::path& folder, int files) {
  fs::create_directories(folder);
  for (int i = 0; i < files; ++i) std::ofstream(folder / std::to_string(i)) << i;
}

// Who asked whether to go on. After the first 40 names, which may be folders alone, `wanted` threads must have asked
// before any of them may.
struct Asked {
  std::size_t wanted = 1;
  int free = 40;
  std::mutex guard;
  std::condition_variable changed;
  std::set<std::thread::id> threads;

  bool operator()() {
    std::unique_lock lock(guard);
    threads.insert(std::this_thread::get_id());
    changed.notify_all();
    if (free-- > 0 || changed.wait_for(lock, std::chrono::seconds(10), [&] { return threads.size() >= wanted; }))
      return true;
    wanted = 0;  // they do not come
    return false;
  }
};

// Lets no thread ask for its next name before `wanted` threads have asked as often, 60 times, after the first names.
struct InStep {
  std::size_t wanted = 1;
  int free = 0;
  int asked = 0;
  std::mutex guard;
  std::condition_variable changed;
  std::map<std::thread::id, int> calls;

  std::unique_lock<std::mutex> turn() {
    std::unique_lock lock(guard);
    if (++asked <= free) return lock;
    const int mine = ++calls[std::this_thread::get_id()];
    changed.notify_all();
    const auto all_here = [&] {
      return calls.size() >= wanted && std::all_of(calls.begin(), calls.end(),
                                                   [&](const auto& each) { return each.second >= std::min(mine, 60); });
    };
    if (wanted > 0 && !changed.wait_for(lock, std::chrono::seconds(10), all_here)) wanted = 0;  // they do not come
    return lock;
  }
};

void empty(const fs::path& folder, const std::function<bool()>& go_on) {
  const Descriptor opened(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  REQUIRE(opened);
  empty_folder(opened.get(), go_on);
}

}  // namespace

TEST_CASE("a folder of many files, in one folder of it or in many, is emptied by several threads at a time") {
  const sealift::test::TempDir dir;
  SUBCASE("in one") {
    fill(dir / "all/one", 700);
  }
  SUBCASE("in many") {
    for (int i = 0; i < 40; ++i) fill(dir / "all" / std::to_string(i) / "below", 2);
  }
  SUBCASE("in itself") {
    fill(dir / "all", 700);
  }
  Asked asked{.wanted = 4};
  empty(dir / "all", std::ref(asked));
  CHECK(fs::is_empty(dir / "all"));
  CHECK(asked.threads.size() >= 4);
}

TEST_CASE("what is small is removed without further threads") {
  const sealift::test::TempDir dir;
  fill(dir / "all/a", 60);
  fill(dir / "all/b", 60);
  Asked asked;
  empty(dir / "all", std::ref(asked));
  CHECK(fs::is_empty(dir / "all"));
  CHECK(asked.threads.size() == 1);
}

TEST_CASE("links go, and what they lead to stays") {
  const sealift::test::TempDir dir;
  fill(dir / "outside", 3);
  fill(dir / "all/a", 600);
  fs::create_directory_symlink(dir / "outside", dir / "all/a/folder");
  fs::create_symlink(dir / "outside/0", dir / "all/file");
  fs::create_symlink("nowhere", dir / "all/nothing");
  empty(dir / "all", [] { return true; });
  CHECK(fs::is_empty(dir / "all"));
  CHECK(std::distance(fs::directory_iterator(dir / "outside"), {}) == 3);
}

TEST_CASE("a removal ends early where it is told to, and who opened the folder can list what is left") {
  const sealift::test::TempDir dir;
  fill(dir / "all", 700);
  const Descriptor opened(::open((dir / "all").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  std::atomic<int> left = 100;
  empty_folder(opened.get(), [&] { return --left >= 0; });
  DIR* const names = ::fdopendir(::dup(opened.get()));
  REQUIRE(names != nullptr);
  int found = 0;
  while (::readdir(names) != nullptr) ++found;
  ::closedir(names);
  CHECK(found == 600 + 2);  // and "." and ".."
}

TEST_CASE("the folders of a wide tree are not all open at once") {
  const sealift::test::TempDir dir;
  for (int i = 0; i < 64; ++i)
    for (int k = 0; k < 64; ++k) fill(dir / "all" / std::to_string(i) / std::to_string(k), 1);
  const auto open_files = [] { return std::distance(fs::directory_iterator("/proc/self/fd"), {}); };
  const auto before = open_files();
  InStep in_step{.wanted = 8, .free = 64};
  std::ptrdiff_t most = 0;
  empty(dir / "all", [&] {
    const auto lock = in_step.turn();
    if (in_step.asked % 16 == 0) most = std::max(most, open_files());
    return true;
  });
  CHECK(fs::is_empty(dir / "all"));
  CHECK(in_step.calls.size() == 8);
  CHECK(most - before > 200);
  CHECK(most - before <= 256 + 8 * 2 * 3 + 8);  // what waits; three levels a thread, with lists; this test's own
}

TEST_CASE("a tree that is deeper than the open files allow is left to whom it belongs, and goes as a scratch folder") {
  const sealift::test::TempDir dir;
  fs::path deep = dir / "all";
  for (int i = 0; i < 90; ++i) deep /= "d";
  fill(deep, 1);
  empty(dir / "all", [] { return true; });
  CHECK(fs::exists(deep));
  remove_scratch(dir / "all");
  CHECK_FALSE(fs::exists(dir / "all"));
}
