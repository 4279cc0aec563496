// SPDX-License-Identifier: Apache-2.0
// A client's socket: bytes come in and leave, plainly or through a TLS session; what they say is not known here.
// Its owner holds it in each function that it is given, so that it lives as long as an operation is pending.
// Its deadline is one timer that looks, when it goes off, whether the deadline has been moved: a request costs none.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/error.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "offline_repo/server/tls.hpp"

namespace sealift::offline_repo {

class ClientSocket {
 public:
  using Then = std::function<void(boost::beast::error_code)>;

  // `socket` runs on a strand of its own; `tls` is null where plain HTTP is spoken.
  ClientSocket(boost::asio::ip::tcp::socket socket, std::shared_ptr<const TlsContext> tls);

  // Its owner, before anything is read: the timer holds it only while it looks.
  void belong_to(std::weak_ptr<void> owner) { owner_ = std::move(owner); }
  boost::asio::any_io_executor executor() { return socket_.get_executor(); }
  int descriptor() { return socket_.native_handle(); }
  TlsSession* tls() const { return tls_.get(); }         // null: plain HTTP
  const std::string& peer() const { return peer_; }      // the client's address
  const std::string& client() const { return client_; }  // as client_of says

  // When whatever is read from now on has to be there; then the socket is closed.
  void expires_after(std::chrono::milliseconds time) { deadline_ = Clock::now() + time; }
  // Adds to `into` some of what the client says, at most `wanted` bytes. A handshake is a part of waiting for it.
  void read_some(boost::beast::flat_buffer& into, std::size_t wanted, Then then);
  // Reads some of what the client still sends, and forgets it with all that `room` held.
  void discard_some(boost::beast::flat_buffer& room, Then then);
  // From now on the system takes at most about so many bytes for the client that it has not sent yet.
  void keep_unsent(std::uint64_t bytes);
  // That were given to the system and that the client's has not acknowledged.
  std::uint64_t bytes_in_system();
  // Once the system takes more bytes for the client.
  void await_room(Then then);
  // Sends what the TLS session has for the client: false, with errno, when the socket does not take all of it.
  bool flush();
  // Sends nothing more, and tells the client so.
  void end_sending();
  // `say_end`: a TLS client is told that nobody cut the connection.
  void close(bool say_end);

 private:
  using Clock = std::chrono::steady_clock;

  // Reads what is there of the plain bytes, or waits for some until the deadline.
  template <class Handler>
  void read_plain(boost::asio::mutable_buffer room, Handler handler);
  void watch();

  boost::asio::ip::tcp::socket socket_;
  boost::asio::steady_timer timer_;
  Clock::time_point deadline_ = Clock::time_point::max();
  Clock::time_point watched_ = Clock::time_point::max();  // when the timer goes off; max: it does not run
  std::uint64_t unsent_ = 0;                              // as keep_unsent said last
  bool reading_ = false;                                  // the deadline counts
  std::weak_ptr<void> owner_;
  std::string peer_;
  std::string client_;
  std::unique_ptr<TlsSession> tls_;
  std::string cipher_;  // room for what comes, where there is TLS
};

}  // namespace sealift::offline_repo
