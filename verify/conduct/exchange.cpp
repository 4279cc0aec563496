// SPDX-License-Identifier: Apache-2.0
// Each round has a number, so that a key is written once; rank 0 removes what it has read.
// See exchange.hpp.
// Ranks ask again every two seconds, since a wait in the store cannot say which key is missing.
#include "verify/conduct/exchange.hpp"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <thread>

namespace sealift::verify {
namespace {

using Clock = std::chrono::steady_clock;

class StoreExchange {
 public:
  StoreExchange(const train::World& world, std::chrono::seconds patience) : world_(world), patience_(patience) {}

  std::vector<std::string> gather(const std::string& mine) {
    const auto round = "sealift_verify/gather/" + std::to_string(gathers_++) + "/";
    if (world_.rank != 0) {
      world_.store->set(round + std::to_string(world_.rank), mine);
      return {};
    }
    std::vector<std::string> all{mine};
    const auto end = Clock::now() + patience_;
    for (std::int64_t rank = 1; rank < world_.size; ++rank) {
      const auto key = round + std::to_string(rank);
      wait_for(key, end, "rank " + std::to_string(rank));
      all.push_back(world_.store->get_to_str(key));
      world_.store->deleteKey(key);
    }
    return all;
  }

  std::string broadcast(const std::string& from_first) {
    const auto key = "sealift_verify/say/" + std::to_string(says_++);
    if (world_.rank == 0) {
      world_.store->set(key, from_first);
      return from_first;
    }
    wait_for(key, Clock::now() + patience_, "rank 0");
    return world_.store->get_to_str(key);
  }

 private:
  void wait_for(const std::string& key, Clock::time_point end, const std::string& who) {
    auto pause = std::chrono::milliseconds(5);
    while (!world_.store->check({key})) {
      TORCH_CHECK(Clock::now() < end, who, " did not come back from the last check within ", patience_.count(),
                  " s; look at its log, and run again: what was recorded is not repeated");
      std::this_thread::sleep_for(pause);
      pause = std::min(pause * 2, std::chrono::milliseconds(500));
    }
  }

  train::World world_;
  std::chrono::seconds patience_;
  std::int64_t gathers_ = 0, says_ = 0;
};

/// A port that nothing listens on now.
std::int64_t free_port() {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  socklen_t size = sizeof address;
  const bool found = socket >= 0 && bind(socket, reinterpret_cast<sockaddr*>(&address), size) == 0 &&
                     getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size) == 0;
  if (socket >= 0) close(socket);
  TORCH_CHECK(found, "no TCP port can be had for a child job: ", std::strerror(errno));
  return ntohs(address.sin_port);
}

}  // namespace

Exchange over_store(const train::World& world, std::chrono::seconds patience) {
  const auto state = std::make_shared<StoreExchange>(world, patience);
  return {.gather = [state](const std::string& mine) { return state->gather(mine); },
          .broadcast = [state](const std::string& text) { return state->broadcast(text); },
          .free_port = free_port};
}

}  // namespace sealift::verify
