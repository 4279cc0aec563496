// SPDX-License-Identifier: Apache-2.0
// What lies below a folder goes by several threads, and nothing beside it.
#include "bundle/host/empty_folder.hpp"

#include <dirent.h>
#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <functional>
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
