// SPDX-License-Identifier: Apache-2.0
// The parts of a launch: the place of a process among the ranks, and the reader of one launcher's variables.
// Below `launch`, whose recognisers use them: variables in, a checked `Launch` out.
// Every number is checked against its range, and the names that were read are kept, so that users see what was used.
#pragma once

#include <c10/util/Exception.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace sealift::train {

/// What a launcher told this process.
struct Launch {
  std::int64_t rank = 0;
  std::int64_t world_size = 1;
  std::int64_t local_rank = 0;
  std::int64_t local_world_size = 1;  ///< ranks on this host, which share its cores
  bool is_node = false;     ///< this process must start the host's `local_world_size` ranks, the first of them `rank`
  std::string master_addr;  ///< where the store is: a numeric address or a name
  std::int64_t master_port = 0;  ///< 0: any free port, since all ranks are on this host
  bool agent_store = false;      ///< the launcher serves the store itself; otherwise rank 0 does
  std::string attempt = "0";
  std::string interface;  ///< c10d's GLOO_SOCKET_IFNAME: the interface to listen on; empty: the one towards the master
  std::string source =
      "single process (no launcher's variables are set)";  ///< for people: what was found, and in which variables
};

/// Looks up an environment variable; null when it is not set.
using Environment = std::function<const char*(const char*)>;

namespace launchers {

constexpr std::int64_t kMaxRanks = 1'000'000;
constexpr std::int64_t kMaxRanksPerHost = 1024;
constexpr std::int64_t kTorchrunPort = 29500;  ///< torchrun's and ms-swift's default

/// One launcher's variables: checks each against its range and notes which were read. An empty one counts as not set.
class Reader {
 public:
  Reader(const Environment& environment, std::string launcher, std::string remedy)
      : environment_(environment), launcher_(std::move(launcher)), remedy_(std::move(remedy)) {}

  bool has(const std::string& name) const {
    const char* text = environment_(name.c_str());
    return text && *text;
  }

  /// Throws when `name` is not set.
  std::string text(const std::string& name) {
    TORCH_CHECK(has(name), launcher_, " was found, but ", name, " is not set; ", remedy_);
    names_ += (names_.empty() ? "" : " ") + name;
    return environment_(name.c_str());
  }

  /// Throws when `name` is not set or not a whole number in [low, high].
  std::int64_t number(const std::string& name, std::int64_t low, std::int64_t high) {
    const auto value = text(name);
    std::int64_t result = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), result);
    TORCH_CHECK(error == std::errc{} && end == value.data() + value.size() && result >= low && result <= high, name,
                " is '", value, "'; expected a whole number from ", low, " to ", high, " (", launcher_, ": ", remedy_,
                ")");
    return result;
  }

  /// As `number`; `otherwise` when `name` is not set.
  std::int64_t number_or(const std::string& name, std::int64_t low, std::int64_t high, std::int64_t otherwise) {
    return has(name) ? number(name, low, high) : otherwise;
  }

  /// The first of two names that is set; the second, which is then missing, when none is.
  std::string either(const std::string& first, const std::string& second) const { return has(first) ? first : second; }

  /// `launch` with a `source` for people.
  Launch found(Launch launch) const {
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

 private:
  const Environment& environment_;
  std::string launcher_, remedy_, names_;
};

inline bool is_loopback(std::string_view address) {
  return address == "localhost" || address == "::1" || address.starts_with("127.");
}

/// A port from 15000 to 24999, the same on every rank of a job and below the range of ephemeral ports.
inline std::int64_t port_of_job(std::string_view job) {
  std::uint64_t hash = 14695981039346656037U;  // FNV-1a
  for (const char c : job) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211U;
  return 15000 + static_cast<std::int64_t>(hash % 10000);
}

/// The first host of Slurm's "node[01-03,7],gpu5": "node01". Throws on unbalanced brackets.
inline std::string first_host(std::string_view list) {
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

/// Entry `index` of Slurm's "2(x3),1", which is short for 2,2,2,1; nothing when there is none.
inline std::optional<std::int64_t> count_at(std::string_view counts, std::int64_t index) {
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
