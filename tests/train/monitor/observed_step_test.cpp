// SPDX-License-Identifier: Apache-2.0
// What an observer is told of real steps: each gather, reduction, forward and backward once, and nothing left open.
#include "tests/train/fixture.hpp"

#include <set>

using namespace sealift::test;
using enum Activity;

namespace {

/// Keeps what it is told, and checks what holds for any step: an end has a beginning, a unit has one of a kind open,
/// forwards and waits nest, and a wait lies in what is waited for.
struct Log final : Observer {
  std::map<Activity, std::map<std::string, int>> counts;
  std::set<std::pair<Activity, std::string>> open;
  std::vector<std::pair<Activity, std::string>> nested;
  std::vector<std::int64_t> steps;
  int calls = 0;

  void begin(Activity activity, const std::string& unit) override {
    ++calls;
    INFO(std::string(to_string(activity)), " ", unit);
    CHECK(open.insert({activity, unit}).second);
    ++counts[activity][unit];
    if (activity == GatherWait) CHECK(open.contains({Gather, unit}));
    if (activity == ReduceWait) CHECK(open.contains({Reduce, unit}));
    const bool in_backward = activity == ReduceWait || (activity == Backward && unit != "root");
    if (in_backward) CHECK(open.contains({Backward, "root"}));
    if (is_nested(activity)) nested.emplace_back(activity, unit);
  }
  void end(Activity activity, const std::string& unit) override {
    ++calls;
    INFO(std::string(to_string(activity)), " ", unit);
    CHECK(open.erase({activity, unit}) == 1);
    if (!is_nested(activity)) return;
    REQUIRE_FALSE(nested.empty());
    CHECK((nested.back() == std::pair(activity, unit)));
    nested.pop_back();
  }
  void step_ended(std::int64_t step) override {
    ++calls;
    CHECK(open.empty());
    steps.push_back(step);
  }

 private:
  static bool is_nested(Activity activity) {
    return activity == Forward || activity == GatherWait || activity == ReduceWait;
  }
};

using Counts = std::map<std::string, int>;

/// Units of Net: the root and three layers, each with a flat of frozen parameters besides.
const Counts kOncePerUnit = {{"root", 1}, {"layer0", 1}, {"layer1", 1}, {"layer2", 1}};

struct Rank {
  Rank(const World& world, const Policy& policy)
      : groups(groups_of(world, policy)), parallel(parallelize(*net, groups, policy)) {}

  /// The forwards and backwards of a step.
  void run(std::int64_t micro_batches = 1) {
    for (std::int64_t micro = 0; micro < micro_batches; ++micro) {
      parallel.set_micro_batch(micro, micro_batches);
      (loss_of(net) / micro_batches).backward();
    }
  }

  Shardable<Net> net;
  Groups groups;
  Parallel parallel;
};

}  // namespace

TEST_CASE("a step of fsdp gathers each flat for forward and again for backward, and reduces each once") {
  on_ranks(2, [](const World& world) {
    Rank rank(world, fsdp());
    const auto log = std::make_shared<Log>();
    rank.parallel.observe(log);
    for (std::int64_t step = 1; step <= 2; ++step) {
      *log = {};
      rank.run();
      CHECK(log->counts[Forward] == kOncePerUnit);
      CHECK(log->counts[Backward] == kOncePerUnit);
      CHECK(log->counts[Gather] == Counts{{"root", 1},
                                          {"layer0", 2},
                                          {"layer0#2", 2},
                                          {"layer1", 2},
                                          {"layer1#2", 2},
                                          {"layer2", 2},
                                          {"layer2#2", 2}});
      CHECK(log->counts[GatherWait] == log->counts[Gather]);
      CHECK(log->counts[Reduce] == kOncePerUnit);
      CHECK(log->steps == std::vector{step});
      CHECK(log->open.empty());
    }
  });
}

TEST_CASE("with accumulation that keeps parameters, a step gathers and reduces once, and ends once") {
  on_ranks(2, [](const World& world) {
    auto policy = fsdp();
    policy.keep_gathered = KeepGathered::Always;
    Rank rank(world, policy);
    const auto log = std::make_shared<Log>();
    rank.parallel.observe(log);
    rank.run(3);
    for (const auto& [unit, count] : log->counts[Gather]) {
      CAPTURE(unit);
      CHECK(count == 1);
    }
    CHECK(log->counts[Gather].size() == 7);
    CHECK(log->counts[Reduce] == kOncePerUnit);
    CHECK(log->counts[Forward].at("layer0") == 3);
    CHECK(log->counts[Backward].at("layer0") == 3);
    CHECK(log->steps.size() == 1);
    CHECK(log->open.empty());
  });
}

TEST_CASE("a step of ddp reduces buckets, and its forward and backward are told as those of fsdp") {
  on_ranks(2, [](const World& world) {
    Rank rank(world, ddp());
    const auto log = std::make_shared<Log>();
    rank.parallel.observe(log);
    rank.run();
    CHECK(log->counts[Gather].empty());
    CHECK(log->counts[Reduce] == Counts{{"bucket 0", 1}});
    CHECK(log->counts[ReduceWait] == Counts{{"bucket 0", 1}});
    CHECK(log->counts[Forward].at("root") == 1);
    CHECK(log->counts[Backward].at("root") == 1);
    CHECK(log->steps.size() == 1);
    CHECK(log->open.empty());
  });
}

TEST_CASE("a reduction over shards and copies is one") {
  on_ranks(4, [](const World& world) {
    Rank rank(world, hsdp(2));
    const auto log = std::make_shared<Log>();
    rank.parallel.observe(log);
    rank.run();
    CHECK(log->counts[Reduce] == kOncePerUnit);
    CHECK(log->open.empty());
  });
}

TEST_CASE("the times of a step fit into it") {
  for (const auto& policy : {ddp(), fsdp()}) {
    on_ranks(2, [&](const World& world) {
      Rank rank(world, policy);
      const auto timeline = std::make_shared<Timeline>();
      rank.parallel.observe(timeline);
      for (int step = 0; step < 3; ++step) {
        const auto begin = timeline->now();
        rank.run();
        const auto seconds = timeline->now() - begin;
        const auto times = times_of(timeline->take());
        CHECK(times.forward > 0);
        CHECK(times.backward > 0);
        CHECK(times.forward + times.backward <= seconds);
        CHECK(times.gather_wait <= times.gather);
        CHECK(times.reduce_wait <= times.reduce);
        CHECK(times.reduce > 0);
        CHECK(times.exposed() <= seconds);
        CHECK(times.forward_wait <= times.forward);
        // All waiting of a step is within its forward and backward.
        CHECK(times.exposed() <= doctest::Approx(times.forward + times.backward));
      }
    });
  }
}

TEST_CASE("a pass that fails leaves the next one whole") {
  on_ranks(2, [](const World& world) {
    Rank rank(world, fsdp());
    rank.run();
    auto& probe = rank.net->layers[1]->probe;
    int calls = 0;
    probe = [&] {
      if (++calls == 2) throw std::runtime_error("in backward");
    };
    const auto timeline = std::make_shared<Timeline>();
    rank.parallel.observe(timeline);
    CHECK_THROWS(rank.run());
    rank.parallel.reset();
    timeline->take();
    probe = {};
    const auto log = std::make_shared<Log>();
    rank.parallel.observe(log);
    rank.run();
    CHECK(log->open.empty());
    CHECK(log->counts[Backward] == kOncePerUnit);
    CHECK(times_of(timeline->take()).backward > 0);
  });
}

TEST_CASE("an observer is told of its own model only, and changes nothing of what is computed or sent") {
  const auto run = [](bool observed) {
    std::vector<std::vector<at::Tensor>> gradients(2);
    std::vector<std::int64_t> bytes(2);
    on_ranks(2, [&](const World& world) {
      Rank rank(world, fsdp());
      const auto others = std::make_shared<Log>();
      Shardable<Net> other;
      auto parallel = parallelize(*other, rank.groups, fsdp());
      parallel.observe(others);
      if (observed) {
        rank.parallel.observe(std::make_shared<Timeline>());
        rank.parallel.observe(std::make_shared<ProfilerRanges>());
      }
      *rank.groups.traffic = {};
      rank.run();
      CHECK(others->calls == 0);
      const auto index = static_cast<std::size_t>(world.rank);
      for (const auto& shard : rank.parallel.shards()) {
        if (shard.grad().defined()) gradients[index].push_back(shard.grad().clone());  // one layer is never called
      }
      bytes[index] = rank.groups.traffic->all_gather.bytes + rank.groups.traffic->reduce_scatter.bytes;
    });
    return std::pair(gradients, bytes);
  };
  const auto [plain, plain_bytes] = run(false);
  const auto [observed, observed_bytes] = run(true);
  CHECK(plain_bytes == observed_bytes);
  for (std::size_t rank = 0; rank < plain.size(); ++rank) {
    REQUIRE(plain[rank].size() == observed[rank].size());
    for (std::size_t i = 0; i < plain[rank].size(); ++i) CHECK(plain[rank][i].equal(observed[rank][i]));
  }
}
