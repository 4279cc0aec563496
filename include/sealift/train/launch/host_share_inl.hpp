// SPDX-License-Identifier: Apache-2.0
// The bodies of host_share.hpp, which declares them and says what they promise.
#pragma once

#include <sealift/train/launch/host_share.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fstream>
#include <map>
#include <sstream>
#include <thread>

namespace sealift::train::host {

SEALIFT_BODY std::optional<Quota> quota(const std::filesystem::path& root) {
  std::optional<Quota> least;
  for (const auto& group : control_groups("cpu", root)) {
    const auto file = group.folder / (group.unified ? "cpu.max" : "cpu.cfs_quota_us");
    const auto most = number_in(file);  // "max", and -1 of version 1: none
    double period = 0;                  // not known
    if (group.unified) {
      std::istringstream words(line_of(file));
      std::string first;
      words >> first >> period;
    } else {
      period = number_in(group.folder / "cpu.cfs_period_us").value_or(0);
    }
    if (!most || *most <= 0 || !(period > 0)) continue;
    if (!least || *most / period < least->processors) least = Quota{*most / period, file.string()};
  }
  return least;
}

SEALIFT_BODY Throttled throttled(const std::filesystem::path& root) {
  Throttled all;
  for (const auto& group : control_groups("cpu", root)) {
    const auto file = group.folder / "cpu.stat";
    all.periods += number_of(file, "nr_throttled").value_or(0);
    all.seconds += group.unified ? 1e-6 * number_of(file, "throttled_usec").value_or(0)
                                 : 1e-9 * number_of(file, "throttled_time").value_or(0);
  }
  return all;
}

SEALIFT_BODY std::string allowed_processors(const std::filesystem::path& root) {
  constexpr std::string_view kKey = "Cpus_allowed_list:";
  std::ifstream status(root / "proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (!line.starts_with(kKey)) continue;
    const auto start = line.find_first_not_of(" \t", kKey.size());
    return start == std::string::npos ? "" : line.substr(start, 65536);
  }
  return "";
}

SEALIFT_BODY std::vector<std::int64_t> processors_of(std::string_view list) {
  constexpr std::int64_t kMost = 65536;
  std::vector<std::int64_t> numbers;
  while (!list.empty()) {
    const auto part = list.substr(0, list.find(','));
    list.remove_prefix(std::min(list.size(), part.size() + 1));
    std::int64_t first = 0;
    const auto* const end = part.data() + part.size();
    auto read = std::from_chars(part.data(), end, first);
    auto last = first;
    if (read.ec == std::errc{} && read.ptr != end && *read.ptr == '-') read = std::from_chars(read.ptr + 1, end, last);
    if (read.ec != std::errc{} || read.ptr != end) return {};
    if (first < 0 || last < first || last >= kMost) return {};
    for (auto number = first; number <= last; ++number) numbers.push_back(number);
  }
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  return numbers;
}

SEALIFT_BODY double share_of_processors(const std::string& own, const std::vector<std::string>& all, std::int64_t local,
                                        const std::optional<Quota>& quota) {
  std::map<std::int64_t, double> ranks_on;
  for (const auto& list : all) {
    for (const auto processor : processors_of(list)) ++ranks_on[processor];
  }
  const auto ranks = static_cast<double>(std::max<std::int64_t>(1, local));
  double share = 0;
  for (const auto processor : processors_of(own)) {
    const auto known = ranks_on.find(processor);
    share += 1 / (known == ranks_on.end() ? ranks : known->second);
  }
  if (share == 0) share = static_cast<double>(std::max(1U, std::thread::hardware_concurrency())) / ranks;
  return quota ? std::min(share, quota->processors / ranks) : share;
}

SEALIFT_BODY std::int64_t threads_of(double share) {
  constexpr double kRounding = 1e-6;  // six sixths are a whole
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(std::floor(share + kRounding)));
}

/// What a group has left of its memory; nothing where it has no limit.
SEALIFT_BODY std::optional<double> memory_left(const ControlGroup& group) {
  const auto file = [&](const char* unified, const char* old) {
    return group.folder / (group.unified ? unified : old);
  };
  constexpr double kNoLimit = 0x1p60;  // version 1 writes the largest number of pages
  const auto most = number_in(file("memory.max", "memory.limit_in_bytes"));
  const auto used = number_in(file("memory.current", "memory.usage_in_bytes"));
  if (!most || !used || *most >= kNoLimit) return std::nullopt;
  const auto idle = number_of(group.folder / "memory.stat", group.unified ? "inactive_file" : "total_inactive_file");
  return std::max(0.0, *most - std::max(0.0, *used - idle.value_or(0)));
}

/// What this process has left of the limit of its own that /proc/self/limits has in a line that begins so; `used`: the
/// word of /proc/self/status for what counts against it, in kB. Nothing where there is no limit.
SEALIFT_BODY std::optional<double> own_limit_left(const std::filesystem::path& root, std::string_view limit,
                                                  const std::string& used) {
  std::ifstream limits(root / "proc/self/limits");
  for (std::string line; std::getline(limits, line);) {
    double most = 0;
    if (!line.starts_with(limit)) continue;
    if (!(std::istringstream(line.substr(limit.size())) >> most)) return std::nullopt;  // "unlimited"
    return std::max(0.0, most - 1024 * number_of(root / "proc/self/status", used).value_or(0));
  }
  return std::nullopt;
}

SEALIFT_BODY std::int64_t free_memory(const std::filesystem::path& root) {
  auto least = 1024 * number_of(root / "proc/meminfo", "MemAvailable:").value_or(0);
  for (const auto& group : control_groups("memory", root)) {
    if (const auto left = memory_left(group)) least = std::min(least, *left);
  }
  for (const auto& [limit, used] : {std::pair{"Max address space", "VmSize:"}, {"Max data size", "VmData:"}}) {
    if (const auto left = own_limit_left(root, limit, used)) least = std::min(least, *left);
  }
  return static_cast<std::int64_t>(least);
}

SEALIFT_BODY std::string machine(const std::filesystem::path& root) {
  return line_of(root / "proc/sys/kernel/random/boot_id");
}

SEALIFT_BODY std::string network(const std::filesystem::path& root) {
  std::error_code none;
  const auto space = std::filesystem::read_symlink(root / "proc/self/ns/net", none).string();
  const auto kernel = machine(root);
  return none || kernel.empty() ? "" : kernel + " " + space;
}

}  // namespace sealift::train::host
