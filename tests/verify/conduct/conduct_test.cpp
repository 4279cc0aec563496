// SPDX-License-Identifier: Apache-2.0
// Checks are conducted on all ranks together: what one rank throws is a named FAIL, what was not run is no pass, and a
// stopped run goes on. Threads are the ranks.
#include "verify/conduct/conduct.hpp"
#include "tests/verify/verdict/english.hpp"
#include "verify/conduct/host_names.hpp"
#include "verify/conduct/identity.hpp"

#include <doctest/doctest.h>
#include <unistd.h>

#include <condition_variable>
#include <fstream>
#include <map>
#include <mutex>
#include <thread>

using namespace sealift::verify;
namespace fs = std::filesystem;

namespace {

/// Ranks that are threads of this process.
class Threads {
 public:
  explicit Threads(std::int64_t size) : size_(size), said_(static_cast<std::size_t>(size)) {}

  Exchange of(std::int64_t rank) {
    return {.gather = [this, rank](const std::string& mine) { return gather(rank, mine); },
            .broadcast = [this, rank](const std::string& text) { return broadcast(rank, text); },
            .free_port = [] { return std::int64_t{4711}; }};
  }

 private:
  std::vector<std::string> gather(std::int64_t rank, const std::string& mine) {
    said_[static_cast<std::size_t>(rank)] = mine;
    meet();
    auto all = said_;
    meet();
    return rank == 0 ? all : std::vector<std::string>();
  }
  std::string broadcast(std::int64_t rank, const std::string& text) {
    if (rank == 0) word_ = text;
    meet();
    auto word = word_;
    meet();
    return word;
  }
  void meet() {
    std::unique_lock lock(mutex_);
    const auto round = round_;
    if (++here_ == size_) {
      here_ = 0;
      ++round_;
      all_here_.notify_all();
    }
    all_here_.wait(lock, [&] { return round_ != round; });
  }

  std::int64_t size_, here_ = 0, round_ = 0;
  std::mutex mutex_;
  std::condition_variable all_here_;
  std::vector<std::string> said_;
  std::string word_;
};

struct Folder {
  fs::path path = fs::temp_directory_path() / ("conduct-test-" + std::to_string(getpid()));
  Folder() { fs::create_directories(path); }
  ~Folder() { fs::remove_all(path); }
};

Site site_of(std::int64_t rank, std::int64_t size, const fs::path& folder) {
  return {.rank = rank,
          .world_size = size,
          .local_rank = rank % 2,
          .local_world_size = 2,
          .host = "node" + std::to_string(rank / 2),
          .level = Level::Quick,
          .work = folder / "work",
          .shared = folder / "out",
          .expected = nlohmann::json::object()};
}

CheckKind kind_of(std::string name, std::function<nlohmann::json(const Site&)> measure, Who who = Who::EveryRank) {
  return {.name = std::move(name),
          .part = Part::Machine,
          .from = Level::Quick,
          .title = {"a title", "标题"},
          .who = who,
          .measure = std::move(measure),
          .judge = [](const std::vector<Measured>& all, const Site&, Check& check) {
            check.outcome = Outcome::Pass;
            check.reason.en = std::to_string(all.size()) + " measured";
          }};
}

Conducted conducted_on(std::int64_t ranks, const std::vector<CheckKind>& kinds, const fs::path& folder,
                       const std::string& identity, const std::vector<std::string>& only = {},
                       const std::vector<std::string>& hosts = {}) {
  Threads threads(ranks);
  Conducted conducted;
  std::vector<std::thread> running;
  for (std::int64_t rank = 0; rank < ranks; ++rank) {
    running.emplace_back([&, rank] {
      auto site = site_of(rank, ranks, folder);
      site.only = only;
      if (!hosts.empty()) site.host = hosts.at(static_cast<std::size_t>(rank));
      auto mine = conduct(kinds, site, threads.of(rank), identity, [](const auto&) {});
      if (rank == 0) conducted = std::move(mine);
    });
  }
  for (auto& thread : running) thread.join();
  return conducted;
}
std::vector<Check> conduct_on(std::int64_t ranks, const std::vector<CheckKind>& kinds, const fs::path& folder,
                              const std::string& identity = "one") {
  return conducted_on(ranks, kinds, folder, identity).checks;
}

}  // namespace

TEST_CASE("every rank measures, or one of each host, or the first, as the check says") {
  const Folder folder;
  const auto nothing = [](const Site&) { return nlohmann::json::object(); };
  const auto checks = conduct_on(4,
                                 {kind_of("machine.all", nothing), kind_of("machine.hosts", nothing, Who::OneOfHost),
                                  kind_of("machine.first", nothing, Who::FirstRank)},
                                 folder.path);
  REQUIRE(checks.size() == 3);
  CHECK(checks[0].reason.en == "4 measured");
  CHECK(checks[1].reason.en == "2 measured");
  CHECK(checks[2].reason.en == "1 measured");
}

TEST_CASE("a rank that throws fails the check by name, and the next check is still run") {
  const Folder folder;
  const auto checks = conduct_on(3,
                                 {kind_of("machine.bad",
                                          [](const Site& site) -> nlohmann::json {
                                            if (site.rank == 2) throw std::runtime_error("no such device");
                                            return 1;
                                          }),
                                  kind_of("machine.good", [](const Site&) { return 1; })},
                                 folder.path);
  REQUIRE(checks.size() == 2);
  CHECK(checks[0].outcome == Outcome::Fail);
  CHECK(english(checks[0].at_fault) == std::vector<std::string>{"rank 2 on node1 (cpu)"});
  CHECK(checks[0].reason.en == "rank 2 on node1 (cpu): no such device");
  CHECK(checks[1].outcome == Outcome::Pass);
}

TEST_CASE("of two hosts with one hostname the one whose rank throws is named by its own name") {
  const Folder folder;
  const auto names = names_of_hosts({{"box", "1"}, {"box", "1"}, {"box", "2"}, {"box", "2"}});
  const auto bad = kind_of("machine.bad", [](const Site& site) -> nlohmann::json {
    if (site.rank == 3) throw std::runtime_error("no such device");
    return 1;
  });
  const auto checks = conducted_on(4, {bad}, folder.path, "one", {}, names).checks;
  REQUIRE(checks.size() == 1);
  CHECK(checks[0].outcome == Outcome::Fail);
  CHECK(english(checks[0].at_fault) == std::vector<std::string>{"rank 3 on box#2 (cpu)"});
  CHECK(checks[0].reason.en == "rank 3 on box#2 (cpu): no such device");
}

TEST_CASE("a judge that throws fails its check with why, and the next check is still run") {
  const Folder folder;
  auto bad = kind_of("machine.bad", [](const Site&) { return 1; });
  bad.judge = [](const auto&, const Site&, Check&) { throw std::runtime_error("key 'rate' not found"); };
  const auto checks = conduct_on(2, {bad, kind_of("machine.good", [](const Site&) { return 1; })}, folder.path);
  REQUIRE(checks.size() == 2);
  CHECK(checks[0].outcome == Outcome::Fail);
  CHECK(checks[0].reason.en == "what was measured could not be judged: key 'rate' not found");
  CHECK(checks[0].reason.zh == "无法评判测量结果：key 'rate' not found");
  CHECK(checks[1].outcome == Outcome::Pass);
}

TEST_CASE("a check that one rank could not run has not passed, whatever the others measured") {
  const Folder folder;
  const auto checks = conduct_on(2,
                                 {kind_of("machine.some",
                                          [](const Site& site) -> nlohmann::json {
                                            if (site.rank == 1) throw NotRun({"no GPU", "没有 GPU"});
                                            return 1;
                                          })},
                                 folder.path);
  REQUIRE(checks.size() == 1);
  CHECK(checks[0].outcome == Outcome::NotRun);
  CHECK(checks[0].reason.en == "2 measured; not run on rank 1 on node0 (cpu): no GPU");
}

TEST_CASE("a check above the level is NOT RUN and says which level runs it") {
  const Folder folder;
  auto kind = kind_of("machine.long", [](const Site&) -> nlohmann::json { throw std::runtime_error("was run"); });
  kind.from = Level::Burn;
  const auto checks = conduct_on(1, {kind}, folder.path);
  REQUIRE(checks.size() == 1);
  CHECK(checks[0].outcome == Outcome::NotRun);
  CHECK(checks[0].reason.en == "part of level burn; run with --level burn");
}

TEST_CASE("a stopped run goes on after what was recorded; another bundle or world begins anew") {
  const Folder folder;
  std::atomic<int> runs = 0;
  const auto kind = kind_of("machine.counted", [&](const Site&) { return ++runs; });
  CHECK(conduct_on(2, {kind}, folder.path).size() == 1);
  CHECK(runs == 2);
  CHECK(conduct_on(2, {kind}, folder.path).size() == 1);
  CHECK(runs == 2);
  CHECK(conduct_on(2, {kind}, folder.path, "another bundle").size() == 1);
  CHECK(runs == 4);
  std::ofstream(folder.path / "out/checks/machine.counted.json") << "{ torn";
  CHECK(conduct_on(2, {kind}, folder.path, "another bundle").at(0).outcome == Outcome::Pass);
  CHECK(runs == 6);
}

TEST_CASE("a check that was not run is tried again by the next run") {
  const Folder folder;
  int tries = 0;
  const auto kind = kind_of("machine.later", [&](const Site&) -> nlohmann::json {
    if (++tries == 1) throw NotRun({"busy", "忙"});
    return 1;
  });
  CHECK(conduct_on(1, {kind}, folder.path)[0].outcome == Outcome::NotRun);
  CHECK(conduct_on(1, {kind}, folder.path)[0].outcome == Outcome::Pass);
}

TEST_CASE("the scratch folder of a check is empty before it and gone after it") {
  const Folder folder;
  fs::path seen;
  const auto kind = kind_of("machine.scratch", [&](const Site& site) {
    seen = site.work;
    CHECK(fs::is_empty(site.work));
    std::ofstream(site.work / "left") << "behind";
    return 1;
  });
  conduct_on(1, {kind}, folder.path);
  CHECK(!seen.empty());
  CHECK(!fs::exists(seen));
}

TEST_CASE("a check that nobody chose, and one that no rank measured, are NOT RUN and say why") {
  const Folder folder;
  const auto nothing = [](const Site&) { return nlohmann::json::object(); };
  const auto checks = conducted_on(2, {kind_of("machine.one", nothing), kind_of("machine.other", nothing)}, folder.path,
                                   "one", {"machine.one"})
                          .checks;
  REQUIRE(checks.size() == 2);
  CHECK(checks[0].outcome == Outcome::Pass);
  CHECK(checks[1].outcome == Outcome::NotRun);
  CHECK(checks[1].reason.en == "left out: this run was started with other checks chosen (--only)");
  CHECK(!fs::exists(folder.path / "out/checks/machine.other.json"));

  auto site = site_of(0, 1, folder.path);
  site.local_rank = 1;
  const auto unmeasured =
      conduct({kind_of("machine.hosts", nothing, Who::OneOfHost)}, site, alone(), "", [](const auto&) {}).checks;
  CHECK(unmeasured.at(0).outcome == Outcome::NotRun);
  CHECK(unmeasured.at(0).reason.en.starts_with("no rank measured it"));
}

TEST_CASE("a report of recorded checks says when they began, and not when it was written") {
  const Folder folder;
  const auto kind = kind_of("machine.counted", [](const Site&) { return 1; });
  CHECK(!conducted_on(1, {kind}, folder.path, "one").began.empty());
  const auto file = folder.path / "out/checks/machine.counted.json";
  auto record = nlohmann::json::parse(std::ifstream(file));
  record["began"] = "2020-01-31T12:00:00Z";
  std::ofstream(file) << record;
  CHECK(conducted_on(1, {kind}, folder.path, "one").began == "2020-01-31T12:00:00Z");
  record.erase("began");
  std::ofstream(file) << record;
  CHECK(conducted_on(1, {kind}, folder.path, "one").began > "2020-01-31T12:00:00Z");
}

TEST_CASE("what was recorded on other hosts or devices, or under another driver, is not taken over") {
  const auto on = [](const nlohmann::json& machines) { return identity_of({}, std::nullopt, "p", machines); };
  const nlohmann::json a{{{"host", "a"}, {"device", "cuda:0 X"}, {"system", "6.1, driver 570"}}};
  for (const auto* key : {"host", "device", "system"}) {
    auto other = a;
    other[0][key] = "other";
    CHECK(on(a) != on(other));
  }
  CHECK(on(a) == on(a));
  CHECK(!system_of_host().empty());
}
