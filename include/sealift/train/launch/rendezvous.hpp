// SPDX-License-Identifier: Apache-2.0
// From a place in the world to a store at which all ranks have met: one store, every rank once, one world size.
// After `launch`, before `make_groups`. A failure is told to all ranks, so that none waits for its time-out.
// One time-out bounds everything, so that a job that cannot start says so and frees its hosts.
#pragma once

#include <sealift/train/bodies.hpp>
#include <sealift/train/comm/groups.hpp>
#include <sealift/train/launch/address.hpp>
#include <sealift/train/launch/host_offer.hpp>
#include <sealift/train/launch/launch.hpp>

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace sealift::train {

namespace rendezvous {

/// The first line of c10d's message; the rest is addresses and stack frames.
std::string cause(const c10::Error& error);

inline constexpr const char* kVerdict = "verdict";
inline constexpr const char* kGood = "all ranks came";
inline constexpr const char* kLater = "later attempt ";  ///< and its number, where ranks have come to a later one
inline constexpr const char* kNext = "next";             ///< the attempt after this one, whose ranks are gone

/// The ranks that have not entered, for people; at most eight by number.
std::string missing_ranks(c10d::Store& store, std::int64_t world_size);

/// Gives `verdict` on this meeting unless there is one; returns the present one.
std::string judge(c10d::Store& store, const std::string& verdict);

/// Enters this rank's world size, name and offer. Returns an empty text, or the problem, which becomes all ranks'
/// verdict.
std::string enter(c10d::Store& store, const Launch& launch, const Offer& offer);

/// Whether `holder`, an own_name with a number behind it, was a process of this host that has ended.
bool has_ended(const std::string& holder);

/// Returns an empty text when every rank of the world has entered, each once; otherwise throws the same message on all
/// that wait. Returns the attempt at which the others meet where that is a later one, and kNext where this attempt's
/// ranks had met and the process with this rank has ended: a restart that the launcher did not count. `serves`: the
/// store ends with this rank, so after a bad verdict it waits until the others have read it.
std::string meet(c10d::Store& store, const Launch& launch, const Offer& offer, Clock::time_point deadline,
                 Milliseconds timeout, bool serves);

/// The latest attempt that any rank has come with, this rank's `attempt` counted; who waits at an earlier one is told.
/// torchrun counts the restarts of each host by itself, so hosts may differ.
std::string latest_attempt(const c10::intrusive_ptr<c10d::Store>& store, const std::string& attempt);

/// Returns when something listens at the store's address. c10d would wait too, but for up to twice its time-out.
void wait_for_store(const std::string& host, std::int64_t port, Clock::time_point deadline, Milliseconds timeout);

/// A socket that listens at a loopback address alone, at `port` or any free one; throws where that is taken.
int listen_on_loopback(const std::string& address, std::int64_t port);

/// Connects to the store at `host`, or serves it from this process: on the loopback alone where `others_come_to` is an
/// address of it, since every client of a store reads and writes all of its keys; else on every address.
c10::intrusive_ptr<c10d::TCPStore> open_store(const std::string& host, std::int64_t port, bool serves,
                                              const std::string& others_come_to, Milliseconds timeout);

/// Says what a rank waits for, once, when it has waited for `kSilent`: a resolver may not return before a person gives
/// up, so a thread of its own looks at the clock.
class Patience {
 public:
  static constexpr Milliseconds kSilent{3000};

  /// `say` is called on another thread; null: nothing is said.
  explicit Patience(std::function<void(const std::string&)> say);
  ~Patience();
  Patience(const Patience&) = delete;
  Patience& operator=(const Patience&) = delete;

  /// What is waited for from now on.
  void waits_for(const std::string& what);

 private:
  std::mutex mutex_;
  std::condition_variable over_;
  bool ended_ = false;
  std::string what_;
  std::thread thread_;
};

}  // namespace rendezvous

/// Serves a store from this process, for a launcher of ranks; port 0 means any free one. Throws when the port is taken.
/// It listens on the loopback alone unless ranks come to another `address`.
c10::intrusive_ptr<c10d::TCPStore> serve_store(std::int64_t port, const std::string& address = "127.0.0.1");

/// Meets the other ranks at the store; a process alone gets a world of one. Waits for every rank; throws when one does
/// not come within `timeout`, comes twice or has another world size, and when there is no store. `waiting` is told what
/// is waited for once that lasts longer than a few seconds: a name that does not resolve yet, a store, the other ranks.
World connect(const Launch& launch, std::chrono::milliseconds timeout = std::chrono::minutes(5),
              std::function<void(const std::string&)> waiting = {});

}  // namespace sealift::train

#ifdef SEALIFT_TRAIN_BODIES
#include <sealift/train/launch/rendezvous_inl.hpp>
#endif
