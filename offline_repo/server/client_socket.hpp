// SPDX-License-Identifier: Apache-2.0
// A client's socket: bytes come in and leave, plainly or through a TLS session; what they say is not known here.
// Whoever owns one holds it in each function that it is given, so that it lives as long as an operation is pending.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "offline_repo/server/tls.hpp"

namespace sealift::offline_repo {

class ClientSocket {
 public:
  using Then = std::function<void(boost::beast::error_code)>;

  // `socket` runs on a strand of its own; `tls` is null where plain HTTP is spoken.
  ClientSocket(boost::asio::ip::tcp::socket socket, std::shared_ptr<const TlsContext> tls);

  boost::asio::any_io_executor executor() { return stream_.get_executor(); }
  int descriptor() { return stream_.socket().native_handle(); }
  TlsSession* tls() const { return tls_.get(); }         // null: plain HTTP
  const std::string& peer() const { return peer_; }      // the client's address
  const std::string& client() const { return client_; }  // as client_of says

  // When whatever is read from now on has to be there; then the socket is closed.
  void expires_after(std::chrono::milliseconds time) { stream_.expires_after(time); }
  // Adds to `into` some of what the client says, at most `wanted` bytes. A handshake is a part of waiting for it.
  void read_some(boost::beast::flat_buffer& into, std::size_t wanted, Then then);
  // Reads some of what the client still sends, and forgets it with all that `room` held.
  void discard_some(boost::beast::flat_buffer& room, Then then);
  // Once the system takes more bytes for the client.
  void await_room(Then then);
  // Sends what the TLS session has for the client: false, with errno, when the socket does not take all of it.
  bool flush();
  // Sends nothing more, and tells the client so.
  void end_sending();
  // `say_end`: a TLS client is told that nobody cut the connection.
  void close(bool say_end);

 private:
  boost::beast::tcp_stream stream_;
  std::string peer_;
  std::string client_;
  std::unique_ptr<TlsSession> tls_;
  std::string cipher_;  // room for what comes, where there is TLS
};

}  // namespace sealift::offline_repo
