// SPDX-License-Identifier: Apache-2.0
// An HTTP client that sends exactly the bytes that a test gives it and shows exactly what came back.
// Deliberately not the server's own library: a fault in that one must not hide itself.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <map>
#include <stdexcept>
#include <string>

#include "sealift/bundle/core/file.hpp"

namespace sealift::test {

struct RawResponse {
  int status = 0;
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;                            // what arrived of it
  bool complete = false;                       // as long as Content-Length said
};

class RawClient {
 public:
  // `from`: the client's own address, such as 0x7f000002 for 127.0.0.2. `room`: bytes that its system takes before it.
  explicit RawClient(std::uint16_t port, std::uint32_t from = 0, int room = 0)
      : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const timeval limit{.tv_sec = 30, .tv_usec = 0};
    ::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    if (room > 0) ::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
    const int one = 1;  // pieces leave as they are sent
    ::setsockopt(socket_.get(), IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    const sockaddr_in own{.sin_family = AF_INET, .sin_port = 0, .sin_addr = {htonl(from)}};
    if (from != 0 && ::bind(socket_.get(), reinterpret_cast<const sockaddr*>(&own), sizeof own) != 0)
      throw std::runtime_error("cannot have this address");
    sockaddr_in address{.sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    if (::connect(socket_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)
      throw std::runtime_error("cannot connect to port " + std::to_string(port));
  }

  void send(std::string_view text) {
    while (!text.empty()) {
      const ssize_t count = ::send(socket_.get(), text.data(), text.size(), MSG_NOSIGNAL);
      if (count <= 0) return;  // the server may end a connection before it has read everything
      text.remove_prefix(static_cast<std::size_t>(count));
    }
  }

  // One response; `head`: to a HEAD request, so without a body.
  RawResponse receive(bool head = false) {
    while (pending_.find("\r\n\r\n") == std::string::npos)
      if (!more()) return {};
    RawResponse response;
    const std::size_t end = pending_.find("\r\n\r\n") + 4;
    parse(pending_.substr(0, end), response);
    pending_.erase(0, end);
    const std::size_t length =
        head || response.status == 304 ? 0 : std::stoull("0" + response.headers["content-length"]);
    while (pending_.size() < length && more()) {
    }
    response.body = pending_.substr(0, length);
    response.complete = response.body.size() == length;
    pending_.erase(0, response.body.size());
    return response;
  }

  // Returns once an answer has begun to arrive.
  void await_answer() {
    while (pending_.empty() && more()) {
    }
  }

  // Takes so many bytes more, or what comes before the end.
  void take(std::size_t bytes) {
    const std::size_t wanted = pending_.size() + bytes;
    while (pending_.size() < wanted && more()) {
    }
  }

  // Ends the connection at once, whatever is on its way.
  void reset() { socket_ = bundle::Descriptor(); }

  // True when the server ends the connection without sending anything more.
  bool ended() { return pending_.empty() && !more(); }

 private:
  bool more() {
    char buffer[65536];
    const ssize_t count = ::recv(socket_.get(), buffer, sizeof buffer, 0);
    if (count < 0 && errno == EAGAIN) throw std::runtime_error("the server said nothing for 30 seconds");
    if (count > 0) pending_.append(buffer, static_cast<std::size_t>(count));
    return count > 0;
  }

  static void parse(const std::string& text, RawResponse& response) {
    response.status = std::stoi(text.substr(9, 3));
    for (std::size_t begin = text.find("\r\n") + 2; begin + 2 < text.size();) {
      const std::size_t end = text.find("\r\n", begin), colon = text.find(": ", begin);
      std::string name = text.substr(begin, colon - begin);
      std::transform(name.begin(), name.end(), name.begin(), ::tolower);
      response.headers[name] = text.substr(colon + 2, end - colon - 2);
      begin = end + 2;
    }
  }

  bundle::Descriptor socket_;
  std::string pending_;
};

inline std::string request_text(const std::string& target, const std::string& headers = "",
                                const std::string& method = "GET") {
  return method + " " + target + " HTTP/1.1\r\nHost: test\r\n" + headers + "\r\n";
}

// One request on its own connection.
inline RawResponse fetch(std::uint16_t port, const std::string& target, const std::string& headers = "",
                         const std::string& method = "GET") {
  RawClient client(port);
  client.send(request_text(target, headers, method));
  return client.receive(method == "HEAD");
}

}  // namespace sealift::test
