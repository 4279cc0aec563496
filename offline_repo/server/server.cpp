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
#include <thread>
#include <vector>

#include "offline_repo/server/connection.hpp"

namespace sealift::offline_repo {

namespace {

namespace net = boost::asio;
using boost::beast::error_code;
using net::ip::tcp;

constexpr std::chrono::milliseconds kAcceptPause{100};  // after running out of descriptors

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
    if (state.stopping || connections.size() >= state.options.max_connections) {
      accepting = false;
      return;
    }
    accepting = true;
    acceptor.async_accept(net::make_strand(state.context), [this](error_code error, tcp::socket socket) {
      if (state.stopping) return;
      if (!error) admit(std::move(socket));
      if (!error || error == net::error::connection_aborted) return accept();
      state.options.on_fault("a connection cannot be accepted: " + error.message());
      timer.expires_after(kAcceptPause);
      timer.async_wait([this](error_code) { accept(); });
    });
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
    if (!accepting && !state.stopping) accept();
  }

  void begin_stop() {
    if (state.stopping.exchange(true)) return;
    error_code ignored;
    acceptor.close(ignored);
    signals.cancel(ignored);
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
  net::steady_timer timer;
  net::signal_set signals;
  std::map<Connection*, std::weak_ptr<Connection>> connections;
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
