// SPDX-License-Identifier: Apache-2.0
// The bodies of rendezvous.hpp, which declares them and says what they promise.
#pragma once

#include <sealift/train/launch/rendezvous.hpp>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <random>

namespace sealift::train {

namespace rendezvous {

SEALIFT_BODY std::string cause(const c10::Error& error) {
  const std::string text = error.what_without_backtrace();
  return text.substr(0, text.find('\n'));
}

SEALIFT_BODY std::string missing_ranks(c10d::Store& store, std::int64_t world_size) {
  std::string names;
  std::int64_t missing = 0;
  for (std::int64_t rank = 0; rank < world_size; ++rank) {
    if (store.check({c10::str("rank/", rank)})) continue;
    if (++missing <= 8) names += (missing > 1 ? ", " : "") + std::to_string(rank);
  }
  return c10::str("rank", missing == 1 ? " " : "s ", names, missing > 8 ? c10::str(" and ", missing - 8, " more") : "",
                  " of ", world_size);
}

SEALIFT_BODY std::string judge(c10d::Store& store, const std::string& verdict) {
  return store.compareSet(kVerdict, std::string(), verdict);
}

SEALIFT_BODY std::string enter(c10d::Store& store, const Launch& launch, const Offer& offer) {
  const auto size = std::to_string(launch.world_size);
  const auto agreed = store.compareSet("world_size", std::string(),
                                       size + " on rank " + std::to_string(launch.rank) + ", " + own_name());
  if (agreed.substr(0, agreed.find(' ')) != size) {
    return c10::str("WORLD_SIZE is ", size, " on rank ", launch.rank, ", ", own_name(), ", but ", agreed,
                    "; give every rank the same");
  }
  // Two ranks of a test are one process, so the name alone does not tell them apart.
  const auto self = c10::str(own_name(), '#', std::random_device{}());
  const auto holder = store.compareSet(c10::str("rank/", launch.rank), std::string(), self);
  if (holder != self && launch.agent_store && has_ended(holder) && store.check({kVerdict}) &&
      store.get_to_str(kVerdict) == kGood)
    return kNext;
  if (holder == self) {
    offer_processors(store, offer);
    return offer_address(store, launch, offer);
  }
  return c10::str("rank ", launch.rank, " came twice: ", holder.substr(0, holder.find('#')), " and now ", own_name(),
                  "; give every process its own RANK, and start all ranks again where one was restarted");
}

SEALIFT_BODY std::string meet(c10d::Store& store, const Launch& launch, const Offer& offer, Clock::time_point deadline,
                              Milliseconds timeout, bool serves) {
  auto verdict = enter(store, launch, offer);
  if (verdict == kNext) return verdict;
  if (!verdict.empty()) {
    judge(store, verdict);
    // Ranks that wait get the verdict; a meeting that was good stays good.
    TORCH_CHECK(false, verdict);
  }
  if (store.add("arrived", 1) == launch.world_size) {
    const auto problem = unreached(store);
    judge(store, problem.empty() ? kGood : problem);
  }
  try {
    store.wait({kVerdict}, left_until(deadline));
  } catch (const c10::DistStoreError&) {
    judge(store, missing_ranks(store, launch.world_size) + " did not come within " + seconds(timeout) +
                     "; see why it did not start, or raise the time-out if it is only slow");
  }
  verdict = store.get_to_str(kVerdict);
  if (verdict == kGood) return {};
  if (verdict.starts_with(kLater)) return verdict.substr(std::strlen(kLater));
  if (!serves) {
    store.add("told", 1);
  } else {
    const auto patience = Clock::now() + std::chrono::seconds(1);
    while (store.add("told", 0) + 1 < store.add("arrived", 0) && Clock::now() < patience) {
      std::this_thread::sleep_for(Milliseconds(10));
    }
  }
  TORCH_CHECK(false, verdict);
}

SEALIFT_BODY bool has_ended(const std::string& holder) {
  constexpr std::string_view kProcess = " process ";
  const auto own = own_name();
  const auto name = own.substr(0, own.rfind(kProcess) + kProcess.size());
  if (!holder.starts_with(name)) return false;
  const auto number = std::atoi(holder.c_str() + name.size());
  return number > 0 && ::kill(number, 0) != 0 && errno == ESRCH;
}

SEALIFT_BODY std::string latest_attempt(const c10::intrusive_ptr<c10d::Store>& store, const std::string& attempt) {
  const auto later = [](const std::string& one, const std::string& other) {
    return one.size() != other.size() ? one.size() > other.size() : one > other;
  };
  auto latest = store->compareSet("sealift/attempt", std::string(), attempt);
  while (later(attempt, latest)) {
    const auto now = store->compareSet("sealift/attempt", latest, attempt);
    if (now == attempt) {
      c10d::PrefixStore earlier("sealift/attempt_" + latest + "/meeting", store);
      judge(earlier, kLater + attempt);
    }
    latest = now;
  }
  return latest;
}

SEALIFT_BODY void wait_for_store(const std::string& host, std::int64_t port, Clock::time_point deadline,
                                 Milliseconds timeout) {
  const auto addresses = resolve(host, port, left_until(deadline));
  for (;;) {
    for (const auto* address = addresses.get(); address; address = address->ai_next) {
      if (answers(*address, std::min(left_until(deadline), Milliseconds(2000)))) return;
    }
    TORCH_CHECK(Clock::now() < deadline, "no store answers at ", host, ":", port, " within ", seconds(timeout),
                "; check that rank 0 runs, that MASTER_ADDR is its host's address, and that no firewall closes ",
                "MASTER_PORT");
    std::this_thread::sleep_for(std::min(left_until(deadline), Milliseconds(100)));
  }
}

SEALIFT_BODY int listen_on_loopback(const std::string& address, std::int64_t port) {
  sockaddr_in6 six{};
  six.sin6_family = AF_INET6;
  six.sin6_addr = in6addr_loopback;
  six.sin6_port = htons(static_cast<std::uint16_t>(port));
  sockaddr_in four{};
  four.sin_family = AF_INET;
  four.sin_port = six.sin6_port;
  if (inet_pton(AF_INET, address.c_str(), &four.sin_addr) != 1) four.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const bool is_six = address == "::1";
  const auto* own = is_six ? reinterpret_cast<const sockaddr*>(&six) : reinterpret_cast<const sockaddr*>(&four);
  const int socket = ::socket(own->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0), yes = 1;
  if (socket >= 0) setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);  // as c10d: a job may follow a job
  if (socket >= 0 && bind(socket, own, is_six ? sizeof six : sizeof four) == 0 && listen(socket, SOMAXCONN) == 0)
    return socket;
  const int error = errno;
  if (socket >= 0) close(socket);
  TORCH_CHECK(error != EADDRINUSE, "port ", port, " is taken on this host, so the store cannot be served there; end ",
              "what holds it (another job, or an earlier run?), or give all ranks another MASTER_PORT");
  TORCH_CHECK(false, "no store can be served at ", address, ":", port, ": ", std::strerror(error),
              "; is the loopback up (ip link set lo up)?");
}

SEALIFT_BODY c10::intrusive_ptr<c10d::TCPStore> open_store(const std::string& host, std::int64_t port, bool serves,
                                                           const std::string& others_come_to, Milliseconds timeout) {
  c10d::TCPStoreOptions options;
  options.port = static_cast<std::uint16_t>(port);
  options.isServer = serves;
  if (serves && launchers::is_loopback(others_come_to)) {
    const int socket = listen_on_loopback(others_come_to, port);
    sockaddr_storage own{};
    socklen_t size = sizeof own;
    getsockname(socket, reinterpret_cast<sockaddr*>(&own), &size);
    options.masterListenFd = socket;  // closed with the store
    options.port = ntohs(own.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(own).sin6_port
                                                   : reinterpret_cast<sockaddr_in&>(own).sin_port);
  }
  options.waitWorkers = false;  // `meet` counts them, and can name who is missing
  options.timeout = timeout;
  try {
    return c10::make_intrusive<c10d::TCPStore>(host, options);
  } catch (const c10::Error& error) {
    const auto text = cause(error);
    TORCH_CHECK(!serves || text.find("EADDRINUSE") == std::string::npos, "port ", port, " is taken on this host, so ",
                "the store cannot be served there; end what holds it (another job, or an earlier run?), or give all ",
                "ranks another MASTER_PORT: ", text);
    TORCH_CHECK(false, "no store can be reached at ", host, ":", port, "; check that MASTER_ADDR is the address of ",
                "rank 0's host, and that nothing else listens on MASTER_PORT: ", text);
  }
}

SEALIFT_BODY Patience::Patience(std::function<void(const std::string&)> say) {
  if (!say) return;
  thread_ = std::thread([this, say = std::move(say)] {
    std::unique_lock lock(mutex_);
    if (!over_.wait_for(lock, kSilent, [this] { return ended_; })) say("waiting for " + what_);
  });
}

SEALIFT_BODY Patience::~Patience() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  over_.notify_all();
  if (thread_.joinable()) thread_.join();
}

SEALIFT_BODY void Patience::waits_for(const std::string& what) {
  const std::lock_guard lock(mutex_);
  what_ = what;
}

}  // namespace rendezvous

SEALIFT_BODY c10::intrusive_ptr<c10d::TCPStore> serve_store(std::int64_t port, const std::string& address) {
  return rendezvous::open_store(launchers::is_loopback(address) ? address : "127.0.0.1", port, true, address,
                                std::chrono::seconds(10));
}

SEALIFT_BODY World connect(const Launch& launch, std::chrono::milliseconds timeout,
                           std::function<void(const std::string&)> waiting) {
  TORCH_CHECK(!launch.is_node, "this process is to start ", launch.local_world_size, " ranks, not to be one of them (",
              launch.source, "); start them with `sealift-train run` or torchrun");
  World world{.rank = launch.rank, .size = launch.world_size, .timeout = timeout};
  rendezvous::Offer offer{.address = world.address,
                          .interface = launch.interface,
                          .network = host::network(),
                          .machine = host::machine(),
                          .processors = host::allowed_processors()};
  if (launch.world_size == 1) {
    world.processors = host::share_of_processors(offer.processors, {}, 1, host::quota());
    return world;
  }
  const auto deadline = rendezvous::Clock::now() + timeout;
  const auto most = " (for at most " + rendezvous::seconds(timeout) + ")";
  rendezvous::Patience patience(std::move(waiting));
  patience.waits_for(launch.master_addr + ", which is MASTER_ADDR, to have an address here" + most +
                     "; is the name right?");
  const auto towards = local_address_towards(launch.master_addr, launch.master_port, timeout);
  offer.address = launch.interface.empty() ? towards : address_of_interfaces(launchers::interfaces(launch.interface));
  const bool serves = launch.rank == 0 && !launch.agent_store;
  patience.waits_for(c10::str("rank 0 to answer at ", launch.master_addr, ":", launch.master_port, most));
  if (!serves) rendezvous::wait_for_store(launch.master_addr, launch.master_port, deadline, timeout);
  const c10::intrusive_ptr<c10d::Store> store = rendezvous::open_store(
      launch.master_addr, launch.master_port, serves, launch.master_addr, rendezvous::left_until(deadline));
  store->setTimeout(timeout);
  patience.waits_for(c10::str("the other ranks of ", launch.world_size, most));
  try {
    auto attempt = rendezvous::latest_attempt(store, launch.attempt);
    for (std::string later; !attempt.empty(); attempt = later) {
      world.store = c10::make_intrusive<c10d::PrefixStore>("sealift/attempt_" + attempt, store);
      c10d::PrefixStore meeting("meeting", world.store);
      later = rendezvous::meet(meeting, launch, offer, deadline, timeout, serves);
      if (later == rendezvous::kNext) {
        later = rendezvous::latest_attempt(store, std::to_string(std::atoll(attempt.c_str()) + 1));
      }
      if (!later.empty()) continue;
      world.address = rendezvous::reached_address(meeting, offer, launch.master_port);
      world.processors = rendezvous::share_of_processors(meeting, launch, offer);
    }
  } catch (const c10::DistNetworkError& error) {
    TORCH_CHECK(false, "the store at ", launch.master_addr, ":", launch.master_port, " went away while rank ",
                launch.rank, " waited for the others: rank 0 or the launcher has ended, and its message says why: ",
                rendezvous::cause(error));
  }
  return world;
}

}  // namespace sealift::train
