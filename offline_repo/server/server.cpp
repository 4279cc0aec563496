// SPDX-License-Identifier: Apache-2.0
// Accepts connections and stops them, all on the acceptor's strand; what a connection does is in connection.hpp.
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
#include "offline_repo/server/connection_table.hpp"
#include "offline_repo/server/shown_site.hpp"
#include "sealift/bundle/core/time.hpp"

namespace sealift::offline_repo {

namespace {

namespace net = boost::asio;
using boost::beast::error_code;
using net::ip::tcp;

constexpr std::chrono::milliseconds kAcceptPause{100};  // after running out of descriptors
constexpr std::size_t kMaxAdmins = 16;
constexpr std::size_t kMaxTurnedAway = 64;          // who wait for their 503; more are ended without a byte
constexpr std::chrono::milliseconds kMakeRoom{20};  // until another connection is asked to make room

[[noreturn]] void throw_listen(const ListenAddress& address, const error_code& error) {
  throw bundle::Error(bundle::ErrorCode::Io, {.what = "this address cannot be listened on",
                                              .where = address.text(),
                                              .got = error.message(),
                                              .next = "choose another one with --listen ADDRESS:PORT"});
}

void listen_at(const ListenAddress& wanted, tcp::acceptor& acceptor) {
  const tcp::endpoint endpoint(net::ip::make_address(wanted.host), wanted.port);
  error_code error;
  acceptor.open(endpoint.protocol(), error);
  if (!error) acceptor.set_option(net::socket_base::reuse_address(true), error);
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(net::socket_base::max_listen_connections, error);
  if (error) throw_listen(wanted, error);
}

ListenAddress address_of(const tcp::acceptor& acceptor) {
  const tcp::endpoint endpoint = acceptor.local_endpoint();
  return {.host = endpoint.address().to_string(), .port = endpoint.port()};
}

}  // namespace

struct Server::Impl {
  using Apart = std::map<std::uint64_t, std::weak_ptr<Connection>>;

  Impl(Held bundles, ServerOptions options)
      : state{.options = std::move(options), .context = {}},
        acceptor(net::make_strand(state.context)),
        timer(acceptor.get_executor()),
        room_timer(acceptor.get_executor()),
        signals(acceptor.get_executor()),
        hangups(acceptor.get_executor()),
        admin_acceptor(acceptor.get_executor()),
        shown(state, std::move(bundles)) {
    listen_at(state.options.listen, acceptor);
    if (state.options.admin_listen) listen_at(*state.options.admin_listen, admin_acceptor);
  }

  // Operators get in when everybody else's places are taken, a few at a time.
  void accept_admin() {
    if (!admin_acceptor.is_open() || state.stopping) return;
    admin_acceptor.async_accept(net::make_strand(state.context), [this](error_code error, tcp::socket socket) {
      if (state.stopping) return;
      if (!error && admins.size() < kMaxAdmins) admit_apart(admins, std::move(socket), Admission::Admin);
      if (!error || error == net::error::connection_aborted) return accept_admin();
      admin_timer.expires_after(kAcceptPause);
      admin_timer.async_wait([this](error_code) { accept_admin(); });
    });
  }
  // A connection that takes none of the places.
  void admit_apart(Apart& apart, tcp::socket socket, Admission admission) {
    const std::uint64_t number = next_number++;
    std::shared_ptr<Connection> owned(new Connection(state, std::move(socket), admission),
                                      [this, number, &apart](Connection* gone) {
                                        delete gone;
                                        net::post(acceptor.get_executor(), [number, &apart] { apart.erase(number); });
                                      });
    apart.emplace(number, owned);
    owned->start();
  }
  static void end(const Apart& apart) {
    for (const auto& [number, one] : apart)
      if (const std::shared_ptr<Connection> connection = one.lock()) connection->end_now();
  }

  void await_hangup() {
    hangups.async_wait([this](error_code error, int) {
      if (error) return;
      if (state.options.audit && !state.options.audit->reopen())
        state.options.on_fault("the audit log cannot be opened again; the file that was open is written on");
      shown.reload();
      state.metrics.forget_failures();
      if (state.options.on_hangup) state.options.on_hangup();
      await_hangup();
    });
  }

  void accept() {
    accepting = !state.stopping && !held;
    if (!accepting) return;
    acceptor.async_accept(net::make_strand(state.context), [this](error_code error, tcp::socket socket) {
      if (state.stopping) return;
      if (!error) find_room(std::move(socket));
      if (!error || error == net::error::connection_aborted) return accept();
      state.options.on_fault("a connection cannot be accepted: " + error.message());
      if (const std::shared_ptr<Connection> longest = connections.longest_waiting()) longest->make_room();
      timer.expires_after(kAcceptPause);
      timer.async_wait([this](error_code) { accept(); });
    });
  }

  // Admits a new connection at once, or when one that waits for its client has made room, or when an answer has ended.
  // A client that has as many answers under way as it may is turned away: while half of all places are free, each may
  // have what nobody else asks for.
  void find_room(tcp::socket socket) {
    error_code error;
    const tcp::endpoint peer = socket.remote_endpoint(error);
    if (error) return;
    const std::string client = client_of(peer.address());
    const std::size_t others = connections.size_of(client);
    const bool scarce = connections.size() >= (state.options.max_connections + 1) / 2;
    const bool too_many = scarce && others > 0 && others >= state.options.max_per_client;
    if (!too_many && connections.size() < state.options.max_connections) return admit(std::move(socket));
    const std::shared_ptr<Connection> longest = connections.longest_waiting(too_many ? client : "");
    if (!longest && too_many && connections.alive_of(client) >= state.options.max_per_client &&
        !connections.one_may_have_answered(client)) {
      return turn_away(std::move(socket));
    }
    if (longest) longest->make_room();
    held.emplace(std::move(socket));
    room_timer.expires_after(kMakeRoom);  // the asked one may have begun an answer meanwhile
    room_timer.async_wait([this](error_code failed) {
      if (!failed) try_held();
    });
  }
  void turn_away(tcp::socket socket) {
    ++state.metrics.connections_refused;
    if (turned_away.size() < kMaxTurnedAway) return admit_apart(turned_away, std::move(socket), Admission::TurnedAway);
    error_code ignored;
    if (state.options.on_request)
      state.options.on_request(bundle::write_time(bundle::system_time()) + " " +
                               socket.remote_endpoint(ignored).address().to_string() +
                               " - - 0, turned away without an answer, as many were before it");
  }
  void try_held() {
    if (!held || state.stopping) return;
    tcp::socket socket = *std::exchange(held, std::nullopt);
    find_room(std::move(socket));
    if (!accepting) accept();
  }

  // The last owner of a connection releases it on some thread; the table of connections is kept on the acceptor's
  // strand.
  void admit(tcp::socket socket) {
    const std::uint64_t number = next_number++;
    std::shared_ptr<Connection> owned(new Connection(state, std::move(socket)), [this, number](Connection* gone) {
      delete gone;
      net::post(acceptor.get_executor(), [this, number] { forget(number); });
    });
    connections.add(number, owned);
    owned->start();
  }
  void forget(std::uint64_t number) {
    connections.forget(number);
    if (state.stopping && connections.empty()) timer.cancel();
    try_held();
  }

  void begin_stop() {
    if (state.stopping.exchange(true)) return;
    if (state.options.on_stop) state.options.on_stop();
    error_code ignored;
    acceptor.close(ignored);
    admin_acceptor.close(ignored);
    admin_timer.cancel();
    signals.cancel(ignored);
    hangups.cancel(ignored);
    end(admins);
    end(turned_away);
    room_timer.cancel();
    held.reset();
    for (const std::shared_ptr<Connection>& connection : connections.alive()) connection->end_if_idle();
    if (connections.empty()) return;
    timer.expires_after(state.options.stop_timeout);
    timer.async_wait([this](error_code error) {
      if (error) return;
      for (const std::shared_ptr<Connection>& connection : connections.alive()) connection->end_now();
    });
  }

  ServerState state;
  tcp::acceptor acceptor;  // its strand guards what follows
  net::steady_timer timer, room_timer;
  net::signal_set signals, hangups;
  tcp::acceptor admin_acceptor;
  net::steady_timer admin_timer{acceptor.get_executor()};
  Apart admins, turned_away;
  ConnectionTable connections{state.metrics};
  std::uint64_t next_number = 0;
  std::optional<tcp::socket> held;  // accepted, and without a place yet; no other one is accepted meanwhile
  bool accepting = false;
  ShownSite shown;
};

Server::Server(Held held, ServerOptions options) : impl_(std::make_unique<Impl>(std::move(held), std::move(options))) {}

void Server::show(Held held) {
  impl_->shown.show(std::move(held));
}

Server::~Server() = default;

ListenAddress Server::address() const {
  return address_of(impl_->acceptor);
}

std::optional<ListenAddress> Server::admin_address() const {
  return impl_->admin_acceptor.is_open() ? std::optional(address_of(impl_->admin_acceptor)) : std::nullopt;
}

CacheCounts Server::cache() const {
  return impl_->state.cache.counts();
}

std::uint64_t Server::send_steps() const {
  const SendCounts& sends = impl_->state.sends;
  return sends.calls + sends.waits + sends.turns;
}

void Server::run() {
  Impl& impl = *impl_;
  std::signal(SIGPIPE, SIG_IGN);
  impl.signals.add(SIGTERM);
  impl.signals.add(SIGINT);
  impl.signals.async_wait([&impl](error_code error, int) {
    if (!error) impl.begin_stop();
  });
  if (impl.state.options.audit || impl.state.options.tls || impl.state.options.tokens || impl.state.options.on_hangup) {
    impl.hangups.add(SIGHUP);
    impl.await_hangup();
  }
  net::dispatch(impl.acceptor.get_executor(), [&impl] {
    impl.accept();
    impl.accept_admin();
  });
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
