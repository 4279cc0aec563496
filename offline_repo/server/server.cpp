// SPDX-License-Identifier: Apache-2.0
// Accepts connections and stops them, all on the acceptor's strand; what a connection does is in connection.cpp.
#include "offline_repo/server/server.hpp"

#include <algorithm>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <csignal>
#include <map>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "offline_repo/server/client_address.hpp"
#include "offline_repo/server/connection.hpp"

namespace sealift::offline_repo {

namespace {

namespace net = boost::asio;
using boost::beast::error_code;
using net::ip::tcp;

constexpr std::chrono::milliseconds kAcceptPause{100};  // after running out of descriptors
constexpr std::chrono::milliseconds kMakeRoom{20};      // until another connection is asked to make room

[[noreturn]] void throw_listen(const ListenAddress& address, const error_code& error) {
  throw bundle::Error(bundle::ErrorCode::Io, {.what = "this address cannot be listened on",
                                              .where = address.text(),
                                              .got = error.message(),
                                              .next = "choose another one with --listen ADDRESS:PORT"});
}

}  // namespace

struct Server::Impl {
  struct Admitted {
    std::weak_ptr<Connection> connection;
    std::pair<const std::string, std::size_t>* client;  // of `clients`
  };

  Impl(Catalogue catalogue, ServerOptions options)
      : state{.catalogue = std::move(catalogue), .options = std::move(options), .context = {}},
        acceptor(net::make_strand(state.context)),
        timer(acceptor.get_executor()),
        room_timer(acceptor.get_executor()),
        signals(acceptor.get_executor()) {
    const ListenAddress& wanted = state.options.listen;
    const tcp::endpoint endpoint(net::ip::make_address(wanted.host), wanted.port);
    error_code error;
    acceptor.open(endpoint.protocol(), error);
    if (!error) acceptor.set_option(net::socket_base::reuse_address(true), error);
    if (!error) acceptor.bind(endpoint, error);
    if (!error) acceptor.listen(net::socket_base::max_listen_connections, error);
    if (error) throw_listen(wanted, error);
  }

  void accept() {
    accepting = !state.stopping && !held;
    if (!accepting) return;
    acceptor.async_accept(net::make_strand(state.context), [this](error_code error, tcp::socket socket) {
      if (state.stopping) return;
      if (!error) find_room(std::move(socket));
      if (!error || error == net::error::connection_aborted) return accept();
      state.options.on_fault("a connection cannot be accepted: " + error.message());
      if (const std::shared_ptr<Connection> longest = longest_waiting("")) longest->end_if_idle();
      timer.expires_after(kAcceptPause);
      timer.async_wait([this](error_code) { accept(); });
    });
  }

  // Admits a new connection at once, or when one that waits for its client has made room, or when an answer has ended.
  // A client that has as many answers under way as it may is turned away.
  void find_room(tcp::socket socket) {
    error_code error;
    const tcp::endpoint peer = socket.remote_endpoint(error);
    if (error) return;
    const std::string client = client_of(peer.address());
    const auto place = clients.find(client);
    const bool too_many = place != clients.end() && place->second >= state.options.max_per_client;
    if (!too_many && connections.size() < state.options.max_connections) return admit(std::move(socket));
    const std::shared_ptr<Connection> longest = longest_waiting(too_many ? client : "");
    if (!longest && too_many && alive_of(client) >= state.options.max_per_client) return;
    if (longest) longest->end_if_idle();
    held.emplace(std::move(socket));
    room_timer.expires_after(kMakeRoom);  // the one that was asked may have begun an answer meanwhile
    room_timer.async_wait([this](error_code failed) {
      if (!failed) try_held();
    });
  }
  // Of the client with the most connections, or of `client`; nothing when none waits.
  std::shared_ptr<Connection> longest_waiting(const std::string& client) {
    std::shared_ptr<Connection> found;
    std::pair<std::size_t, std::chrono::steady_clock::duration> highest;
    for (const auto& [key, admitted] : connections) {
      if (!client.empty() && admitted.client->first != client) continue;
      const std::shared_ptr<Connection> one = admitted.connection.lock();
      const auto since = one ? one->waiting_since() : std::nullopt;
      if (!since) continue;
      const std::pair rank(admitted.client->second, -since->time_since_epoch());
      if (!found || rank > highest) found = one, highest = rank;
    }
    return found;
  }
  // Without those that have ended and are still counted.
  std::size_t alive_of(const std::string& client) const {
    return static_cast<std::size_t>(std::count_if(connections.begin(), connections.end(), [&](const auto& one) {
      return one.second.client->first == client && !one.second.connection.expired();
    }));
  }
  void try_held() {
    if (!held || state.stopping) return;
    tcp::socket socket = *std::exchange(held, std::nullopt);
    find_room(std::move(socket));
    if (!accepting) accept();
  }

  // The last owner of a connection releases it on some thread; the list of connections is kept on the acceptor's
  // strand. A number names it there, since the next connection may get its address before it is forgotten.
  void admit(tcp::socket socket) {
    const std::uint64_t number = next_number++;
    std::shared_ptr<Connection> owned(new Connection(state, std::move(socket)), [this, number](Connection* gone) {
      delete gone;
      net::post(acceptor.get_executor(), [this, number] { forget(number); });
    });
    const auto client = clients.try_emplace(owned->client(), 0).first;
    ++client->second;
    connections.emplace(number, Admitted{.connection = owned, .client = &*client});
    owned->start();
  }
  void forget(std::uint64_t number) {
    const auto place = connections.find(number);
    if (--place->second.client->second == 0) clients.erase(clients.find(place->second.client->first));
    connections.erase(place);
    if (state.stopping && connections.empty()) timer.cancel();
    try_held();
  }

  void begin_stop() {
    if (state.stopping.exchange(true)) return;
    error_code ignored;
    acceptor.close(ignored);
    signals.cancel(ignored);
    room_timer.cancel();
    held.reset();
    for (const auto& [key, admitted] : connections)
      if (const std::shared_ptr<Connection> connection = admitted.connection.lock()) connection->end_if_idle();
    if (connections.empty()) return;
    timer.expires_after(state.options.stop_timeout);
    timer.async_wait([this](error_code error) {
      if (error) return;
      for (const auto& [key, admitted] : connections)
        if (const std::shared_ptr<Connection> connection = admitted.connection.lock()) connection->end_now();
    });
  }

  ServerState state;
  tcp::acceptor acceptor;  // its strand guards what follows
  net::steady_timer timer, room_timer;
  net::signal_set signals;
  std::map<std::string, std::size_t> clients;  // how many connections each has
  std::map<std::uint64_t, Admitted> connections;
  std::uint64_t next_number = 0;
  std::optional<tcp::socket> held;  // accepted, and without a place yet; no other one is accepted meanwhile
  bool accepting = false;
};

Server::Server(Catalogue catalogue, ServerOptions options)
    : impl_(std::make_unique<Impl>(std::move(catalogue), std::move(options))) {}

Server::~Server() = default;

ListenAddress Server::address() const {
  const tcp::endpoint endpoint = impl_->acceptor.local_endpoint();
  return {.host = endpoint.address().to_string(), .port = endpoint.port()};
}

CacheCounts Server::cache() const {
  return impl_->state.cache.counts();
}

void Server::run() {
  Impl& impl = *impl_;
  std::signal(SIGPIPE, SIG_IGN);
  impl.signals.add(SIGTERM);
  impl.signals.add(SIGINT);
  impl.signals.async_wait([&impl](error_code error, int) {
    if (!error) impl.begin_stop();
  });
  net::dispatch(impl.acceptor.get_executor(), [&impl] { impl.accept(); });
  const auto work = [&state = impl.state] {
    for (;;) try {
        state.context.run();
        return;
      } catch (const std::exception& error) {  // out of memory: that request and its connection are lost
        state.options.on_fault(std::string("a request was given up: ") + error.what());
      }
  };
  std::vector<std::jthread> workers;
  for (unsigned i = 1; i < impl.state.options.threads; ++i) workers.emplace_back(work);
  work();
}

void Server::stop() {
  net::post(impl_->acceptor.get_executor(), [impl = impl_.get()] { impl->begin_stop(); });
}

}  // namespace sealift::offline_repo
