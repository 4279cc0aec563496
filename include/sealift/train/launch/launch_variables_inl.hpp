// SPDX-License-Identifier: Apache-2.0
// The bodies of launch_variables.hpp, which declares them and says what they promise.
#pragma once

#include <sealift/train/launch/launch_variables.hpp>

#include <algorithm>
#include <charconv>

namespace sealift::train {

namespace launchers {

SEALIFT_BODY Reader::Reader(const Environment& environment, std::string launcher, std::string remedy)
    : environment_(environment), launcher_(std::move(launcher)), remedy_(std::move(remedy)) {}

SEALIFT_BODY bool Reader::has(const std::string& name) const {
  const char* text = environment_(name.c_str());
  return text && *text;
}

SEALIFT_BODY std::string Reader::text(const std::string& name) {
  TORCH_CHECK(has(name), launcher_, " was found, but ", name, " is not set; ", remedy_);
  names_ += (names_.empty() ? "" : " ") + name;
  return environment_(name.c_str());
}

SEALIFT_BODY std::int64_t Reader::number(const std::string& name, std::int64_t low, std::int64_t high) {
  const auto value = text(name);
  std::int64_t result = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), result);
  TORCH_CHECK(error == std::errc{} && end == value.data() + value.size() && result >= low && result <= high, name,
              " is '", value, "'; expected a whole number from ", low, " to ", high, " (", launcher_, ": ", remedy_,
              ")");
  return result;
}

SEALIFT_BODY std::int64_t Reader::number_or(const std::string& name, std::int64_t low, std::int64_t high,
                                            std::int64_t otherwise) {
  return has(name) ? number(name, low, high) : otherwise;
}

SEALIFT_BODY Launch Reader::found(Launch launch) const {
  const auto first = std::to_string(launch.rank), last = std::to_string(launch.rank + launch.local_world_size - 1);
  launch.source = (launch.is_node ? "the host of ranks " + first + " to " + last : "rank " + first) + " of " +
                  std::to_string(launch.world_size);
  if (launch.world_size > 1 && launch.master_port > 0) {
    launch.source += ", store at " + launch.master_addr + ":" + std::to_string(launch.master_port);
  }
  if (launch.agent_store) launch.source += " served by the launcher";
  launch.source += " (" + launcher_ + ": " + names_ + ")";
  return launch;
}

SEALIFT_BODY bool is_loopback(std::string_view address) {
  return address == "localhost" || address == "::1" || address.starts_with("127.");
}

SEALIFT_BODY std::int64_t port_of_job(std::string_view job) {
  std::uint64_t hash = 14695981039346656037U;  // FNV-1a
  for (const char c : job) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211U;
  return 15000 + static_cast<std::int64_t>(hash % 10000);
}

SEALIFT_BODY std::string first_host(std::string_view list) {
  std::string host;
  for (std::size_t at = 0; at < list.size() && list[at] != ',';) {
    if (list[at] != '[') {
      host += list[at++];
      continue;
    }
    const auto end = list.find_first_of(",-]", at + 1), close = list.find(']', at);
    TORCH_CHECK(close != list.npos && end > at + 1, "Slurm's node list is '", list,
                "'; expected names with ranges such as node[01-03,7]; set MASTER_ADDR to the address of rank 0's host");
    host += list.substr(at + 1, end - at - 1);
    at = close + 1;
  }
  return host;
}

SEALIFT_BODY std::optional<std::int64_t> count_at(std::string_view counts, std::int64_t index) {
  while (!counts.empty()) {
    const auto entry = counts.substr(0, counts.find(','));
    counts.remove_prefix(std::min(counts.size(), entry.size() + 1));
    std::int64_t value = 0, times = 1;
    const auto* const last = entry.data() + entry.size();
    const auto [end, error] = std::from_chars(entry.data(), last, value);
    if (error != std::errc{} || value < 1) return std::nullopt;
    if (end != last) {
      if (!std::string_view(end, last).starts_with("(x")) return std::nullopt;
      if (std::from_chars(end + 2, last, times).ec != std::errc{} || times < 1) return std::nullopt;
    }
    if (index < times) return value;
    index -= times;
  }
  return std::nullopt;
}

}  // namespace launchers

}  // namespace sealift::train
