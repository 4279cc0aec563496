// SPDX-License-Identifier: Apache-2.0
// Reading is asynchronous, with a deadline; what a session has for the client is sent at once or not at all.
#include "offline_repo/server/client_socket.hpp"

#include <linux/sockios.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <boost/asio/post.hpp>
#include <cerrno>
#include <optional>
#include <string_view>
#include <utility>

#include "offline_repo/server/client_address.hpp"

namespace sealift::offline_repo {

namespace net = boost::asio;
using boost::beast::error_code;
using net::ip::tcp;

namespace {

constexpr std::size_t kCipherRoom = std::size_t{4} << 10;  // a request's head, or a client's part of a handshake

std::string peer_name(const tcp::socket& socket) {
  error_code error;
  const tcp::endpoint peer = socket.remote_endpoint(error);
  return error ? "unknown" : peer.address().to_string();
}

std::string client_name(const tcp::socket& socket) {
  error_code error;
  const tcp::endpoint peer = socket.remote_endpoint(error);
  return error ? "unknown" : client_of(peer.address());
}

std::unique_ptr<TlsSession> session_of(std::shared_ptr<const TlsContext> context) {
  return context ? std::make_unique<TlsSession>(std::move(context)) : nullptr;
}

}  // namespace

ClientSocket::ClientSocket(tcp::socket socket, std::shared_ptr<const TlsContext> tls)
    : socket_(std::move(socket)),
      timer_(socket_.get_executor()),
      peer_(peer_name(socket_)),
      client_(client_name(socket_)),
      tls_(session_of(std::move(tls))),
      cipher_(tls_ ? kCipherRoom : 0, '\0') {
  error_code ignored;
  socket_.set_option(tcp::no_delay(true), ignored);
  socket_.native_non_blocking(true, ignored);
}

void ClientSocket::keep_unsent(std::uint64_t bytes) {
  if (std::exchange(unsent_, bytes) == bytes) return;
  const int limit = static_cast<int>(bytes);
  ::setsockopt(socket_.native_handle(), IPPROTO_TCP, TCP_NOTSENT_LOWAT, &limit, sizeof limit);
}

std::uint64_t ClientSocket::bytes_in_system() {
  int bytes = 0;
  return ::ioctl(socket_.native_handle(), SIOCOUTQ, &bytes) == 0 ? static_cast<std::uint64_t>(bytes) : 0;
}

// Looks again later where the deadline was moved meanwhile. An earlier one needs a new timer.
void ClientSocket::watch() {
  if (deadline_ >= watched_) return;
  watched_ = deadline_;
  timer_.expires_at(deadline_);
  timer_.async_wait([this, owner = owner_](error_code error) {
    const std::shared_ptr<void> held = owner.lock();
    if (error || !held || Clock::now() < watched_) return;  // another one runs, or nobody is there
    watched_ = Clock::time_point::max();
    if (!reading_) return;
    Clock::now() < deadline_ ? watch() : close(true);
  });
}

template <class Handler>
void ClientSocket::read_plain(net::mutable_buffer room, Handler handler) {
  reading_ = true;
  watch();
  socket_.async_read_some(room, [this, handler = std::move(handler)](error_code error, std::size_t count) mutable {
    reading_ = false;
    handler(error, count);
  });
}

void ClientSocket::read_some(boost::beast::flat_buffer& into, std::size_t wanted, Then then) {
  const auto room = into.prepare(wanted);
  if (!tls_)
    return read_plain(room, [&into, then = std::move(then)](error_code error, std::size_t count) {
      if (!error) into.commit(count);
      then(error);
    });
  const std::optional<std::size_t> said = tls_->read(static_cast<char*>(room.data()), room.size());
  const bool good = flush() && said;
  if (good && *said == 0)
    return read_plain(net::buffer(cipher_),
                      [this, &into, wanted, then = std::move(then)](error_code error, std::size_t count) mutable {
                        if (error) return then(error);
                        tls_->feed(std::string_view(cipher_).substr(0, count));
                        read_some(into, wanted, std::move(then));
                      });
  if (good) into.commit(*said);
  net::post(socket_.get_executor(),
            [good, then = std::move(then)] { then(good ? error_code() : net::error::connection_reset); });
}

void ClientSocket::discard_some(boost::beast::flat_buffer& room, Then then) {
  room.clear();
  read_plain(room.prepare(4096), [then = std::move(then)](error_code error, std::size_t) { then(error); });
}

void ClientSocket::await_room(Then then) {
  socket_.async_wait(tcp::socket::wait_write, std::move(then));
}

// The few bytes of a handshake or an end, or an encrypted piece. A client that does not take a handshake is let go.
bool ClientSocket::flush() {
  while (!tls_->pending().empty()) {
    const std::string_view bytes = tls_->pending();
    const ssize_t count = ::send(descriptor(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    tls_->take(static_cast<std::size_t>(count));
  }
  return true;
}

void ClientSocket::end_sending() {
  error_code ignored;
  if (tls_) tls_->say_end(), flush();
  socket_.shutdown(tcp::socket::shutdown_send, ignored);
}

void ClientSocket::close(bool say_end) {
  error_code ignored;
  if (tls_ && say_end) tls_->say_end(), flush();
  socket_.shutdown(tcp::socket::shutdown_both, ignored);
  socket_.close(ignored);
  timer_.cancel();
}

}  // namespace sealift::offline_repo
