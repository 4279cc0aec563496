// SPDX-License-Identifier: Apache-2.0
// Each round has a number, so that a key is written once; rank 0 removes what it has read.
// See exchange.hpp.
// Ranks ask again every two seconds, since a wait in the store cannot say which key is missing.
#include "verify/conduct/exchange.hpp"

#include "verify/conduct/utc_now.hpp"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>

namespace sealift::verify {
namespace {

using Clock = std::chrono::steady_clock;

std::string key_of_life(std::int64_t rank) {
  return "sealift_verify/alive/" + std::to_string(rank);
}

/// Says every second that this rank is there, over a connection of its own.
class Heartbeat {
 public:
  explicit Heartbeat(const train::World& world) : store_(world.store->clone()), key_(key_of_life(world.rank)) {
    thread_ = std::thread([this] { run(); });
  }
  ~Heartbeat() {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  Heartbeat(const Heartbeat&) = delete;
  Heartbeat& operator=(const Heartbeat&) = delete;

 private:
  void run() {
    std::unique_lock lock(mutex_);
    for (std::int64_t beat = 1; !stop_; ++beat) {
      try {
        store_->set(key_, std::to_string(beat));
      } catch (const std::exception&) {
        return;  // the store is gone: whoever waits for it says so
      }
      changed_.wait_for(lock, std::chrono::seconds(1), [&] { return stop_; });
    }
  }

  train::Store store_;
  std::string key_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stop_ = false;
  std::thread thread_;
};

class StoreExchange {
 public:
  StoreExchange(const train::World& world, std::chrono::seconds patience)
      : world_(world), patience_(patience), heartbeat_(world) {}

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
      wait_for(key, end, rank);
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
    wait_for(key, Clock::now() + patience_, 0);
    return world_.store->get_to_str(key);
  }

 private:
  struct Heard {
    std::string beat;
    Clock::time_point at = Clock::now();
    std::string when = utc_now();
  };

  /// Throws once nothing was heard of `rank` for too long, counted from when this rank began to listen.
  void require_life(std::int64_t rank, Heard& heard) {
    const auto key = key_of_life(rank);
    const auto beat = world_.store->check({key}) ? world_.store->get_to_str(key) : std::string();
    if (beat != heard.beat) heard = {.beat = beat};
    const auto silent = std::chrono::duration_cast<std::chrono::seconds>(Clock::now() - heard.at);
    if (silent < std::min(patience_, kMostSilence)) return;
    throw RankSilent(rank, heard.when,
                     "rank " + std::to_string(rank) + " is silent since " + heard.when + ", for " +
                         std::to_string(silent.count()) + " s: it has ended, was stopped, or its host is lost; look " +
                         "at its log, and run again: what was recorded is not repeated");
  }

  void wait_for(const std::string& key, Clock::time_point end, std::int64_t rank) {
    auto pause = std::chrono::milliseconds(5);
    Heard heard;
    while (!world_.store->check({key})) {
      require_life(rank, heard);
      TORCH_CHECK(Clock::now() < end, "rank ", rank, " did not come back from the last check within ",
                  patience_.count(), " s; look at its log, and run again: what was recorded is not repeated");
      std::this_thread::sleep_for(pause);
      pause = std::min(pause * 2, std::chrono::milliseconds(500));
    }
  }

  static constexpr auto kMostSilence = std::chrono::seconds(60);

  train::World world_;
  std::chrono::seconds patience_;
  Heartbeat heartbeat_;
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
