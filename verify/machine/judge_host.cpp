// SPDX-License-Identifier: Apache-2.0
// Rules for hosts.
// See judge_host.hpp; docs/verify_checks_machine.md lists the rules with their reasons.
// What is only unusual is a fact; a rule is what has stopped or slowed training.
#include "verify/machine/judge_host.hpp"

#include "verify/conduct/culprits.hpp"
#include "verify/conduct/processors.hpp"
#include "verify/verdict/outliers.hpp"
#include "verify/wording/numbers.hpp"

#include <algorithm>
#include <cmath>
#include <set>

namespace sealift::verify {
namespace {

using Json = nlohmann::json;
constexpr double kShmOfRank = 128;  // MiB: twice what Docker gives a whole container
constexpr double kFloorOfMemory = 0.1;

void expect_at_least(Culprits& culprits, const std::string& who, double got, double wanted, const Phrase& what) {
  if (got >= wanted) return;
  const auto text = number_text(got) + " / " + number_text(wanted);
  culprits.add(who, {what.en + ": " + text, what.zh + "：" + text});
}

void judge_numa(const Json& host, const std::string& who, Culprits& culprits) {
  double most = 0;
  for (const auto& node : host.at("numa")) most = std::max(most, node.at("gib").get<double>());
  for (const auto& node : host.at("numa")) {
    if (!node.at("cpus").get<bool>() || node.at("gib").get<double>() >= most / 2) continue;
    const auto name = node.at("node").get<std::string>();
    culprits.add(who, {name + " has less than half of the memory of another node; is a module missing?",
                       name + " 的内存不到其他节点的一半；是否缺少内存条？"});
  }
}

bool is_up(const Json& port) {
  return port.at("state").get<std::string>().find("ACTIVE") != std::string::npos;
}

void judge_port(const Json& port, const std::string& who, Culprits& culprits) {
  const auto name = port.at("name").get<std::string>(), state = port.at("state").get<std::string>();
  const bool linked = port.at("physical").get<std::string>().find("LinkUp") != std::string::npos;
  if (linked && !is_up(port)) {
    culprits.add(who, {name + " is linked but " + state + "; is a subnet manager running?",
                       name + " 已连接但状态为 " + state + "；子网管理器是否运行？"});
  }
  const int width = port.at("width");
  if (is_up(port) && width > 0 && width < 4) {
    const auto text = std::to_string(width);
    culprits.add(who, {name + " runs on " + text + " of 4 lanes; look at its cable",
                       name + " 只有 " + text + "/4 条通道；请检查线缆"});
  }
}

void judge_fabric(const Json& host, const std::string& who, const Json& expected, Culprits& culprits) {
  const auto& ports = host.at("ports");
  const auto up = std::count_if(ports.begin(), ports.end(), is_up);
  for (const auto& port : ports) judge_port(port, who, culprits);
  expect_at_least(culprits, who, static_cast<double>(up), expected.value("ib_ports", ports.empty() ? 0.0 : 1.0),
                  {"InfiniBand ports that are active", "已激活的 InfiniBand 端口"});
  if (up > 0 && host.at("locked_mib").get<double>() >= 0) {
    const auto limit = number_text(host.at("locked_mib")) + " MiB";
    culprits.add(who, {"locked memory is limited to " + limit + ", and InfiniBand needs it unlimited (ulimit -l)",
                       "锁定内存限制为 " + limit + "，InfiniBand 要求不限制（ulimit -l）"});
  }
  if (expected.value("gpudirect", false) && !host.at("gpudirect").get<bool>()) {
    culprits.add(who, {"the module nvidia_peermem is not loaded", "未加载 nvidia_peermem 模块"});
  }
}

/// What must be equal on all hosts of one kind.
std::string kind_of_host(const Json& host, const char* key) {
  const auto& value = host.at(key);
  return value.is_string() ? value.get<std::string>() : value.dump();
}

std::string rates_of(const Json& host) {
  std::string text;
  for (const auto& port : host.at("ports")) {
    if (is_up(port)) text += (text.empty() ? "" : ", ") + number_text(port.at("rate")) + " Gb/s";
  }
  return text;
}

void name_unlike(const std::vector<const Measured*>& hosts, const std::vector<std::string>& texts, const Phrase& what,
                 Culprits& culprits) {
  for (const auto i : unlike_most(texts)) {
    culprits.add(hosts[i]->host, {what.en + " \"" + texts[i] + "\" is not its siblings'",
                                  what.zh + "“" + texts[i] + "”与其他主机不同"});
  }
}

/// What is read of a host by each key, in the order of the report.
const std::pair<const char*, Phrase> kRead[] = {{"cpu", {"processor", "处理器"}},
                                                {"cpus", {"number of processors", "处理器数"}},
                                                {"governors", {"frequency governor", "频率调节策略"}},
                                                {"kernel", {"kernel", "内核"}},
                                                {"glibc", "glibc"},
                                                {"memory_gib", {"memory", "内存（GiB）"}},
                                                {"numa_nodes", {"number of NUMA nodes", "NUMA 节点数"}},
                                                {"huge_pages", {"number of huge pages", "大页数"}},
                                                {"shm_mib", {"/dev/shm", "/dev/shm（MiB）"}},
                                                {"shm_free_mib", {"free in /dev/shm", "/dev/shm 可用（MiB）"}},
                                                {"locked_mib", {"locked memory", "可锁定内存（MiB）"}},
                                                {"free_gib", {"scratch", "临时空间（GiB）"}},
                                                {"gpudirect", "GPUDirect RDMA"}};

void compare_siblings(const std::vector<const Measured*>& hosts, Culprits& culprits) {
  const std::set<std::string> equal{"cpu",   "cpus",       "governors",  "kernel",
                                    "glibc", "numa_nodes", "huge_pages", "gpudirect"};
  for (const auto& [key, what] : kRead) {
    if (!equal.contains(key)) continue;
    std::vector<std::string> texts;
    for (const auto* host : hosts) texts.push_back(kind_of_host(host->values, key));
    name_unlike(hosts, texts, what, culprits);
  }
  std::vector<std::string> rates;
  for (const auto* host : hosts) rates.push_back(rates_of(host->values));
  name_unlike(hosts, rates, "InfiniBand", culprits);
}

Phrase value_of(const Json& value) {
  if (value.is_boolean()) return value.get<bool>() ? Phrase{"true", "是"} : Phrase{"false", "否"};
  if (value.is_string()) return value.get<std::string>();
  return value.is_number_float() ? number_text(value) : value.dump();
}

void add_facts(const Measured& host, Check& check) {
  for (const auto& [key, what] : kRead) {
    check.facts.push_back({{host.host + " " + key, host.host + " " + what.zh}, value_of(host.values.at(key))});
  }
  for (const auto& port : host.values.at("ports")) {
    check.facts.push_back({host.host + " " + port.at("name").get<std::string>(),
                           port.at("state").get<std::string>() + ", " + number_text(port.at("rate")) + " Gb/s"});
  }
}

Json machine_of(const Site& site) {
  return site.expected.value("machine", Json::object());
}

}  // namespace

void judge_hosts(const std::vector<Measured>& all, const Site& site, Check& check) {
  const auto expected = machine_of(site);
  const auto hosts = with_values(all);
  Culprits culprits;
  for (const auto* host : hosts) {
    const auto& values = host->values;
    const auto shm = kShmOfRank * values.at("ranks").get<double>();
    expect_at_least(culprits, host->host, values.at("shm_mib"), expected.value("shm_mib", shm),
                    {"MiB of /dev/shm", "/dev/shm 大小（MiB）"});
    expect_at_least(culprits, host->host, values.at("shm_free_mib"), expected.value("shm_free_mib", shm / 2),
                    {"MiB free in /dev/shm", "/dev/shm 可用空间（MiB）"});
    expect_at_least(culprits, host->host, values.at("free_gib"), expected.value("free_gib", 1.0),
                    {"GiB free for scratch", "临时空间（GiB）"});
    judge_numa(values, host->host, culprits);
    judge_fabric(values, host->host, expected, culprits);
    add_facts(*host, check);
  }
  if (!expected.value("mixed", false)) compare_siblings(hosts, culprits);
  const auto count = std::to_string(hosts.size());
  culprits.settle(check, {count + " host(s) are set up for training", count + " 台主机配置适合训练"});
}

void judge_bandwidth(const std::vector<Measured>& all, const Site& site, Check& check) {
  const auto expected = machine_of(site);
  const auto hosts = with_values(all);
  Culprits culprits;
  std::vector<double> rates;
  const bool has_expectation = expected.contains("memory_bandwidth_gb");
  for (const auto* host : hosts) {
    rates.push_back(host->values.at("rate"));
    Figure figure{
        .name = host->host, .value = rates.back(), .unit = "GB/s", .at_least = {}, .at_most = {}, .basis = ""};
    if (has_expectation) {
      figure.at_least = expected.at("memory_bandwidth_gb").get<double>();
      figure.basis = "site.toml";
      expect_at_least(culprits, host->host, rates.back(), *figure.at_least, {"GB/s of memory", "内存带宽（GB/s）"});
    }
    check.figures.push_back(figure);
  }
  const auto median = number_text(typical_of(rates));
  // Of two hosts one always has less, and a short measurement wanders by a tenth.
  for (const auto i : rates.size() > 2 ? slow_ones(rates, kFloorOfMemory) : std::vector<std::size_t>()) {
    const auto rate = number_text(rates[i]);
    culprits.add(hosts[i]->host, {rate + " GB/s of memory, and its siblings have " + median,
                                  "内存带宽 " + rate + " GB/s，其他主机为 " + median});
  }
  culprits.settle(check, {"memory gives " + median + " GB/s (median of " + std::to_string(rates.size()) + " host(s))",
                          "内存带宽中位数为 " + median + " GB/s（" + std::to_string(rates.size()) + " 台主机）"});
  excuse_beside_other_work(all, check);
}

void judge_clocks(const std::vector<Measured>& all, const Site& site, Check& check) {
  const auto limit = machine_of(site).value("clock_skew_seconds", 0.5);
  const auto hosts = with_values(all);
  if (hosts.size() < 2) {
    check.reason = {"one host: there is no other clock", "只有一台主机：没有可比较的时钟"};
    return;
  }
  std::vector<double> offsets;
  for (const auto* host : hosts) offsets.push_back(host->values.at("offset"));
  // Of two clocks nobody knows which is wrong, so the second is measured by the first.
  const auto middle = hosts.size() == 2 ? offsets[0] : typical_of(offsets);
  Culprits culprits;
  double worst = 0;
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    const double ahead = offsets[i] - middle, bound = hosts[i]->values.at("bound");
    worst = std::max(worst, std::abs(ahead));
    check.figures.push_back({.name = hosts[i]->host,
                             .value = ahead,
                             .unit = "s",
                             .at_least = -limit,
                             .at_most = limit,
                             .basis = {"the other clocks, +- " + number_text(bound) + " s",
                                       "其他时钟，误差 " + number_text(bound) + " 秒"}});
    if (std::abs(ahead) - bound <= limit) continue;
    const auto text = number_text(std::abs(ahead)) + " s";
    culprits.add(hosts[i]->host, ahead > 0 ? Phrase{"its clock is " + text + " ahead", "时钟快 " + text}
                                           : Phrase{"its clock is " + text + " behind", "时钟慢 " + text});
  }
  const auto text = number_text(worst);
  culprits.settle(check, {"clocks agree within " + text + " s", "各主机时钟相差不超过 " + text + " 秒"});
}

}  // namespace sealift::verify
