// SPDX-License-Identifier: Apache-2.0
// The list of this room's checks.
// See checks.hpp.
// In the order in which they are run: what is cheap and explains the rest comes first.
#include "verify/machine/checks.hpp"

#include "verify/conduct/processors.hpp"
#include "verify/machine/clock.hpp"
#include "verify/machine/host.hpp"
#include "verify/machine/judge_gpus.hpp"
#include "verify/machine/judge_host.hpp"
#include "verify/machine/memory_bandwidth.hpp"
#include "verify/machine/nvml.hpp"

#include <sealift/train/launch/host_share.hpp>

#include <algorithm>
#include <cstdlib>

namespace sealift::verify {
namespace {

/// Three arrays of 64 MiB are beyond the caches of most machines; a larger level asks for more.
nlohmann::json measure_bandwidth(const Site& site) {
  const std::size_t numbers = (std::size_t{8} << 20) * (site.level == Level::Quick ? 1 : 4);
  namespace host = train::host;
  const auto share = host::share_of_processors(host::allowed_processors(), {}, 1, host::quota());
  const auto threads = static_cast<unsigned>(std::clamp<std::int64_t>(host::threads_of(share), 1, 16));
  const Processors processors;
  const double rate = triad_rate(numbers, threads, site.level == Level::Quick ? 5 : 20);
  return {{"rate", rate}, {"threads", threads}, {"processors", processors.taken(threads)}};
}

/// Where the site expects GPUs, a host that shows none is a fault and no check that was not run.
nlohmann::json measure_gpus(const Site& site) {
  try {
    return read_gpus();
  } catch (const NotRun& why) {
    const auto expected = site.expected.value("machine", nlohmann::json::object()).value("gpus", std::int64_t{0});
    if (expected == 0) throw;
    throw std::runtime_error(why.reason.en + "; site.toml expects " + std::to_string(expected) + " GPUs of each host");
  }
}

CheckKind machine_kind(std::string name, Phrase title, Who who, std::function<nlohmann::json(const Site&)> measure,
                       std::function<void(const std::vector<Measured>&, const Site&, Check&)> judge) {
  return {.name = std::move(name),
          .part = Part::Machine,
          .from = Level::Quick,
          .title = std::move(title),
          .who = who,
          .measure = std::move(measure),
          .judge = std::move(judge)};
}

}  // namespace

std::vector<CheckKind> machine_checks() {
  return {
      machine_kind("machine.gpus", {"GPUs have no errors, no brakes and whole links", "GPU 无错误、无降频、链路完整"},
                   Who::OneOfHost, measure_gpus, judge_gpus),
      machine_kind(
          "machine.host", {"hosts are set up for training and alike", "主机配置适合训练且彼此一致"}, Who::OneOfHost,
          [](const Site& site) { return read_host("/", site); }, judge_hosts),
      machine_kind(
          "machine.clocks", {"the clocks of the hosts agree", "各主机时钟一致"}, Who::EveryRank,
          [](const Site& site) { return measure_clock(site, wall_clock); }, judge_clocks),
      machine_kind("machine.memory_bandwidth",
                   {"host memory is as fast as its siblings'", "主机内存带宽与其他主机相当"}, Who::OneOfHost,
                   measure_bandwidth, judge_bandwidth)};
}

}  // namespace sealift::verify
