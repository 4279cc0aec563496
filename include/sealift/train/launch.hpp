// SPDX-License-Identifier: Apache-2.0
// From a process's environment to its place in the world: the variables that torchrun sets, or none for one process.
// Last in the flow of setting up, first in the run of a program: launch -> World -> make_groups -> parallelize.
// Needs no name resolution: the address to listen on is the one from which the master is reached.
#pragma once

#include <sealift/train/collectives.hpp>

#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <charconv>
#include <cstdlib>
#include <functional>

namespace sealift::train {

/// What a launcher told this process.
struct Launch {
  std::int64_t rank = 0;
  std::int64_t world_size = 1;
  std::int64_t local_rank = 0;
  std::int64_t local_world_size = 1;  ///< ranks on this host, which share its cores
  std::string master_addr;
  std::int64_t master_port = 0;
  bool agent_store = false;  ///< the launcher serves the store itself; otherwise rank 0 does
  std::string attempt = "0";
  std::string source = "single process (RANK is not set)";  ///< for people
};

/// Looks up an environment variable; null when it is not set.
using Environment = std::function<const char*(const char*)>;

/// Reads torchrun's variables; throws when they are incomplete or out of range.
inline Launch parse_launch(const Environment& environment = [](const char* name) { return std::getenv(name); }) {
  Launch launch;
  const auto number = [&](const char* name, std::int64_t low, std::int64_t high) {
    const char* text = environment(name);
    TORCH_CHECK(text, "RANK is set but ", name,
                " is not; set all of RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT, or none");
    const std::string_view value(text);
    std::int64_t result = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), result);
    TORCH_CHECK(error == std::errc{} && end == value.data() + value.size() && result >= low && result <= high, name,
                " is '", text, "'; expected a whole number from ", low, " to ", high);
    return result;
  };
  if (!environment("RANK")) {
    TORCH_CHECK(!environment("WORLD_SIZE"),
                "WORLD_SIZE is set but RANK is not; set all of torchrun's variables, or none");
    return launch;
  }
  constexpr std::int64_t kMaxRanks = 1'000'000;
  launch.world_size = number("WORLD_SIZE", 1, kMaxRanks);
  launch.rank = number("RANK", 0, launch.world_size - 1);
  launch.local_rank = environment("LOCAL_RANK") ? number("LOCAL_RANK", 0, launch.world_size - 1) : launch.rank;
  launch.local_world_size =
      environment("LOCAL_WORLD_SIZE") ? number("LOCAL_WORLD_SIZE", 1, launch.world_size) : launch.world_size;
  launch.master_port = number("MASTER_PORT", 1, 65535);
  const char* address = environment("MASTER_ADDR");
  TORCH_CHECK(address && *address, "RANK is set but MASTER_ADDR is not; set it to the address of rank 0's host");
  launch.master_addr = address;
  const char* agent = environment("TORCHELASTIC_USE_AGENT_STORE");
  launch.agent_store = agent && std::string_view(agent) == "True";
  if (const char* attempt = environment("TORCHELASTIC_RESTART_COUNT")) launch.attempt = attempt;
  launch.source = "rank " + std::to_string(launch.rank) + " of " + std::to_string(launch.world_size) + ", store at " +
                  launch.master_addr + ":" + std::to_string(launch.master_port) +
                  (launch.agent_store ? " served by the launcher" : "");
  return launch;
}

/// The numeric address of the interface from which `host` is reached; loopback for a loopback host. Sends nothing.
inline std::string local_address_towards(const std::string& host, std::int64_t port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  TORCH_CHECK(error == 0, "MASTER_ADDR is '", host, "', which does not resolve: ", gai_strerror(error),
              "; use a numeric address where there is no name service");
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> addresses(found, freeaddrinfo);
  for (const auto* address = found; address; address = address->ai_next) {
    const int socket = ::socket(address->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (socket < 0) continue;
    sockaddr_storage own{};
    socklen_t size = sizeof own;
    // Connecting a datagram socket only chooses a route.
    const bool routed = connect(socket, address->ai_addr, address->ai_addrlen) == 0 &&
                        getsockname(socket, reinterpret_cast<sockaddr*>(&own), &size) == 0;
    close(socket);
    char text[NI_MAXHOST];
    if (routed &&
        getnameinfo(reinterpret_cast<sockaddr*>(&own), size, text, sizeof text, nullptr, 0, NI_NUMERICHOST) == 0) {
      return text;
    }
  }
  TORCH_CHECK(false, "no route to MASTER_ADDR '", host, "'; check the network, or use 127.0.0.1 on one host");
}

/// Meets the other ranks at the store; a process on its own gets a world of one. Waits until all ranks came.
inline World connect(const Launch& launch, std::chrono::milliseconds timeout = std::chrono::minutes(5)) {
  World world{.rank = launch.rank, .size = launch.world_size, .timeout = timeout};
  if (launch.world_size == 1) return world;
  c10d::TCPStoreOptions options;
  options.port = static_cast<std::uint16_t>(launch.master_port);
  options.isServer = launch.rank == 0 && !launch.agent_store;
  // An agent's store was there before the ranks and does not count them.
  if (!launch.agent_store) options.numWorkers = static_cast<std::size_t>(launch.world_size);
  options.waitWorkers = !launch.agent_store;
  options.timeout = timeout;
  auto store = c10::make_intrusive<c10d::TCPStore>(launch.master_addr, options);
  world.store = c10::make_intrusive<c10d::PrefixStore>("sealift/attempt_" + launch.attempt, std::move(store));
  world.address = local_address_towards(launch.master_addr, launch.master_port);
  return world;
}

}  // namespace sealift::train
