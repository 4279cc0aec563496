// SPDX-License-Identifier: Apache-2.0
// The list of this room's checks.
// See checks.hpp.
// In the order in which they are run: what takes seconds first.
#include "verify/arithmetic/checks.hpp"

#include "verify/arithmetic/judge.hpp"
#include "verify/arithmetic/rates.hpp"
#include "verify/arithmetic/steps.hpp"

#include <fstream>
#include <thread>

namespace sealift::verify {
namespace {

constexpr double kBurnSeconds = 900;

nlohmann::json measure_same_bits(at::Device device, const Site& site) {
  const auto job = quick_arithmetic_job(device, site.seed);
  const auto repeated = repeat_steps(job, device, std::chrono::minutes(site.minutes));
  return {{"kind", kind_of_device(device)},
          {"torch", TORCH_VERSION},
          {"job", to_json(job)},
          {"digests", repeated.digests},
          {"runs", repeated.runs},
          {"again", repeated.again ? nlohmann::json(*repeated.again) : nlohmann::json()}};
}

/// What the devices of each kind agreed on, in the form in which a bundle carries it.
void keep_references(const std::vector<Measured>& all, const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  std::map<std::string, std::string> files;
  for (const auto& measured : all) {
    if (!measured.values.is_object()) continue;
    auto name = measured.values.at("kind").get<std::string>();
    for (auto& letter : name) {
      if (!std::isalnum(static_cast<unsigned char>(letter))) letter = '_';
    }
    files[name + ".json"] = write_arithmetic_reference(measured.values);
  }
  for (const auto& [name, text] : files) {
    std::ofstream out(folder / name, std::ios::binary);
    out << text;
    out.flush();
    TORCH_CHECK(out, "cannot write ", (folder / name).string());
  }
}

CheckKind same_bits(at::Device device) {
  return {.name = "arithmetic.same_bits",
          .part = Part::Arithmetic,
          .from = Level::Quick,
          .title = {"the same training steps give the same bits on every device, alone, twice",
                    "相同的训练步骤在每个设备上单独运行两次，结果逐位相同"},
          .who = Who::EveryRank,
          .measure = [device](const Site& site) { return measure_same_bits(device, site); },
          .judge =
              [](const auto& all, const Site& site, Check& check) {
                const auto carried = site.prefix / "share/sealift/verify/arithmetic";
                judge_same_bits(all, read_arithmetic_references(carried), check);
                if (check.outcome == Outcome::Pass) keep_references(all, site.shared / "arithmetic");
              }};
}

CheckKind rates(at::Device device) {
  return {.name = "arithmetic.rates",
          .part = Part::Arithmetic,
          .from = Level::Quick,
          .title = {"each device multiplies matrices and moves memory as fast as its siblings and as the site expects",
                    "每个设备的矩阵乘法与内存速率与同类设备及站点期望相符"},
          .who = Who::EveryRank,
          .measure = [device](const Site&) { return measure_rates(device); },
          .judge = [](const auto& all, const Site& site, Check& check) { judge_rates(all, site.expected, check); }};
}

CheckKind heat(at::Device device) {
  const auto measure = [device](const Site& site) {
    const auto part = site.expected.value("arithmetic", nlohmann::json::object());
    const std::int64_t hands = device.is_cpu() ? at::get_num_threads() : 1;  // this rank's share of the processors
    return burn_device(heavy_arithmetic_job(device, site.seed), device,
                       std::chrono::duration<double>(part.value("burn_seconds", kBurnSeconds)), hands);
  };
  return {.name = "arithmetic.heat",
          .part = Part::Arithmetic,
          .from = Level::Burn,
          .title = {"each device still computes the same bits after minutes under full load",
                    "每个设备在满载数分钟后计算结果仍逐位相同"},
          .who = Who::EveryRank,
          .measure = measure,
          .judge = [](const auto& all, const Site&, Check& check) { judge_heat(all, check); }};
}

}  // namespace

std::vector<CheckKind> arithmetic_checks(at::Device device) {
  return {same_bits(device), rates(device), heat(device)};
}

}  // namespace sealift::verify
