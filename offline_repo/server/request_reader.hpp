// SPDX-License-Identifier: Apache-2.0
// Cuts what a client says into requests: the first byte, a head up to its empty line, a body of a known size.
// Deadlines are the caller's, by the socket's expires_after; what came behind a request waits here for the next one.
#pragma once

#include <boost/beast/core/flat_buffer.hpp>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "offline_repo/server/client_socket.hpp"

namespace sealift::offline_repo {

// As with ClientSocket, each function that is given holds the owner of both.
class RequestReader {
 public:
  using Then = ClientSocket::Then;
  using Head = std::function<void(boost::beast::error_code, std::string_view head)>;

  // `socket` must outlive this. `max_head`: bytes of a head at most.
  RequestReader(ClientSocket& socket, std::size_t max_head);

  bool has_begun() const { return buffer_.size() > 0; }  // something of the next request is here
  void await(Then then);                                 // until has_begun()
  // The head with the empty line at its end, however many pieces it comes in; it stays here until it is taken.
  // message_size: there are as many bytes as a head may have, and no such line.
  void read_head(Head then);
  void take_head(std::size_t size) { buffer_.consume(size); }
  // Fills `body`, which must stay: the part of it that came with the head, then the rest.
  void read_body(std::string& body, Then then);
  // Reads some of what nobody answers, and forgets it.
  void discard_some(Then then) { socket_.discard_some(buffer_, std::move(then)); }

 private:
  void find_end(Head then);
  void fill(std::string& body, std::size_t here, Then then);

  ClientSocket& socket_;
  const std::size_t max_head_;
  boost::beast::flat_buffer buffer_;
  std::size_t scanned_ = 0;  // bytes of it without the end of a head
};

}  // namespace sealift::offline_repo
