// SPDX-License-Identifier: Apache-2.0
// Rules for GPUs.
// See judge_gpus.hpp.
// The generation of a PCIe link is a fact and no rule: an idle GPU lowers it to save power, and its width stays.
#include "verify/machine/judge_gpus.hpp"

#include "verify/conduct/culprits.hpp"
#include "verify/verdict/outliers.hpp"

namespace sealift::verify {
namespace {

using Json = nlohmann::json;

struct Brake {
  unsigned long long bit;
  Phrase name;
};
const Brake kBrakes[] = {{0x08, {"hardware slowdown", "硬件降频"}},
                         {0x20, {"software thermal slowdown", "软件过热降频"}},
                         {0x40, {"hardware thermal slowdown", "硬件过热降频"}},
                         {0x80, {"power brake: the power supply asks for less", "电源制动降频"}}};

Phrase counted(std::int64_t count, const Phrase& what) {
  const auto text = std::to_string(count);
  return {text + " " + what.en, text + " " + what.zh};
}

void judge_memory(const Json& gpu, const Phrase& who, Culprits& culprits) {
  const auto now = gpu.value("ecc_volatile", std::int64_t{0}), ever = gpu.value("ecc_aggregate", std::int64_t{0});
  if (now > 0)
    culprits.add(who, counted(now, {"uncorrected ECC errors since the driver was loaded",
                                    "个自驱动加载以来的不可纠正 ECC 错误"}));
  // Rows with errors of the past are remapped, and only what could not be remapped is still there.
  if (ever > 0 && !gpu.contains("rows_failed")) {
    culprits.add(who, counted(ever, {"uncorrected ECC errors in its life", "个历史不可纠正 ECC 错误"}));
  }
  if (gpu.value("rows_pending", 0) > 0) {
    culprits.add(who, {"a memory row waits to be remapped; reset the GPU or restart the host",
                       "有显存行等待重映射；请重置 GPU 或重启主机"});
  }
  if (gpu.value("rows_failed", 0) > 0) {
    culprits.add(who, {"a memory row could not be remapped; have it replaced", "显存行重映射失败；请更换该卡"});
  }
}

/// Of more than half of a host's GPUs of one name some NVLink is active: then one without any is no card without a
/// bridge.
bool kind_is_linked(const Json& gpus, const std::string& name) {
  int same = 0, linked = 0;
  for (const auto& gpu : gpus) {
    if (gpu.value("name", "?") != name) continue;
    ++same;
    linked += gpu.value("nvlinks_active", 0) > 0 ? 1 : 0;
  }
  return 2 * linked > same;
}

void judge_links(const Json& gpu, const Phrase& who, const Json& expected, bool is_linked, Culprits& culprits) {
  const int width = gpu.value("pcie_width", 0), most = gpu.value("pcie_max_width", 0);
  if (width < most) {
    const auto text = std::to_string(width) + " / " + std::to_string(most);
    culprits.add(who, {"its PCIe link has " + text + " lanes; look at its seat and riser",
                       "PCIe 通道数为 " + text + "；请检查插槽与转接卡"});
  }
  const int links = gpu.value("nvlinks", 0), active = gpu.value("nvlinks_active", 0);
  const int wanted = expected.value("nvlinks", is_linked || active > 0 ? links : 0);
  if (active < wanted) {
    const auto text = std::to_string(active) + " / " + std::to_string(wanted);
    culprits.add(who, {"NVLinks active: " + text, "已激活的 NVLink：" + text});
  }
}

void judge_device(const Json& gpu, const Phrase& who, const Json& expected, bool is_linked, Culprits& culprits) {
  if (gpu.value("lost", false)) culprits.add(who, {"has fallen off the bus", "已从总线掉线"});
  judge_memory(gpu, who, culprits);
  judge_links(gpu, who, expected, is_linked, culprits);
  const auto brakes = gpu.value("throttle", 0ULL);
  for (const auto& brake : kBrakes) {
    if (brakes & brake.bit) culprits.add(who, brake.name);
  }
}

Phrase facts_of(const Json& gpu) {
  const auto number = [&](const char* key) { return std::to_string(gpu.value(key, 0)); };
  const auto name = gpu.value("name", "?");
  return {
      name + ", SM " + number("sm_mhz") + " of " + number("sm_max_mhz") + " MHz, " + number("temperature") +
          " C, PCIe generation " + number("pcie_generation") + " of " + number("pcie_max_generation") + " x" +
          number("pcie_width") + ", NVLinks " + number("nvlinks_active") + ", rows remapped " + number("rows_remapped"),
      name + "，SM " + number("sm_mhz") + " / " + number("sm_max_mhz") + " MHz，" + number("temperature") +
          " °C，PCIe 第 " + number("pcie_generation") + " 代（最高第 " + number("pcie_max_generation") + " 代）x" +
          number("pcie_width") + "，NVLink " + number("nvlinks_active") + "，已重映射的行 " + number("rows_remapped")};
}

void judge_driver(const std::vector<const Measured*>& hosts, const Json& expected, Culprits& culprits, Check& check) {
  std::vector<std::string> drivers;
  for (const auto* host : hosts) {
    drivers.push_back(host->values.value("driver", ""));
    check.facts.push_back({{"driver on " + host->host, host->host + " 的驱动"}, drivers.back()});
    const auto wanted = expected.value("driver", drivers.back());
    if (wanted != drivers.back()) {
      culprits.add(host->host, {"driver " + drivers.back() + ", expected " + wanted,
                                "驱动为 " + drivers.back() + "，应为 " + wanted});
    }
  }
  for (const auto i : unlike_most(drivers)) {
    culprits.add(hosts[i]->host,
                 {"driver " + drivers[i] + " is not its siblings'", "驱动 " + drivers[i] + " 与其他主机不同"});
  }
}

}  // namespace

void judge_gpus(const std::vector<Measured>& all, const Site& site, Check& check) {
  const auto expected = site.expected.value("machine", Json::object());
  const auto hosts = with_values(all);
  Culprits culprits;
  judge_driver(hosts, expected, culprits, check);
  std::vector<std::string> kinds;
  std::size_t count = 0;
  for (const auto* host : hosts) {
    const auto& gpus = host->values.at("devices");
    std::string kind = std::to_string(gpus.size());
    const auto wanted = expected.value("gpus", gpus.size());
    if (wanted != gpus.size()) {
      const auto text = std::to_string(gpus.size()) + " / " + std::to_string(wanted);
      culprits.add(host->host, {"GPUs: " + text, "GPU 数量：" + text});
    }
    for (const auto& gpu : gpus) {
      const auto index = std::to_string(gpu.at("index").get<int>());
      const Phrase who{"GPU " + index + " on " + host->host, host->host + " 上的 GPU " + index};
      judge_device(gpu, who, expected, kind_is_linked(gpus, gpu.value("name", "?")), culprits);
      check.facts.push_back({who, facts_of(gpu)});
      kind += ", " + gpu.value("name", "?");
      ++count;
    }
    kinds.push_back(kind);
  }
  for (const auto i : unlike_most(kinds)) {
    culprits.add(hosts[i]->host,
                 {"its GPUs (" + kinds[i] + ") are not its siblings'", "其 GPU（" + kinds[i] + "）与其他主机不同"});
  }
  if (count == 0 && culprits.count() == 0) {
    check.reason = {"the NVIDIA driver knows of no GPU", "NVIDIA 驱动未发现 GPU"};
    return;
  }
  const auto text = std::to_string(count);
  culprits.settle(
      check, {text + " GPU(s) without errors, brakes or narrow links", text + " 个 GPU：无错误、无降频、链路完整"});
}

}  // namespace sealift::verify
