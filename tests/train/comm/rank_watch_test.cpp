// SPDX-License-Identifier: Apache-2.0
// Ranks that disagree, fail, die or stop: every other rank must say so, in time, and none may hang or abort.
// In disagreements ranks are threads; where a process dies, this program starts itself as the ranks of a scenario.
#define DOCTEST_CONFIG_IMPLEMENT
#include <sealift/train.hpp>

#include "tests/support/sanitized.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/train/comm/reporting_ranks.hpp"

#include <doctest/doctest.h>

#include <sys/wait.h>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include <csignal>
#include <fstream>
#include <iostream>
#include <sstream>

namespace {

using namespace sealift::train;
using sealift::test::first_line;
using sealift::test::gather;
using sealift::test::on_ranks;
using sealift::test::reduce;
using sealift::test::says;
using sealift::test::what_ranks_say;
using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

TEST_CASE("ranks that come to different collectives both say what each came to, at once") {
  const auto start = Clock::now();
  const auto said = what_ranks_say({1, 3}, [](const Groups& groups, std::int64_t rank) {
    groups.set_step(4);
    gather(groups, "stem");
    rank == 1 ? reduce(groups, "layer2") : gather(groups, "layer1");
  });
  for (const auto& text : said) {
    CHECK(says(text, "ranks disagree in step 4: "));
    CHECK(says(text, "ranks 0, 2 came to all_gather of unit 'layer1' (6 Float)"));
    CHECK(says(text, "rank 1 came to reduce_scatter of unit 'layer2' (9 Float)"));
    CHECK(says(text, "in group world"));
  }
  CHECK(Clock::now() - start < std::chrono::seconds(4));
}

TEST_CASE("another size, dtype or set of gradients is named, and no process ends") {
  const auto sizes =
      what_ranks_say({1, 2}, [](const Groups& groups, std::int64_t rank) { gather(groups, "a", 5 + rank); });
  for (const auto& text : sizes) {
    CHECK(says(text,
               "rank 0 came to all_gather of unit 'a' (10 Float), rank 1 came to all_gather of unit 'a' (12 Float)"));
  }
  const auto dtypes = what_ranks_say({1, 2}, [](const Groups& groups, std::int64_t rank) {
    gather(groups, "a", 5, rank == 0 ? at::kHalf : at::kFloat);
  });
  for (const auto& text : dtypes) CHECK(says(text, "rank 0 came to all_gather of unit 'a' (10 Half), rank 1"));
  const auto details = what_ranks_say({1, 2}, [](const Groups& groups, std::int64_t rank) {
    reduce(groups, "experts.3", 4, 0xa0 + static_cast<std::uint64_t>(rank));
  });
  for (const auto& text : details) {
    CHECK(says(text, "rank 1 came to reduce_scatter of unit 'experts.3' (8 Float, detail a1)"));
  }
}

TEST_CASE("without the check a difference shows after a second, whatever the engine, and no process ends") {
  const auto said = what_ranks_say(
      {1, 2}, [](const Groups& groups, std::int64_t rank) { gather(groups, "a", 5 + rank); }, {OrderCheck::Off});
  for (const auto& text : said) CHECK(says(text, "ranks disagree in step 0"));
  const auto worker = what_ranks_say(
      {1, 2},
      [](const Groups& groups, std::int64_t rank) {
        auto group = groups.world;
        group.all_reduce(torch::ones({10'000 + rank}), "big").wait();
      },
      {OrderCheck::Off}, std::chrono::seconds(2));
  for (const auto& text : worker) {
    CHECK(says(text, "ranks disagree"));
    CHECK(says(text, "all_reduce of unit 'big' (10001 Float)"));
  }
}

/// Makes every order of units a and b known; ends after b.
void learn_both_branches(const Groups& groups) {
  for (const char branch : {'a', 'b', 'a', 'a', 'b'}) branch == 'a' ? gather(groups, "a") : reduce(groups, "b");
}

TEST_CASE("ranks that take different branches, both seen before, are found out within seconds") {
  const auto start = Clock::now();
  const auto said = what_ranks_say({1, 2}, [](const Groups& groups, std::int64_t rank) {
    learn_both_branches(groups);
    const auto checks = groups.shard.order_checks();
    gather(groups, "a");
    groups.set_step(9);
    rank == 0 ? reduce(groups, "b") : gather(groups, "a");
    CHECK(groups.shard.order_checks() == checks);
  });
  for (const auto& text : said) {
    CHECK(says(text, "ranks disagree in step 9"));
    CHECK(says(text, "reduce_scatter of unit 'b' (6 Float)"));
    CHECK(says(text, "all_gather of unit 'a' (4 Float)"));
  }
  CHECK(Clock::now() - start < std::chrono::seconds(5));
}

TEST_CASE("a rank that compares and a rank that goes ahead find each other out") {
  const auto said = what_ranks_say({1, 2}, [](const Groups& groups, std::int64_t rank) {
    learn_both_branches(groups);
    gather(groups, rank == 0 ? "new" : "a");
  });
  for (const auto& text : said) {
    CHECK(says(text, "ranks disagree"));
    CHECK(says(text, "unit 'new'"));
    CHECK(says(text, "unit 'a'"));
  }
}

TEST_CASE("a rank that does not come is named, with those that wait and where it was last") {
  const auto start = Clock::now();
  const auto said = what_ranks_say(
      {1, 4},
      [](const Groups& groups, std::int64_t rank) {
        groups.set_step(17);
        reduce(groups, "layer3");
        gather(groups, "layer3");
        reduce(groups, "layer3");
        if (rank == 2) {
          std::this_thread::sleep_for(std::chrono::seconds(4));  // it computes and computes
        } else {
          gather(groups, "layer3");
        }
      },
      {}, std::chrono::seconds(2));
  for (const auto rank : {0, 1, 3}) {
    CHECK(says(said[static_cast<std::size_t>(rank)], "rank 2 did not come to all_gather of unit 'layer3' (8 Float)"));
    CHECK(says(said[static_cast<std::size_t>(rank)],
               "in step 17 within 2 s; ranks 0, 1, 3 wait there; rank 2 last "
               "came to reduce_scatter of unit 'layer3' (12 Float)"));
  }
  CHECK(said[2].empty());
  CHECK(Clock::now() - start < std::chrono::seconds(8));
}

TEST_CASE("why a rank failed reaches all others, through groups that it is not in too") {
  const auto said = what_ranks_say({2, 2}, [](const Groups& groups, std::int64_t rank) {
    auto replicate = groups.replicate;
    for (std::int64_t step = 0;; ++step) {
      groups.set_step(step);
      if (rank == 3 && step == 7) throw std::runtime_error("disk full");
      gather(groups, "layer1");
      replicate.all_reduce(torch::ones({1000}), "layer1").wait();
    }
  });
  for (const auto rank : {0, 1, 2}) {
    CHECK(says(said[static_cast<std::size_t>(rank)], "rank " + std::to_string(rank) + " stops at "));
    CHECK(says(said[static_cast<std::size_t>(rank)], "rank 3 failed in step 7: disk full"));
  }
  CHECK(said[3] == "disk full");
}

TEST_CASE("after a failure every collective gives the same reason") {
  const auto said = what_ranks_say({1, 2}, [](const Groups& groups, std::int64_t rank) {
    CHECK_THROWS(gather(groups, "a", 1 + rank));
    auto group = groups.world;
    group.barrier();
  });
  for (const auto& text : said) CHECK(says(text, "stops at barrier (2 Byte) in step 0: ranks disagree"));
}

TEST_CASE("in steady state nothing is exchanged; Always compares every time; Off never does") {
  const auto checks = [](OrderCheck when) {
    std::int64_t count = -1;
    const auto said = what_ranks_say({1, 2},
                                     [&](const Groups& groups, std::int64_t rank) {
                                       for (int round = 0; round < 20; ++round) {
                                         gather(groups, "a");
                                         reduce(groups, "b");
                                       }
                                       if (rank == 0) count = groups.shard.order_checks();
                                     },
                                     {when});
    CHECK(said == std::vector<std::string>(2));
    return count;
  };
  CHECK(checks(OrderCheck::NewOnly) == 3);  // a first, b after a, a after b
  CHECK(checks(OrderCheck::Always) == 40);
  CHECK(checks(OrderCheck::Off) == 0);
}

TEST_CASE("what the watch costs a known collective is microseconds") {
  auto watch = RankWatch::start(c10::make_intrusive<c10d::HashStore>(), 0, 2, std::chrono::seconds(60));
  const auto group = watch->issued().add_group("world", {0, 1});
  std::unordered_set<std::uint64_t> agreed;
  constexpr int kTimes = 100'000;
  const auto start = Clock::now();
  for (int i = 0; i < kTimes; ++i) {
    const Label label{"reduce_scatter", "transformer.layers.17.attention", 12345, 1'000'000, at::kFloat};
    agreed.insert(label.hash());
    const auto number = watch->issued().issue(group, label);
    const IssuedCollectives::Waiting waiting(watch->issued(), label, group, number, nullptr);
  }
  const auto each = std::chrono::duration<double, std::micro>(Clock::now() - start).count() / kTimes;
  MESSAGE("a label, its hash, its look-up, its issue and its wait: " << each << " us");
  CHECK(each < (sealift::test::kUnderThreadSanitizer ? 100 : 10));  // about 1 on a quiet machine
}

void own_handler(int) {}

TEST_CASE("a connection that a peer closed raises no signal, unless the program handles it itself") {
  const auto connect = [] { on_ranks(2, [](const World& world) { make_groups(world, {2, 1}).world.barrier(); }); };
  const auto before = std::signal(SIGPIPE, SIG_DFL);
  connect();
  CHECK((std::signal(SIGPIPE, own_handler) == SIG_IGN));
  connect();
  CHECK((std::signal(SIGPIPE, before) == own_handler));
}

TEST_CASE("a rank alone has no watch and no store") {
  const auto groups = make_groups({}, {});
  CHECK(!groups.watch);
  groups.set_step(3);
  groups.report_failure("nobody to tell");
  CHECK(groups.world.order_checks() == 0);
}

// ---- ranks that are processes ----

// Under ThreadSanitizer a step takes many times as long, and the ranks' first steps would time out.
constexpr int kSlowness = sealift::test::kUnderThreadSanitizer ? 10 : 1;
constexpr auto kTimeout = std::chrono::seconds(2) * kSlowness;

std::int64_t now_ms() {
  return std::chrono::duration_cast<milliseconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

/// Gloo for the rank of a scenario that ends while ranks connect: before it has, or as soon as it has.
HostEngineFactory ends_in(const std::string& scenario) {
  return [scenario](const Store& store, int rank, int size) -> c10::intrusive_ptr<c10d::Backend> {
    if (scenario == "kill connecting") raise(SIGKILL);
    if (scenario == "throw connecting") throw std::runtime_error("no such address");
    auto options = c10d::ProcessGroupGloo::Options::create(kTimeout);
    options->devices.push_back(c10d::ProcessGroupGloo::createDeviceForHostname("127.0.0.1", false));
    auto gloo = c10::make_intrusive<c10d::ProcessGroupGloo>(store, rank, size, std::move(options));
    raise(SIGKILL);
    return gloo;
  };
}

/// Connects as the rank of a scenario that ends meanwhile; writes as `rank_process`.
int connecting_process(const World& world, const std::string& scenario, std::ofstream& out) {
  out << now_ms() << std::endl;
  try {
    make_groups(world, {1, world.size}, {.host_engine = world.rank == 1 ? ends_in(scenario) : nullptr});
  } catch (const std::exception& error) {
    out << now_ms() << " " << first_line(error) << std::endl;
    return 3;
  }
  return 0;
}

/// The program of one rank: argv = rank-process SCENARIO RANK SIZE PORT STORE OUT. Writes when step 3 began, when it
/// caught something and what; ends with 3 when it caught something.
int rank_process(char** argv) {
  at::set_num_threads(1);
  const std::string scenario = argv[2];
  Launch launch{.rank = std::stoll(argv[3]),
                .world_size = std::stoll(argv[4]),
                .master_addr = "127.0.0.1",
                .master_port = std::stoll(argv[5]),
                .agent_store = argv[6] == std::string("agent")};
  std::ofstream out(argv[7]);
  auto world = connect(launch, std::chrono::seconds(60));
  // Programs start at different speeds; only what comes after is timed.
  world.store->set("up" + std::to_string(world.rank), "");
  for (std::int64_t rank = 0; rank < world.size; ++rank) world.store->wait({"up" + std::to_string(rank)});
  world.timeout = kTimeout;
  if (scenario.find("connect") != std::string::npos) {
    if (scenario != "kill connecting") world.timeout = std::chrono::minutes(1);  // longer than this test waits
    return connecting_process(world, scenario, out);
  }
  const auto groups = make_groups(world, {1, world.size});
  const bool victim = world.rank == (scenario.find("rank 0") != std::string::npos ? 0 : 1);
  try {
    auto whole = torch::ones({100'000 * world.size});
    auto shard = torch::ones({100'000});
    auto group = groups.shard;
    for (std::int64_t step = 0; step < 6; ++step) {
      groups.set_step(step);
      if (step == 3) out << now_ms() << std::endl;
      const bool now = victim && step == 3;
      if (now && scenario.starts_with("kill")) raise(SIGKILL);
      if (now && scenario.starts_with("stop")) raise(SIGSTOP);
      if (now && scenario.starts_with("exit")) _exit(0);
      if (now && scenario.starts_with("throw")) throw std::runtime_error("out of disk");
      group.all_gather(whole, shard, "layer1").wait();
      group.reduce_scatter(shard, whole, "layer1").wait();
      if (now && scenario.starts_with("late stop")) raise(SIGSTOP);
      group.all_reduce(whole, "layer1").wait();
    }
  } catch (const std::exception& error) {
    out << now_ms() << " " << first_line(error) << std::endl;
    groups.report_failure(first_line(error));
    return 3;
  }
  return 0;
}

struct Ended {
  int status = -1;          ///< of the process; -1 for one that was stopped
  double caught_after = 0;  ///< seconds from step 3's beginning to its error
  double ended_after = 0;   ///< and to the process's end
  std::string said;
  std::string wrote;  ///< all of it: a rank that fails before step 3 writes one line
};

/// Runs `size` processes through `scenario`; the store is this process's, or rank 0's own.
std::vector<Ended> run_processes(const std::string& scenario, std::int64_t size, bool own_store) {
  const sealift::test::TempDir folder;
  c10d::TCPStoreOptions options;
  options.port = 0;
  options.isServer = true;
  options.waitWorkers = false;
  auto agent = std::make_unique<c10d::TCPStore>("127.0.0.1", options);
  const auto port = std::to_string(agent->getPort());
  if (own_store) agent.reset();

  std::vector<pid_t> children;
  for (std::int64_t rank = 0; rank < size; ++rank) {
    const auto rank_text = std::to_string(rank), size_text = std::to_string(size);
    const auto out = (folder / rank_text).string();
    const char* arguments[] = {"/proc/self/exe",
                               "rank-process",
                               scenario.c_str(),
                               rank_text.c_str(),
                               size_text.c_str(),
                               port.c_str(),
                               own_store ? "rank 0" : "agent",
                               out.c_str(),
                               nullptr};
    const auto child = fork();
    if (child == 0) {
      execv(arguments[0], const_cast<char**>(arguments));
      _exit(127);
    }
    children.push_back(child);
  }
  std::vector<Ended> ended(children.size());
  std::size_t left = children.size();
  const bool stops = scenario.find("stop") != std::string::npos;
  const auto stopped = static_cast<std::size_t>(scenario.find("rank 0") != std::string::npos ? 0 : 1);
  for (const auto give_up = Clock::now() + std::chrono::seconds(90) * kSlowness;
       left > (stops ? 1 : 0) && Clock::now() < give_up;) {
    for (std::size_t rank = 0; rank < children.size(); ++rank) {
      int status = 0;
      if (children[rank] == 0 || waitpid(children[rank], &status, WNOHANG) == 0) continue;
      std::stringstream out;
      out << std::ifstream(folder / std::to_string(rank)).rdbuf();
      ended[rank].wrote = out.str();
      std::int64_t began = 0, caught = 0;
      out >> began >> caught >> std::ws;
      ended[rank].caught_after = static_cast<double>(caught - began) / 1000;
      ended[rank].ended_after = static_cast<double>(now_ms() - began) / 1000;
      std::getline(out, ended[rank].said);
      ended[rank].status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
      children[rank] = 0;
      --left;
    }
    std::this_thread::sleep_for(milliseconds(5));
  }
  CHECK(left == (stops ? 1 : 0));
  if (stops) CHECK(children[stopped] != 0);
  for (const auto child : children) {
    if (child == 0) continue;
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
  }
  return ended;
}

void check_survivors(const std::vector<Ended>& ended, std::size_t victim, const std::vector<std::string>& parts) {
  for (std::size_t rank = 0; rank < ended.size(); ++rank) {
    if (rank == victim) continue;
    CAPTURE(rank);
    INFO("after " << ended[rank].caught_after << " and " << ended[rank].ended_after << " s rank " << rank
                  << " ended with " << ended[rank].status << ", having written " << ended[rank].wrote);
    CHECK(ended[rank].status == 3);
    const auto timeout = std::chrono::duration<double>(kTimeout).count();
    CHECK(ended[rank].caught_after < timeout + kSlowness);
    // What is left is the end of a big program on a busy machine.
    CHECK(ended[rank].ended_after < timeout + 3 * kSlowness);
    for (const auto& part : parts) CHECK(says(ended[rank].said, part));
  }
}

TEST_CASE("a process that is killed, or ends without a word, is named by the others") {
  check_survivors(run_processes("kill", 3, false), 1,
                  {"in step 3", "layer1", "no word from rank 1: ended without one, killed"});
  check_survivors(run_processes("exit", 3, false), 1, {"no word from rank 1: ended without one, killed"});
}

TEST_CASE("why a process failed reaches the others before its connections close") {
  check_survivors(run_processes("throw", 3, false), 1,
                  {"stops at all_gather of unit 'layer1'", "rank 1 failed in step 3: out of disk"});
}

TEST_CASE(
    "a rank that ends while the ranks connect is named by the others, long before the time-out where it had "
    "connected") {
  check_survivors(run_processes("kill connected", 3, false), 1,
                  {"connect of unit 'shard'", "no word from rank 1: ended without one, killed"});
  check_survivors(run_processes("throw connecting", 3, false), 1, {"connect of unit 'shard'", "no such address"});
  check_survivors(run_processes("kill connecting", 3, false), 1,
                  {"connect of unit 'shard'", "no word from rank 1: stopped, or cut off"});
}

TEST_CASE("a process that is stopped is named within the time-out and a second") {
  check_survivors(run_processes("stop", 3, false), 1,
                  {"rank 1 did not come to all_gather of unit 'layer1'", "no word from rank 1: stopped, or cut off"});
  check_survivors(run_processes("late stop", 3, false), 1,
                  {"all_reduce of unit 'layer1'", "no word from rank 1: stopped"});
}

TEST_CASE("the rank that serves the store is killed or stopped: the others still end in time and say so") {
  check_survivors(run_processes("kill rank 0", 3, true), 0, {"in step 3", "the store is gone too"});
  check_survivors(run_processes("stop rank 0", 3, true), 0, {"in step 3", "the store does not answer"});
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 8 && argv[1] == std::string("rank-process")) return rank_process(argv);
  return doctest::Context(argc, argv).run();
}
