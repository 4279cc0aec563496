// SPDX-License-Identifier: Apache-2.0
// Accepts connections and stops them, all on the acceptor's strand; what a connection does is in connection.cpp.
#include "offline_repo/server/server.hpp"

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
    std::map<std::string, std::size_t> counts;
    for (const auto& [key, weak] : connections)
      if (const std::shared_ptr<Connection> connection = weak.lock()) ++counts[connection->client()];
    const bool too_many = counts[client] >= state.options.max_per_client;
    if (!too_many && connections.size() < state.options.max_connections) return admit(std::move(socket));
    const std::shared_ptr<Connection> longest = longest_waiting(counts, too_many ? client : "");
    if (!longest && too_many) return;
    if (longest) longest->end_if_idle();
    held.emplace(std::move(socket));
    room_timer.expires_after(kMakeRoom);  // the one that was asked may have begun an answer meanwhile
    room_timer.async_wait([this](error_code failed) {
      if (!failed) try_held();
    });
  }
  // Of the client with the most connections, or of `client`; nothing when none waits.
  std::shared_ptr<Connection> longest_waiting(const std::map<std::string, std::size_t>& counts,
                                              const std::string& client) {
    std::shared_ptr<Connection> found;
    for (const auto& [key, weak] : connections) {
      const std::shared_ptr<Connection> one = weak.lock();
      if (!one || !one->waiting_since() || (!client.empty() && one->client() != client)) continue;
      const auto rank = [&](const Connection& other) {
        return std::pair(counts.at(other.client()),
                         -other.waiting_since().value_or(std::chrono::steady_clock::now()).time_since_epoch());
      };
      if (!found || rank(*one) > rank(*found)) found = one;
    }
    return found;
  }
  void try_held() {
    if (!held || state.stopping) return;
    tcp::socket socket = *std::exchange(held, std::nullopt);
    find_room(std::move(socket));
    if (!accepting) accept();
  }

  // The last owner of a connection releases it on some thread; the list of connections is kept on the acceptor's
  // strand.
  void admit(tcp::socket socket) {
    auto* connection = new Connection(state, std::move(socket));
    std::shared_ptr<Connection> owned(connection, [this](Connection* gone) {
      delete gone;
      net::post(acceptor.get_executor(), [this, gone] { forget(gone); });
    });
    connections.emplace(connection, owned);
    owned->start();
  }
  void forget(Connection* gone) {
    connections.erase(gone);
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
    for (const auto& [key, weak] : connections)
      if (const std::shared_ptr<Connection> connection = weak.lock()) connection->end_if_idle();
    if (connections.empty()) return;
    timer.expires_after(state.options.stop_timeout);
    timer.async_wait([this](error_code error) {
      if (error) return;
      for (const auto& [key, weak] : connections)
        if (const std::shared_ptr<Connection> connection = weak.lock()) connection->end_now();
    });
  }

  ServerState state;
  tcp::acceptor acceptor;  // its strand guards what follows
  net::steady_timer timer, room_timer;
  net::signal_set signals;
  std::map<Connection*, std::weak_ptr<Connection>> connections;
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

void Server::run() {
  Impl& impl = *impl_;
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
