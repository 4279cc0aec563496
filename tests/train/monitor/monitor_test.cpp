// SPDX-License-Identifier: Apache-2.0
// What a monitor reports of steps that the test makes up: no model, and waits that are loops.
#include "trainer/monitor/monitor.hpp"
#include "trainer/monitor/peak_memory.hpp"
#include "trainer/monitor/start_up.hpp"

#include "tests/support/ranks.hpp"
#include "tests/support/temp_dir.hpp"

#include <set>

#include <doctest/doctest.h>

using namespace sealift;
using namespace sealift::trainer;
using sealift::test::on_ranks;
using sealift::test::TempDir;
using enum train::Activity;

namespace {

using Json = nlohmann::ordered_json;

Monitor::Place place_of(const train::World& world) {
  Monitor::Place place{.rank = world.rank, .world_size = world.size};
  place.policy.method = train::ParallelMethod::Fsdp;
  return place;
}

train::Groups monitored_groups(const train::World& world) {
  return train::make_groups(world, train::make_mesh(place_of(world).policy, world.size));
}

/// A step that does nothing but wait for parameters, if at all.
void make_step(Monitor& monitor, std::int64_t number, bool waits, const std::string& unit = "layer0") {
  auto& timeline = *monitor.timeline();
  monitor.begin_step();
  if (waits) {
    timeline.begin(Forward, "root");
    timeline.begin(Gather, unit);
    timeline.begin(GatherWait, unit);
    for (const auto start = timeline.now(); timeline.now() < start + 2e-3;) continue;
    timeline.end(GatherWait, unit);
    timeline.end(Gather, unit);
    timeline.end(Forward, "root");
  }
  monitor.end_step(number, {.loss = 2, .gradient_norm = 1, .tokens_per_second = 1000.0 * static_cast<double>(number)});
}

std::string read(const std::filesystem::path& path) {
  return sealift::test::read_file(path);
}

}  // namespace

TEST_CASE("where there is no /proc, the time before the program is not known, and nothing fails") {
  CHECK(seconds_since_process_start("/no/such/stat") == 0);
  const TempDir folder;
  std::ofstream(folder.path() / "stat") << "1 (a name) S 1 1";
  CHECK(seconds_since_process_start((folder.path() / "stat").c_str()) == 0);
  CHECK(seconds_since_process_start() > 0);
}

TEST_CASE("a run whose ranks wait for most of a step is advised, in the report and once on rank 0's stderr") {
  std::ostringstream said;
  auto* const stderr_buffer = std::cerr.rdbuf(said.rdbuf());
  std::vector<Json> reports(2);
  on_ranks(2, [&](const train::World& world) {
    auto groups = monitored_groups(world);
    Monitor monitor({}, place_of(world));
    for (std::int64_t number = 1; number <= 25; ++number) make_step(monitor, number, /*waits=*/true);
    reports[static_cast<std::size_t>(world.rank)] = monitor.report(groups.world);
  });
  std::cerr.rdbuf(stderr_buffer);
  const auto& report = reports[0];
  CHECK(report == reports[1]);
  const auto& share = report.at("communication").at("exposed_share");
  CHECK(share.at("min") > 0.3);
  CHECK(share.at("max") <= 1.0);
  CHECK(report.at("communication").at("exposed_share_of_gathers") == share);
  CHECK(report.at("communication").at("exposed_share_of_reductions").at("max") == 0);
  CHECK(report.at("communication").at("exposed_share_of_forward").at("max") <= 1.0);
  CHECK(report.at("seconds_per_step").at("gather_wait").at("median") >= 2e-3);
  CHECK(report.at("seconds_per_step").at("step").at("median") >=
        report.at("seconds_per_step").at("gather").at("median"));
  CHECK(report.at("advice").get<std::string>().find("waiting for communication takes") == 0);
  const auto text = said.str();
  CHECK(text.find("note: waiting for communication takes") == 0);
  CHECK(text.find("note:", 1) == std::string::npos);
}

TEST_CASE("a run that never waits gets no advice, and ranks that differ show in the spread") {
  on_ranks(3, [&](const train::World& world) {
    auto groups = monitored_groups(world);
    Monitor monitor({}, place_of(world));
    for (std::int64_t number = 1; number <= 4; ++number) make_step(monitor, number, /*waits=*/world.rank == 2);
    const auto report = monitor.report(groups.world);
    CHECK(report.at("advice").is_null());  // by the median
    const auto& share = report.at("communication").at("exposed_share");
    CHECK(share.at("min") == 0);
    CHECK(share.at("median") == 0);
    CHECK(share.at("max") > 0.3);
  });
}

TEST_CASE("the first step of a process counts only where there is no other") {
  auto alone = train::Collectives();
  Monitor monitor({}, {});
  make_step(monitor, 7, /*waits=*/true);
  CHECK(monitor.report(alone).at("communication").at("exposed_share").at("max") > 0.3);
  CHECK(monitor.report(alone).at("tokens_per_second_per_device") == 7000);
  make_step(monitor, 8, /*waits=*/false);
  make_step(monitor, 9, /*waits=*/false);
  const auto report = monitor.report(alone);
  CHECK(report.at("communication").at("exposed_share").at("max") == 0);
  CHECK(report.at("tokens_per_second_per_device") == 8500);
}

TEST_CASE("what units do between steps, as in an evaluation, is in no step") {
  auto alone = train::Collectives();
  Monitor monitor({}, {});
  for (std::int64_t number = 1; number <= 3; ++number) {
    monitor.timeline()->begin(GatherWait, "root");
    monitor.timeline()->end(GatherWait, "root");
    make_step(monitor, number, /*waits=*/false);
  }
  CHECK(monitor.report(alone).at("seconds_per_step").at("gather_wait").at("max") == 0);
}

TEST_CASE("start-up has its phases and begins with the process") {
  auto alone = train::Collectives();
  Monitor monitor({}, {});
  monitor.started("connect");
  monitor.started("model");
  const auto phases = monitor.report(alone).at("start_up_seconds");
  std::vector<std::string> names;
  double sum = 0;
  for (const auto& [name, seconds] : phases.items()) {
    names.push_back(name);
    if (name != "total") sum += seconds.at("max").get<double>();
  }
  CHECK(names == std::vector<std::string>{"process", "connect", "model", "total"});
  CHECK(phases.at("total").at("max").get<double>() == doctest::Approx(sum));
  CHECK(phases.at("process").at("max") > 0);  // this program has loaded LibTorch
}

TEST_CASE("peak memory grows with what was in memory at once, and stays") {
  const auto before = peak_host_memory();
  constexpr double kBytes = 256e6;
  { const auto tensor = torch::ones({static_cast<std::int64_t>(kBytes) / 4}); }
  const auto after = peak_host_memory();
  CHECK(before > 1e6);
  CHECK(after > kBytes);
  auto alone = train::Collectives();
  CHECK(Monitor({}, {}).report(alone).at("peak_host_memory_bytes").at("max") >= after);
}

TEST_CASE("each checkpoint that was saved is reported with its seconds, one that was not due is not") {
  auto alone = train::Collectives();
  Monitor monitor({}, {});
  monitor.checkpoint(5, [] { return true; });
  monitor.checkpoint(6, [] { return false; });
  const auto saved = monitor.report(alone).at("checkpoint_seconds");
  REQUIRE(saved.size() == 1);
  CHECK(saved[0].at("step") == 5);
  CHECK(saved[0].at("seconds") >= 0);
}

TEST_CASE("a trace has the last ten steps of all ranks, however long a rank's part is") {
  const TempDir folder;
  HostOptions options;
  options.trace = (folder / "new" / "trace.json").string();
  const std::string long_name((5U << 20) / 2, 'x');  // in three pieces
  on_ranks(2, [&](const train::World& world) {
    auto groups = monitored_groups(world);
    Monitor monitor(options, place_of(world));
    for (std::int64_t number = 1; number <= 12; ++number) {
      make_step(monitor, number, /*waits=*/true, world.rank == 1 && number == 12 ? long_name : "layer0");
      monitor.checkpoint(number, [&] { return number == 1 || number == 12; });
    }
    monitor.report(groups.world);
  });
  const auto trace = nlohmann::json::parse(read(options.trace));
  std::map<int, std::set<std::string>> names;
  for (const auto& event : trace.at("traceEvents")) {
    if (event.at("ph") == "X") names[event.at("pid")].insert(event.at("name").get<std::string>());
  }
  REQUIRE(names.size() == 2);
  for (const auto& [rank, seen] : names) {
    CHECK(seen.contains("step 3"));
    CHECK(seen.contains("step 12"));
    CHECK_FALSE(seen.contains("step 2"));
    CHECK(seen.contains("forward root"));
    CHECK(seen.contains("gather wait layer0"));
    CHECK(seen.contains("checkpoint 12"));
    CHECK_FALSE(seen.contains("checkpoint 1"));
  }
  CHECK(names[1].contains("gather " + long_name));
  CHECK_FALSE(names[0].contains("gather " + long_name));
}

TEST_CASE("only rank 0 writes scalars, and a file that cannot be written ends the run at its start") {
  const TempDir folder;
  HostOptions options;
  options.tensorboard = (folder / "board").string();
  for (std::int64_t rank = 0; rank < 2; ++rank) {
    Monitor monitor(options, {.rank = rank, .world_size = 2});
    make_step(monitor, 1, /*waits=*/false);
  }
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(options.tensorboard)) files.push_back(entry.path());
  REQUIRE(files.size() == 1);
  const auto content = read(files[0]);
  for (const auto* tag : {"train/loss", "speed/tokens_per_second_per_device", "communication/exposed_share"}) {
    CHECK(content.find(tag) != std::string::npos);
  }
  std::ofstream(folder / "file") << "in the way";
  options.trace = (folder / "file" / "trace.json").string();
  CHECK_THROWS_WITH(Monitor(options, {}), doctest::Contains("choose another file with --trace"));
}

TEST_CASE("the summary says speed, waiting, memory and start-up") {
  const auto one = [](double value) { return Json{{"min", 0}, {"median", value}, {"max", value}}; };
  Json report{{"tokens_per_second_per_device", 1234.4},
              {"communication", {{"exposed_share", one(0.123)}}},
              {"start_up_seconds", {{"total", one(1.96)}}},
              {"peak_host_memory_bytes", one(3 << 20)}};
  CHECK(cost_line(report) == "1234 tokens/s per device, 12 % waiting for communication, peak 3 MiB, start-up 2.0 s");
  report["peak_device_memory_bytes"] = one(5 << 20);
  CHECK(cost_line(report).find("peak 5 MiB") != std::string::npos);
}
