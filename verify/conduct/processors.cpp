// SPDX-License-Identifier: Apache-2.0
// /proc/stat against the ranks' own time.
// See processors.hpp.
// Interrupts are left out: those of a network check are its own. A virtual machine's stolen time is somebody else's.
#include "verify/conduct/processors.hpp"

#include "verify/wording/numbers.hpp"

#include <sealift/train/launch/host_share.hpp>

#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <fstream>
#include <set>
#include <sstream>

namespace sealift::verify {
namespace {

using Json = nlohmann::json;

/// Of the machine's processors others may take so much, and so many seconds, which is what the kernel's counts are off.
constexpr double kMostOfOthers = 0.1, kMostSeconds = 0.1;
/// Of what is measured a quota may hold a rank back for so long.
constexpr double kMostHeldBack = 0.05;

double clock_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double own_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

/// The processors on which this process may run.
std::set<int> allowed_processors() {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  std::set<int> allowed;
  if (sched_getaffinity(0, sizeof mask, &mask) != 0) return allowed;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &mask)) allowed.insert(cpu);
  }
  return allowed;
}

/// {"machine", "cores", "seconds", "busy", "own"}, the last three as they stand now; null where there is no /proc.
Json counts_now() {
  std::string machine;
  std::ifstream boot("/proc/sys/kernel/random/boot_id"), stat("/proc/stat");
  std::getline(boot, machine);
  const auto allowed = allowed_processors();
  double ticks = 0;
  int cores = 0;
  for (std::string line; std::getline(stat, line);) {
    std::istringstream words(line);
    std::string name;
    words >> name;
    if (!name.starts_with("cpu") || name.size() == 3) continue;
    const int cpu = std::atoi(name.c_str() + 3);
    if (!allowed.empty() && !allowed.contains(cpu)) continue;
    double user = 0, nice = 0, system = 0, idle = 0, wait = 0, irq = 0, soft = 0, steal = 0;
    words >> user >> nice >> system >> idle >> wait >> irq >> soft >> steal;
    ticks += user + nice + system + steal;
    machine += " " + std::to_string(cpu);
    ++cores;
  }
  if (cores == 0) return nullptr;
  const auto throttled = train::host::throttled();
  return {{"throttled", throttled.seconds},
          {"periods", throttled.periods},
          {"machine", machine},
          {"cores", cores},
          {"seconds", clock_now()},
          {"busy", ticks / static_cast<double>(sysconf(_SC_CLK_TCK))},
          {"own", own_seconds()}};
}

struct Machine {
  std::set<std::string> hosts;
  double cores = 0, seconds = 0, busy = 0, own = 0, wanted = 0;

  double others() const { return seconds > 0 ? std::max(0.0, busy - own) / seconds : 0; }
  bool did_other_work() const {
    return others() > kMostOfOthers * cores && others() * seconds > kMostSeconds && others() + wanted > cores;
  }
};

/// Ranks on the same processors are on one machine, whatever they call their host.
std::vector<Machine> machines_of(const std::vector<Measured>& all) {
  std::map<std::string, Machine> machines;
  for (const auto& measured : all) {
    if (!has_values(measured)) continue;
    const auto found = measured.values.find("processors");
    if (found == measured.values.end() || !found->is_object()) continue;
    auto& machine = machines[found->at("machine").get<std::string>()];
    machine.hosts.insert(measured.host);
    machine.cores = found->at("cores");
    machine.seconds = std::max(machine.seconds, found->at("seconds").get<double>());
    machine.busy = std::max(machine.busy, found->at("busy").get<double>());
    machine.own += found->at("own").get<double>();
    machine.wanted += found->at("wanted").get<double>();
  }
  std::vector<Machine> list;
  for (auto& [key, machine] : machines) list.push_back(std::move(machine));
  return list;
}

}  // namespace

Processors::Processors() : began_(counts_now()) {}

Json Processors::taken(double wanted) const {
  auto now = counts_now();
  if (began_.is_null() || now.is_null() || now.at("machine") != began_.at("machine")) return nullptr;
  for (const auto* key : {"seconds", "busy", "own"}) now[key] = now[key].get<double>() - began_.at(key).get<double>();
  now["wanted"] = wanted;
  const auto quota = train::host::quota();
  const auto periods = now["periods"].get<double>() - began_.at("periods").get<double>();
  const auto seconds = now["throttled"].get<double>() - began_.at("throttled").get<double>();
  now.erase("periods");
  now.erase("throttled");
  if (quota && periods > 0) {
    now["held_back"] = {
        {"seconds", seconds}, {"periods", periods}, {"quota", quota->processors}, {"file", quota->file}};
  }
  return now;
}

std::optional<Phrase> other_work(const std::vector<Measured>& all) {
  constexpr std::size_t kSaid = 3;
  Phrase sentence;
  std::size_t busy = 0;
  for (const auto& machine : machines_of(all)) {
    if (!machine.did_other_work() || ++busy > kSaid) continue;
    const auto taken = number_text(std::round(machine.others() * 10) / 10),
               cores = std::to_string(static_cast<int>(machine.cores));
    const auto& host = *machine.hosts.begin();
    sentence.en += (busy > 1 ? ", " : "other programs took ") + taken + " of " + cores + " processors of " + host;
    sentence.zh += (busy > 1 ? "，" : "其他程序占用了 ") + host + " 的 " + cores + " 个处理器中的 " + taken + " 个";
  }
  if (busy == 0) return std::nullopt;
  if (busy > kSaid) {
    sentence.en += ", and of " + std::to_string(busy - kSaid) + " more machines";
    sentence.zh += "，另有 " + std::to_string(busy - kSaid) + " 台";
  }
  return sentence;
}

Culprits held_back(const std::vector<Measured>& all) {
  Culprits culprits;
  for (const auto& measured : all) {
    if (!has_values(measured)) continue;
    const auto found = measured.values.find("processors");
    if (found == measured.values.end() || !found->is_object() || !found->contains("held_back")) continue;
    const auto& held = found->at("held_back");
    const double seconds = held.at("seconds");
    if (seconds <= kMostHeldBack * found->at("seconds").get<double>()) continue;
    const auto quota = number_text(held.at("quota")), periods = number_text(held.at("periods"));
    const auto file = held.at("file").get<std::string>(), time = number_text(seconds);
    culprits.add(
        name_of(measured),
        {"its control group has a quota of " + quota + " processors (" + file + "), which held it back in " + periods +
             " periods, " + time + " s in all; nothing is said of its silicon: raise the quota (CPU " +
             "limit of the container), and run again",
         "其控制组的处理器配额为 " + quota + "（" + file + "），测量期间在 " + periods + " 个周期内被限制，共 " + time +
             " 秒；不据此判断硬件：请提高配额（容器的 CPU 限制）后重新运行"});
  }
  return culprits;
}

void excuse_beside_other_work(const std::vector<Measured>& all, Check& check) {
  const auto machines = machines_of(all);
  double most = 0;
  for (const auto& machine : machines) most = std::max(most, machine.others());
  if (!machines.empty())
    check.figures.push_back({{"processors that other programs took", "其他程序占用的处理器数"}, most, "", {}, {}, ""});
  if (const auto held = held_back(all); check.outcome == Outcome::Fail && !held.empty()) {
    check.outcome = Outcome::NotRun;  // what was said before follows from the quota
    check.at_fault.clear();
    return held.accuse(check);
  }
  const auto busy = check.outcome == Outcome::Fail ? other_work(all) : std::nullopt;
  if (!busy) return;
  check.outcome = Outcome::NotRun;
  check.at_fault.clear();
  check.reason = {"the machine was busy: " + busy->en + ", so nobody is named for what looked slow (" +
                      check.reason.en + "); run again when it does nothing else",
                  "机器繁忙：" + busy->zh + "，因此不认定任何一方（看似偏慢：" + check.reason.zh +
                      "）；请在没有其他任务时重新运行"};
}

bool accuse_of_rates(const Culprits& certain, const Culprits& slow, const std::vector<Measured>& all, Check& check) {
  certain.accuse(check);
  if (const auto held = slow.empty() ? Culprits() : held_back(all); !held.empty()) {
    held.accuse(check);
    return true;
  }
  if (certain.empty() || !other_work(all)) slow.accuse(check);
  if (certain.empty()) excuse_beside_other_work(all, check);
  return !certain.empty() || !slow.empty();
}

}  // namespace sealift::verify
