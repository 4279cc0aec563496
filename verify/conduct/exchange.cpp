// SPDX-License-Identifier: Apache-2.0
// Each round has a number, so that a key is written once; rank 0 removes what it has read.
// See exchange.hpp.
// Ranks ask again every two seconds, since a wait in the store cannot say which key is missing.
#include "verify/conduct/exchange.hpp"

#include "verify/conduct/ending_signals.hpp"
#include "verify/conduct/utc_now.hpp"

#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <exception>
#include <map>
#include <thread>

namespace sealift::verify {
namespace {

using Clock = std::chrono::steady_clock;

std::string key_of_life(std::int64_t rank) {
  return "sealift_verify/alive/" + std::to_string(rank);
}

std::string key_of_farewell(std::int64_t rank) {
  return "sealift_verify/told/" + std::to_string(rank);
}

/// The signal that told this rank to end.
volatile sig_atomic_t told = 0;

void note_told(int signal) {
  told = signal;
}

/// Says every second that this rank is there, over a connection of its own; and that it ends, if a signal tells it to.
/// So rank 0, told too, tells a rank that had ended before from ranks that end with it.
class Heartbeat {
 public:
  Heartbeat(const train::World& world, Lost lost, std::function<void()> last)
      : store_(world.store->clone()),
        rank_(world.rank),
        size_(world.size),
        lost_(std::move(lost)),
        last_(std::move(last)) {
    for (std::size_t i = 0; i < before_.size(); ++i) before_[i] = action_of(kEndingSignals[i]);
    handle_endings(note_told);
    thread_ = std::thread([this] { run(); });
  }
  ~Heartbeat() {
    stop_ = true;
    thread_.join();
    // Rank 0 may be told to end while it judges what this rank has sent. A rank that fails is no such one.
    if (std::uncaught_exceptions() == 0) say_farewell();
    for (std::size_t i = 0; i < before_.size(); ++i) sigaction(kEndingSignals[i], &before_[i], nullptr);
    if (told != 0) raise(told);
  }
  Heartbeat(const Heartbeat&) = delete;
  Heartbeat& operator=(const Heartbeat&) = delete;

 private:
  static constexpr auto kLook = std::chrono::milliseconds(100);
  static constexpr int kLooksPerBeat = 10;
  static constexpr auto kLastWords = std::chrono::seconds(4);  // several beats: a busy rank may come late

  void run() {
    for (std::int64_t look = 0; !stop_; ++look) {
      if (told != 0) end();
      try {
        if (look % kLooksPerBeat == 0) store_->set(key_of_life(rank_), std::to_string(look));
      } catch (const std::exception&) {
        // The store is gone: a rank that waits for it says so.
      }
      std::this_thread::sleep_for(kLook);
    }
  }

  void say_farewell() {
    try {
      if (rank_ != 0) store_->set(key_of_farewell(rank_), "1");
    } catch (const std::exception&) {
      // The store is gone, and with it who would ask.
    }
  }

  [[noreturn]] void end() {
    say_farewell();
    try {
      const auto lost = rank_ == 0 ? without_farewell() : std::vector<std::int64_t>();
      if (lost_ && !lost.empty()) lost_(lost, told);
    } catch (const std::exception&) {
      // Then the report says no more than that the run was told to end.
    }
    if (last_) last_();
    const int signal = told;
    ::signal(signal, SIG_DFL);
    raise(signal);
    _exit(128 + signal);  // of a container's first process, which no such signal ends
  }

  std::string beat_of(std::int64_t rank) {
    const auto key = key_of_life(rank);
    return store_->check({key}) ? store_->get_to_str(key) : std::string();
  }

  /// Ranks that neither say that they were told nor go on.
  std::vector<std::int64_t> without_farewell() {
    std::vector<std::int64_t> lost;
    std::map<std::int64_t, std::string> beats;
    for (std::int64_t rank = 1; rank < size_; ++rank) {
      lost.push_back(rank);
      beats[rank] = beat_of(rank);
    }
    const auto end = Clock::now() + kLastWords;
    while (!lost.empty() && Clock::now() < end) {
      std::erase_if(lost, [&](std::int64_t rank) {
        return store_->check({key_of_farewell(rank)}) || beat_of(rank) != beats[rank];
      });
      std::this_thread::sleep_for(kLook);
    }
    return lost;
  }

  train::Store store_;
  std::int64_t rank_, size_;
  Lost lost_;
  std::function<void()> last_;
  std::array<struct sigaction, kEndingSignals.size()> before_{};
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

class StoreExchange {
 public:
  StoreExchange(const train::World& world, std::chrono::seconds patience, Lost lost, std::function<void()> last)
      : world_(world), patience_(patience), heartbeat_(world, std::move(lost), std::move(last)) {}

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

Exchange over_store(const train::World& world, std::chrono::seconds patience, Lost lost, std::function<void()> last) {
  const auto state = std::make_shared<StoreExchange>(world, patience, std::move(lost), std::move(last));
  return {.gather = [state](const std::string& mine) { return state->gather(mine); },
          .broadcast = [state](const std::string& text) { return state->broadcast(text); },
          .free_port = free_port};
}

}  // namespace sealift::verify
