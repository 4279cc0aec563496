// SPDX-License-Identifier: Apache-2.0
// The question whether checkpoints will fit, results that wait for room, the files that wait for it, damage.
// failures_test.py does it with full disks and the program; here each piece is by itself.
// A file size limit of this process stands for a full disk, where a test needs one.
#include "trainer/loop/saving.hpp"
#include "tests/support/temp_dir.hpp"
#include "trainer/loop/last_good.hpp"
#include "trainer/monitor/step_log.hpp"
#include "trainer/ranks/patient_save.hpp"

#include <doctest/doctest.h>

#include <signal.h>
#include <sys/resource.h>

using namespace sealift;
using namespace sealift::trainer;
using sealift::test::read_file;
using sealift::test::TempDir;
using sealift::test::write_file;
namespace fs = std::filesystem;

namespace {

/// While it lives, no file of this process grows beyond `bytes`.
class SmallFiles {
 public:
  explicit SmallFiles(rlim_t bytes) {
    std::signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit small{bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &small);
  }
  ~SmallFiles() { setrlimit(RLIMIT_FSIZE, &before_); }

 private:
  rlimit before_{};
};

train::Groups alone() {
  return train::make_groups({.store = c10::make_intrusive<c10d::HashStore>(), .rank = 0, .size = 1}, train::Mesh{});
}

}  // namespace

TEST_CASE("a run asks for room for one checkpoint more than it keeps, and for no more than it will save") {
  const TempDir folder;
  const auto free = static_cast<std::int64_t>(fs::space(folder.path()).available);
  const auto where = folder / "not" / "there yet";
  CHECK_FALSE(lack_of_room({.folder = where, .bytes = free / 8, .kept = 2, .saves = 100}));
  const auto lack = lack_of_room({.folder = where, .bytes = free / 2, .kept = 2, .saves = 100});
  REQUIRE(lack);
  CHECK(lack->find("3 more of them at the peak (one more than are kept") != std::string::npos);
  CHECK(lack->find(where.string()) != std::string::npos);
  CHECK_FALSE(lack_of_room({.folder = where, .bytes = free / 2, .kept = 2, .saves = 1}));
  CHECK(lack_of_room({.folder = where, .bytes = free / 2, .kept = 2, .saves = 1, .beside = 2}));
  CHECK(lack_of_room({.folder = where, .bytes = free / 8, .kept = 0, .saves = 100}));  // all are kept
  CHECK_FALSE(lack_of_room({.folder = where, .bytes = free / 2, .kept = 2, .saves = 0}));
}

TEST_CASE("a run that has no room for a single checkpoint is refused at its beginning, and warned where it goes on") {
  const TempDir folder;
  auto world = alone();
  const RoomNeeded needed{.folder = folder.path(), .bytes = std::int64_t{1} << 60, .kept = 2, .saves = 3};
  CHECK_THROWS_WITH(ask_for_room(world.world, needed, false), doctest::Contains("not one fits"));
  CHECK_NOTHROW(ask_for_room(world.world, needed, true));
}

TEST_CASE("a save that cannot be written fails as such, leaves nothing behind, and the next one is whole") {
  const TempDir folder;
  torch::nn::Linear model(200, 200);
  auto parallel = train::parallelize(*model, alone(), {});
  torch::optim::AdamW optimizer(parallel.shards(), torch::optim::AdamWOptions(0.1));
  train::save_checkpoint(folder.path(), *model, parallel, &optimizer, {.step = 1});
  {
    const SmallFiles limit(100 << 10);
    try {
      train::save_checkpoint(folder.path(), *model, parallel, &optimizer, {.step = 2}, {.keep_last = 1});
      FAIL("it was written");
    } catch (const train::SaveFailed& error) {
      CHECK(error.bytes > 160'000);
      CHECK(error.folder == folder.path());
      CHECK(std::string(error.what_without_backtrace()).find("cannot write at byte") != std::string::npos);
    }
  }
  CHECK_FALSE(fs::exists(folder / "step-000002"));
  CHECK(train::latest_checkpoint(folder.path()) == folder / "step-000001");
  write_file(folder / "no-folder", "");
  CHECK_THROWS_AS(train::save_checkpoint(folder / "no-folder", *model, parallel, &optimizer, {.step = 2}),
                  train::SaveFailed);
  train::save_checkpoint(folder.path(), *model, parallel, &optimizer, {.step = 2}, {.keep_last = 1});
  CHECK(train::latest_checkpoint(folder.path()) == folder / "step-000002");
  CHECK_FALSE(fs::exists(folder / "step-000001"));
}

TEST_CASE("a checkpoint whose files changed is damaged, one of another model or another job is not") {
  const TempDir folder;
  torch::nn::Linear model(20, 20), other(20, 21);
  auto parallel = train::parallelize(*model, alone(), {});
  auto theirs = train::parallelize(*other, alone(), {});
  const auto path = train::save_checkpoint(folder.path(), *model, parallel, nullptr, {.step = 1});
  CHECK_THROWS_WITH(train::load_checkpoint(path, *other, theirs, nullptr), doctest::Contains("another model"));
  const auto refuse = [](const auto&) { TORCH_CHECK(false, "another job"); };
  CHECK_THROWS_WITH(train::load_checkpoint(path, *model, parallel, nullptr, refuse), doctest::Contains("another job"));
  for (const auto* file : {"rank-00000.safetensors", "index.json"}) {
    const auto whole = read_file(path / file);
    for (const auto& damaged : {whole.substr(0, whole.size() / 2), std::string()}) {
      write_file(path / file, damaged);
      CHECK_THROWS_AS(train::load_checkpoint(path, *model, parallel, nullptr), train::DamagedCheckpoint);
    }
    write_file(path / file, whole);
  }
  CHECK(train::load_checkpoint(path, *model, parallel, nullptr).step == 1);
}

TEST_CASE("what is damaged is set aside under a name of its own, in the run's own folder only") {
  const TempDir folder;
  auto world = alone();
  std::vector<fs::path> steps;
  for (const auto* name : {"step-000003", "step-000002", "step-000001"}) {
    steps.push_back(folder / name);
    fs::create_directories(steps.back());
    write_file(steps.back() / train::kIndexFile, "{}");
  }
  CHECK(whole_checkpoints(folder.path()) == steps);
  fs::create_directories(folder / "damaged-step-000003");  // of an earlier time
  std::vector<fs::path> tried;
  const auto load = [&](const fs::path& checkpoint) {
    tried.push_back(checkpoint);
    if (checkpoint != steps.back()) throw train::DamagedCheckpoint("bytes changed");
  };
  go_on_from_the_last_good(steps, folder / "another", world.world, load);
  CHECK(tried == steps);
  CHECK(fs::exists(steps.front()));
  go_on_from_the_last_good(steps, folder.path(), world.world, load);
  CHECK(fs::exists(folder / "damaged-step-000003-2"));
  CHECK(fs::exists(folder / "damaged-step-000002"));
  CHECK(whole_checkpoints(folder.path()) == std::vector<fs::path>{steps.back()});
  const auto none = [](const fs::path&) { throw train::DamagedCheckpoint("bytes changed"); };
  CHECK_THROWS_WITH(go_on_from_the_last_good({steps.back()}, folder.path(), world.world, none),
                    doctest::Contains("no checkpoint can be read, of 1"));
  CHECK(fs::exists(steps.back()));
}

TEST_CASE("results wait for room, and fail when it does not come") {
  int calls = 0;
  const auto fails_twice = [&] {
    if (++calls <= 2) throw train::SaveFailed("the disk is full");
  };
  save_with_patience(false, fails_twice, 3, std::chrono::milliseconds(1));
  CHECK(calls == 3);
  const auto fails = [] { throw train::SaveFailed("the disk is full"); };
  CHECK_THROWS_AS(save_with_patience(false, fails, 2, std::chrono::milliseconds(1)), train::SaveFailed);
}

TEST_CASE("lines of a log wait where the disk is full, and are all there once it has room") {
  const TempDir folder;
  {
    StepLog log(folder.path(), 9, 0);
    log.write({{"line", 1}});
    {
      const SmallFiles limit(30);
      log.write({{"line", 2}});
      log.write({{"line", "third, of which a part is written"}});
      log.write({{"line", 4}});
    }
    log.write({{"line", 5}});
  }
  CHECK(read_file(folder / "log.jsonl") ==
        "{\"line\":1}\n{\"line\":2}\n{\"line\":\"third, of which a part is "
        "written\"}\n{\"line\":4}\n{\"line\":5}\n");
}
