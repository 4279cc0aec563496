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

/// The service whose port Kubernetes tells by variable `name`: "master" of MASTER_PORT.
SEALIFT_BODY std::string service_of(const std::string& name) {
  auto service = name.substr(0, name.rfind("_PORT"));
  for (char& c : service) c = c == '_' ? '-' : static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  return service;
}

SEALIFT_BODY std::string Reader::address(const std::string& name) {
  const auto value = text(name);
  const auto expect = [&](bool holds, const char* found) {
    TORCH_CHECK(holds, name, " is '", value, "', ", found,
                "; expected the address or the name of rank 0's host alone, ",
                "as 10.0.0.1, fd94::1 or host1; a port belongs into MASTER_PORT (", launcher_, ")");
  };
  expect(value.find("://") == value.npos, "an address of a service");
  expect(value.find_first_of(" \t\r\n/,") == value.npos, "not one address");
  const auto colons = std::count(value.begin(), value.end(), ':');
  if (!value.starts_with('[')) {
    expect(colons != 1, "with a port");
    return value;
  }
  expect(value.find("]:") == value.npos, "with a port");
  expect(value.ends_with(']') && colons >= 2, "with brackets that hold no IPv6 address");
  return value.substr(1, value.size() - 2);
}

SEALIFT_BODY std::int64_t Reader::number(const std::string& name, std::int64_t low, std::int64_t high) {
  const auto value = text(name);
  TORCH_CHECK(!value.starts_with("tcp://"), name, " is '", value, "', which Kubernetes sets in each pod beside a ",
              "service of that name ('", service_of(name), "'); give the pod a number as its own ", name,
              ", which then counts, or enableServiceLinks: false (", launcher_, ")");
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

SEALIFT_BODY bool is_any_address(std::string_view address) {
  return address == "0.0.0.0" || address == "::" || address == "*";
}

SEALIFT_BODY Launch Reader::found(Launch launch) const {
  TORCH_CHECK(launch.local_world_size == launch.world_size || !is_any_address(launch.master_addr), "MASTER_ADDR is '",
              launch.master_addr, "', which each host takes for itself; expected the address of rank 0's host (",
              launcher_, ")");
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

SEALIFT_BODY std::string interfaces(const std::string& text) {
  for (std::string_view rest = text; !text.empty();) {
    const auto name = rest.substr(0, rest.find(','));
    TORCH_CHECK(
        !name.empty() && name[0] != '^' && name[0] != '=', "GLOO_SOCKET_IFNAME is '", text, "'; expected names ",
        "of interfaces with commas between them: ^ (all but these) and = (these only) are NCCL_SOCKET_IFNAME's, ",
        "and Gloo has neither; name the one that leads to the other hosts (`ip -br address` lists them), or ",
        "unset it, and the one towards MASTER_ADDR is taken");
    if (name.size() == rest.size()) break;
    rest.remove_prefix(name.size() + 1);
  }
  return text;
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
