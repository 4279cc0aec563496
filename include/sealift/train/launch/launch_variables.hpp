// SPDX-License-Identifier: Apache-2.0
// The parts of a launch: the place of a process among the ranks, and the reader of one launcher's variables.
// Below `launch`, whose recognisers use them: variables in, a checked `Launch` out.
// Every number is checked against its range, and the names that were read are kept, so that users see what was used.
#pragma once

#include <c10/util/Exception.h>
#include <sealift/train/bodies.hpp>

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
  /// c10d's GLOO_SOCKET_IFNAME: the interfaces to listen on, the first of which is; empty: the one towards the master
  std::string interface;
  std::string source =
      "single process (no launcher's variables are set)";  ///< for people: what was found, and in which variables
};

/// Looks up an environment variable; null when it is not set.
using Environment = std::function<const char*(const char*)>;

namespace launchers {

constexpr std::int64_t kMaxRanks = 1'000'000;
constexpr std::int64_t kMaxRanksPerHost = 1024;
constexpr std::int64_t kMaxRestarts = 1'000'000;
constexpr std::int64_t kTorchrunPort = 29500;  ///< torchrun's and ms-swift's default

/// One launcher's variables: checks each against its range and notes which were read. An empty one counts as not set.
class Reader {
 public:
  Reader(const Environment& environment, std::string launcher, std::string remedy);

  bool has(const std::string& name) const;

  /// Throws when `name` is not set.
  std::string text(const std::string& name);

  /// Throws when `name` is not set or not a whole number in [low, high].
  std::int64_t number(const std::string& name, std::int64_t low, std::int64_t high);

  /// Throws when `name` is not set or is more than an address or a name. An IPv6 address may stand in brackets.
  std::string address(const std::string& name);

  /// As `number`; `otherwise` when `name` is not set.
  std::int64_t number_or(const std::string& name, std::int64_t low, std::int64_t high, std::int64_t otherwise);

  /// The first of two names that is set; the second, which is then missing, when none is.
  std::string either(const std::string& first, const std::string& second) const { return has(first) ? first : second; }

  /// `launch` with a `source` for people.
  Launch found(Launch launch) const;

 private:
  const Environment& environment_;
  std::string launcher_, remedy_, names_;
};

bool is_loopback(std::string_view address);

/// GLOO_SOCKET_IFNAME as Gloo takes it: names with commas between them. Throws on NCCL's own forms, "^docker0" and
/// "=eth0", and on a name that is empty.
std::string interfaces(const std::string& text);

/// A port from 15000 to 24999, the same on every rank of a job and below the range of ephemeral ports.
std::int64_t port_of_job(std::string_view job);

/// The first host of Slurm's "node[01-03,7],gpu5": "node01". Throws on unbalanced brackets.
std::string first_host(std::string_view list);

/// Entry `index` of Slurm's "2(x3),1", which is short for 2,2,2,1; nothing when there is none.
std::optional<std::int64_t> count_at(std::string_view counts, std::int64_t index);

}  // namespace launchers

}  // namespace sealift::train

#ifdef SEALIFT_TRAIN_BODIES
#include <sealift/train/launch/launch_variables_inl.hpp>
#endif
