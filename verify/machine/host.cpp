// SPDX-License-Identifier: Apache-2.0
// Files of the kernel, a line at a time.
// See host.hpp.
// A file that is not there is a fact that is left out: containers hide some.
#include "verify/machine/host.hpp"

#include "verify/conduct/check_kind.hpp"

#include <gnu/libc-version.h>
#include <sys/resource.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <map>

namespace sealift::verify {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
constexpr double kMi = 1 << 20, kGi = 1 << 30;

std::string first_line(const fs::path& file) {
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  line.resize(std::min<std::size_t>(line.size(), 200));
  return line;
}

/// What follows `key` and a colon in a file such as /proc/cpuinfo.
std::string value_of(const fs::path& file, const std::string& key) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    const auto at = line.find(key), colon = line.find(':');
    if (at == std::string::npos || colon == std::string::npos || at > colon) continue;
    const auto start = line.find_first_not_of(" \t", colon + 1);
    return start == std::string::npos ? "" : line.substr(start, 200);
  }
  return "";
}

double kib_of(const fs::path& file, const std::string& key) {
  return std::strtod(value_of(file, key).c_str(), nullptr);
}

std::vector<fs::path> folders_in(const fs::path& folder, const std::string& beginning) {
  std::vector<fs::path> found;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    const auto name = entry.path().filename().string();
    const auto rest = name.substr(std::min(beginning.size(), name.size()));
    const bool numbered = beginning.empty() || (!rest.empty() && rest.find_first_not_of("0123456789") == rest.npos);
    if (name.starts_with(beginning) && numbered) found.push_back(entry.path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::string governors_of(const fs::path& root) {
  std::map<std::string, int> counts;
  for (const auto& cpu : folders_in(root / "sys/devices/system/cpu", "cpu")) {
    const auto name = first_line(cpu / "cpufreq/scaling_governor");
    if (!name.empty()) ++counts[name];
  }
  std::string text;
  for (const auto& [name, count] : counts) text += (text.empty() ? "" : ", ") + name + " x" + std::to_string(count);
  return text;
}

Json numa_of(const fs::path& root) {
  auto nodes = Json::array();
  for (const auto& node : folders_in(root / "sys/devices/system/node", "node")) {
    nodes.push_back({{"node", node.filename().string()},
                     {"cpus", !first_line(node / "cpulist").empty()},
                     {"gib", kib_of(node / "meminfo", "MemTotal") / kMi}});
  }
  return nodes;
}

/// "200 Gb/sec (4X HDR)" -> 200 and 4.
Json port_of(const fs::path& folder, const std::string& name) {
  double rate = 0;
  int width = 0;
  std::sscanf(first_line(folder / "rate").c_str(), "%lf Gb/sec (%dX", &rate, &width);
  return {{"name", name},
          {"state", first_line(folder / "state")},
          {"physical", first_line(folder / "phys_state")},
          {"rate", rate},
          {"width", width}};
}

Json ports_of(const fs::path& root) {
  auto ports = Json::array();
  for (const auto& adapter : folders_in(root / "sys/class/infiniband", "")) {
    for (const auto& port : folders_in(adapter / "ports", "")) {
      ports.push_back(port_of(port, adapter.filename().string() + ":" + port.filename().string()));
    }
  }
  return ports;
}

double size_of(const fs::path& folder, bool is_free) {
  struct statvfs status {};
  if (statvfs(folder.c_str(), &status) != 0) return 0;
  return static_cast<double>(is_free ? status.f_bavail : status.f_blocks) * static_cast<double>(status.f_frsize);
}

double locked_mib() {
  rlimit limit{};
  getrlimit(RLIMIT_MEMLOCK, &limit);
  return limit.rlim_cur == RLIM_INFINITY ? -1 : static_cast<double>(limit.rlim_cur) / kMi;
}

}  // namespace

Json read_host(const fs::path& root, const Site& site) {
  const auto processors = folders_in(root / "sys/devices/system/cpu", "cpu").size();
  if (processors == 0)
    throw NotRun({"/sys is not mounted, or tells nothing of processors", "/sys 未挂载或没有处理器信息"});
  const auto numa = numa_of(root);
  return {{"cpu", value_of(root / "proc/cpuinfo", "model name")},
          {"cpus", processors},
          {"governors", governors_of(root)},
          {"kernel", first_line(root / "proc/sys/kernel/osrelease")},
          {"glibc", gnu_get_libc_version()},
          {"memory_gib", kib_of(root / "proc/meminfo", "MemTotal") / kMi},
          {"huge_pages", kib_of(root / "proc/meminfo", "HugePages_Total")},
          {"numa_nodes", numa.size()},
          {"numa", numa},
          {"shm_mib", size_of(root / "dev/shm", false) / kMi},
          {"shm_free_mib", size_of(root / "dev/shm", true) / kMi},
          {"locked_mib", locked_mib()},
          {"free_gib", size_of(site.work, true) / kGi},
          {"ranks", site.local_world_size},
          {"nvidia", fs::exists(root / "proc/driver/nvidia/version")},
          {"gpudirect", fs::exists(root / "sys/module/nvidia_peermem") || fs::exists(root / "sys/module/nv_peer_mem")},
          {"ports", ports_of(root)}};
}

}  // namespace sealift::verify
