// SPDX-License-Identifier: Apache-2.0
// Each fault of a machine is named, on a made driver, made kernel files and made measurements; whole ones never alarm.
#include "tests/support/left_out.hpp"
#include "tests/verify/verdict/english.hpp"
#include "verify/machine/checks.hpp"
#include "verify/machine/clock.hpp"
#include "verify/machine/host.hpp"
#include "verify/machine/judge_gpus.hpp"
#include "verify/machine/judge_host.hpp"
#include "verify/machine/memory_bandwidth.hpp"
#include "verify/machine/nvml.hpp"
#include "verify/verdict/outliers.hpp"

#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <random>
#include <thread>

using namespace sealift::verify;
namespace fs = std::filesystem;
using Json = nlohmann::json;

namespace {

using Judge = void(const std::vector<Measured>&, const Site&, Check&);

Check judged(Judge* judge, const std::vector<Json>& hosts, const Json& expected = Json::object()) {
  std::vector<Measured> all;
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    all.push_back({.rank = static_cast<std::int64_t>(i),
                   .host = "n" + std::to_string(i),
                   .device = "cpu",
                   .not_run = {},
                   .error = {},
                   .values = hosts[i]});
  }
  Site site;
  site.expected = {{"machine", expected}};
  Check check;
  judge(all, site, check);
  return check;
}

using Names = std::vector<std::string>;

/// A kernel's files for a host with a GPU and two InfiniBand ports, of which one has no cable.
struct Kernel {
  fs::path root = fs::temp_directory_path() / ("machine-test-" + std::to_string(getpid()));
  Kernel() {
    put("proc/cpuinfo", "processor\t: 0\nmodel name\t: Fake CPU @ 2.0GHz\n");
    put("proc/meminfo", "MemTotal:       2097152 kB\nHugePages_Total:      16\n");
    put("proc/sys/kernel/osrelease", "5.14.0-fake\n");
    put("proc/driver/nvidia/version", "NVRM\n");
    put("sys/module/nvidia_peermem/refcnt", "0\n");
    for (int cpu = 0; cpu < 3; ++cpu) {
      put("sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/cpufreq/scaling_governor",
          cpu < 2 ? "performance\n" : "powersave\n");
    }
    put("sys/devices/system/cpu/cpufreq/x", "");
    for (int node = 0; node < 2; ++node) {
      const auto folder = "sys/devices/system/node/node" + std::to_string(node) + "/";
      put(folder + "cpulist", "0-1\n");
      put(folder + "meminfo", "Node " + std::to_string(node) + " MemTotal:       1048576 kB\n");
    }
    port("1", "4: ACTIVE", "5: LinkUp", "200 Gb/sec (4X HDR)");
    port("2", "1: DOWN", "2: Polling", "10 Gb/sec (4X)");
    fs::create_directories(root / "dev/shm");
  }
  ~Kernel() { fs::remove_all(root); }
  void put(const fs::path& file, const std::string& text) {
    fs::create_directories((root / file).parent_path());
    std::ofstream(root / file) << text;
  }
  void port(const std::string& number, const std::string& state, const std::string& physical, const std::string& rate) {
    const auto folder = "sys/class/infiniband/mlx5_0/ports/" + number + "/";
    put(folder + "state", state + "\n");
    put(folder + "phys_state", physical + "\n");
    put(folder + "rate", rate + "\n");
  }
  Json read() {
    Site site;
    site.work = root;
    auto host = read_host(root, site);
    host["shm_free_mib"] = 4096.0;
    host["shm_mib"] = 4096.0;  // of the file system that the test runs on
    host["free_gib"] = 100.0;
    host["locked_mib"] = -1.0;
    return host;
  }
};

}  // namespace

TEST_CASE("NVML's values are read, and what a driver does not know is left out") {
  const auto gpus = read_gpus(FAKE_NVML);
  CHECK(gpus.at("driver") == "535.183.06");
  REQUIRE(gpus.at("devices").size() == 2);
  CHECK(gpus["devices"][1] == Json{{"index", 1},
                                   {"name", "Fake 1"},
                                   {"uuid", "GPU-fake"},
                                   {"ecc_volatile", 3},
                                   {"ecc_aggregate", 7},
                                   {"rows_remapped", 3},
                                   {"rows_pending", 1},
                                   {"rows_failed", 1},
                                   {"pcie_generation", 1},
                                   {"pcie_max_generation", 5},
                                   {"pcie_width", 8},
                                   {"pcie_max_width", 16},
                                   {"sm_mhz", 1410},
                                   {"sm_max_mhz", 1980},
                                   {"throttle", 0x44},
                                   {"nvlinks", 4},
                                   {"nvlinks_active", 3}});
  CHECK_THROWS_AS(read_gpus("/no/such/libnvidia-ml.so.1"), NotRun);
}

TEST_CASE(
    "a GPU with memory errors, a brake, a narrow link and a dead NVLink is named, and a whole one beside it is not") {
  const auto gpus = read_gpus(FAKE_NVML);
  const auto check = judged(judge_gpus, {gpus});
  CHECK(check.outcome == Outcome::Fail);
  CHECK(english(check.at_fault) == Names{"GPU 1 on n0"});
  for (const auto* change :
       {"ecc_volatile", "rows_pending", "rows_failed", "throttle", "pcie_width", "nvlinks_active"}) {
    CAPTURE(change);
    auto one = gpus;
    for (const auto& [key, value] : gpus["devices"][0].items()) one["devices"][1][key] = value;
    CHECK(judged(judge_gpus, {one}).outcome == Outcome::Pass);
    one["devices"][1][change] = gpus["devices"][1][change];
    CHECK(judged(judge_gpus, {one}).at_fault.size() == 1);
  }
}

TEST_CASE(
    "a GPU without any NVLink among others of its kind that have them is named, and a card without a bridge is not") {
  auto gpus = read_gpus(FAKE_NVML);
  const auto whole = gpus["devices"][0];
  gpus["devices"] = Json::array({whole, whole, whole});
  for (int i = 0; i < 3; ++i) gpus["devices"][static_cast<std::size_t>(i)]["index"] = i;
  CHECK(judged(judge_gpus, {gpus}).outcome == Outcome::Pass);
  gpus["devices"][2]["nvlinks_active"] = 0;
  CHECK(english(judged(judge_gpus, {gpus}).at_fault) == Names{"GPU 2 on n0"});
  gpus["devices"][1]["nvlinks_active"] = 0;  // one of three has a bridge
  CHECK(judged(judge_gpus, {gpus}).outcome == Outcome::Pass);
}

TEST_CASE("GPUs that cannot be counted are a fault, and none at all is no pass") {
  setenv("FAKE_NVML_CANNOT_COUNT", "1", 1);
  CHECK_THROWS_WITH_AS(read_gpus(FAKE_NVML), "NVML cannot count the GPUs: error 999; run nvidia-smi",
                       std::runtime_error);
  unsetenv("FAKE_NVML_CANNOT_COUNT");
  auto none = read_gpus(FAKE_NVML);
  none["devices"] = Json::array();
  CHECK(judged(judge_gpus, {none}).outcome == Outcome::NotRun);
  CHECK(judged(judge_gpus, {none}, {{"gpus", 8}}).outcome == Outcome::Fail);
}

TEST_CASE("a host without a driver is a fault where the site expects GPUs, else it is not run") {
  const auto kinds = machine_checks();
  const auto& gpus = kinds.at(0);
  Site site;
  site.expected = Json::object();
  bool has_driver = true;
  try {
    gpus.measure(site);
  } catch (const NotRun&) {
    has_driver = false;
  }
  if (has_driver) return sealift::test::left_out("needs a machine without GPUs");
  site.expected = {{"machine", {{"gpus", 8}}}};
  CHECK_THROWS_WITH_AS(gpus.measure(site),
                       "no NVIDIA driver: libnvidia-ml.so.1 is not there; site.toml expects 8 GPUs of each host",
                       std::runtime_error);
}

TEST_CASE("a host with another driver or fewer GPUs than its siblings or the site says is named") {
  auto good = read_gpus(FAKE_NVML);
  good["devices"].erase(1);
  auto other = good;
  other["driver"] = "470.1";
  auto none = good;
  none["devices"] = Json::array();
  CHECK(judged(judge_gpus, {good, good, good}).outcome == Outcome::Pass);
  CHECK(english(judged(judge_gpus, {good, other, good}).at_fault) == Names{"n1"});
  CHECK(english(judged(judge_gpus, {good, good, none}).at_fault) == Names{"n2"});
  CHECK(english(judged(judge_gpus, {other, good}, {{"driver", "535.183.06"}}).at_fault) == Names{"n0"});
  CHECK(english(judged(judge_gpus, {good}, {{"gpus", 8}}).at_fault) == Names{"n0"});
}

TEST_CASE("a host whose /sys is not mounted is not half checked") {
  Kernel kernel;
  fs::remove_all(kernel.root / "sys");
  CHECK_THROWS_AS(kernel.read(), NotRun);
}

TEST_CASE("the kernel's files are read below their root") {
  Kernel kernel;
  const auto host = kernel.read();
  CHECK(host.at("cpu") == "Fake CPU @ 2.0GHz");
  CHECK(host.at("cpus") == 3);
  CHECK(host.at("governors") == "performance x2, powersave x1");
  CHECK(host.at("kernel") == "5.14.0-fake");
  CHECK(host.at("memory_gib") == 2);
  CHECK(host.at("huge_pages") == 16);
  CHECK(host.at("gpudirect") == true);
  CHECK(host.at("numa") ==
        Json::parse(R"([{"node":"node0","cpus":true,"gib":1.0},{"node":"node1","cpus":true,"gib":1.0}])"));
  CHECK(host.at("ports")[0] ==
        Json{{"name", "mlx5_0:1"}, {"state", "4: ACTIVE"}, {"physical", "5: LinkUp"}, {"rate", 200.0}, {"width", 4}});
  Site site;
  site.work = kernel.root;
  CHECK_THROWS_AS(read_host(kernel.root / "nothing", site), NotRun);
}

TEST_CASE("each fault of a host is named, and a whole one passes") {
  Kernel kernel;
  const auto good = kernel.read();
  CHECK(judged(judge_hosts, {good}).outcome == Outcome::Pass);
  CHECK(judged(judge_hosts, {good, good, good}, {{"ib_ports", 1}, {"gpudirect", true}}).outcome == Outcome::Pass);
  const auto fails = [&](const char* pointer, const Json& value, const Json& expected = Json::object()) {
    auto bad = good;
    bad[Json::json_pointer(pointer)] = value;
    const auto check = judged(judge_hosts, {good, bad}, expected);
    CAPTURE(pointer);
    CAPTURE(check.reason.en);
    CHECK(english(check.at_fault) == Names{"n1"});
  };
  fails("/shm_mib", 64.0);
  fails("/shm_free_mib", 3.0);  // what a job that died has left there
  fails("/free_gib", 0.5);
  fails("/locked_mib", 64.0);
  fails("/numa/1/gib", 0.4);
  fails("/ports/0/state", "2: INIT");
  fails("/ports/0/width", 1);
  fails("/gpudirect", false, {{"gpudirect", true}});
  fails("/ports/0/state", "1: DOWN", {{"ib_ports", 1}});
}

TEST_CASE("of three hosts the one with another kernel, governor or fabric is named; a mixed site may have them") {
  Kernel kernel;
  const auto good = kernel.read();
  for (const auto* pointer : {"/kernel", "/governors", "/cpu", "/glibc"}) {
    auto other = good;
    other[Json::json_pointer(pointer)] = "another";
    CHECK(english(judged(judge_hosts, {good, other, good}).at_fault) == Names{"n1"});
    CHECK(judged(judge_hosts, {good, other, good}, {{"mixed", true}}).outcome == Outcome::Pass);
  }
  auto slow = good;
  slow["ports"][0]["rate"] = 100.0;
  CHECK(english(judged(judge_hosts, {good, good, slow}).at_fault) == Names{"n2"});
}

TEST_CASE("a slow host among its siblings is named, and noise or equal numbers never alarm") {
  CHECK(slow_ones({100, 101, 99, 60, 100}, 0.1) == std::vector<std::size_t>{3});
  CHECK(slow_ones({100, 100, 50}, 0.1) == std::vector<std::size_t>{2});
  CHECK(slow_ones({100, 100, 100, 130}, 0.1).empty());
  std::mt19937 random(1);
  std::uniform_real_distribution<double> noise(97, 103);
  for (int round = 0; round < 500; ++round) {
    std::vector<double> values(3 + static_cast<std::size_t>(round % 14));
    std::generate(values.begin(), values.end(), [&] { return round % 2 ? noise(random) : 100; });
    CHECK(slow_ones(values, 0.1).empty());
  }
  CHECK(english(judged(judge_bandwidth, {{{"rate", 200.0}}, {{"rate", 90.0}}, {{"rate", 205.0}}}).at_fault) ==
        Names{"n1"});
  CHECK(judged(judge_bandwidth, {{{"rate", 200.0}}, {{"rate", 90.0}}}).outcome == Outcome::Pass);  // of two nobody
  CHECK(english(judged(judge_bandwidth, {{{"rate", 90.0}}}, {{"memory_bandwidth_gb", 150.0}}).at_fault) == Names{"n0"});
  CHECK(judged(judge_bandwidth, {{{"rate", 90.0}}}, {{"memory_bandwidth_gb", 80.0}}).outcome == Outcome::Pass);
  const nlohmann::json quota = {
      {"seconds", 3}, {"periods", 40}, {"quota", 0.5}, {"file", "/sys/fs/cgroup/cpu/cpu.cfs_quota_us"}};
  const nlohmann::json processors = {{"machine", "m"}, {"cores", 2},  {"seconds", 10},     {"busy", 1},
                                     {"own", 1},       {"wanted", 2}, {"held_back", quota}};
  const auto held =
      judged(judge_bandwidth, {{{"rate", 90.0}, {"processors", processors}}}, {{"memory_bandwidth_gb", 150.0}});
  CHECK(held.outcome == Outcome::Fail);
  CHECK_MESSAGE(
      held.reason.en.find("has a quota of 0.5 processors (/sys/fs/cgroup/cpu/cpu.cfs_quota_us)") != std::string::npos,
      held.reason.en);
  CHECK(held.reason.en.find("GB/s") == std::string::npos);
}

TEST_CASE("the triad is right with every split and gives a rate") {
  for (const unsigned threads : {1U, 2U, 3U}) CHECK(triad_rate(100'003, threads, 3) > 0);
}

TEST_CASE("a wrong clock is named, rank 0's too, and an offset within its own error is not") {
  const auto host = [](double offset, double bound = 0.001) { return Json{{"offset", offset}, {"bound", bound}}; };
  CHECK(judged(judge_clocks, {host(0), host(0.01), host(-0.01)}).outcome == Outcome::Pass);
  CHECK(english(judged(judge_clocks, {host(0), host(40), host(0.01)}).at_fault) == Names{"n1"});
  CHECK(english(judged(judge_clocks, {host(0), host(40), host(40.01)}).at_fault) == Names{"n0"});
  CHECK(judged(judge_clocks, {host(0), host(-2)}).reason.en == "n1: its clock is 2 s behind");
  CHECK(judged(judge_clocks, {host(0), host(0.7, 0.3)}).outcome == Outcome::Pass);
  CHECK(english(judged(judge_clocks, {host(0), host(0.1)}, {{"clock_skew_seconds", 0.05}}).at_fault) == Names{"n1"});
  CHECK(judged(judge_clocks, {host(0)}).outcome == Outcome::NotRun);
}

TEST_CASE("hosts measure their offset to rank 0 within half of the round trip") {
  constexpr int kRanks = 5;
  std::vector<Json> values(kRanks);
  std::vector<std::thread> ranks;
  const auto port = 20000 + getpid() % 10000;
  for (int rank = 0; rank < kRanks; ++rank) {
    ranks.emplace_back([&, rank] {
      Site site{.rank = rank, .world_size = kRanks, .local_rank = rank == 1 ? 1 : 0, .free_port = port};
      values[static_cast<std::size_t>(rank)] =
          measure_clock(site, rank == 3 ? [] { return wall_clock() + 5; } : wall_clock);
    });
  }
  for (auto& rank : ranks) rank.join();
  CHECK(values[1].is_null());
  for (const int rank : {0, 2, 4}) {
    const auto& value = values[static_cast<std::size_t>(rank)];
    CHECK(std::abs(value.at("offset").get<double>()) <= value.at("bound").get<double>() + 1e-6);
  }
  CHECK(std::abs(values[3].at("offset").get<double>() - 5) <= values[3].at("bound").get<double>() + 1e-6);
}
