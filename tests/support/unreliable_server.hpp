// SPDX-License-Identifier: Apache-2.0
// A web server on the loopback that misbehaves on demand: cuts connections, answers errors, ignores Range. It counts
// what it sends, so that a test can tell resuming from fetching again.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace sealift::test {

class UnreliableServer {
 public:
  struct File {
    std::string body;
    std::optional<std::size_t> cut_after;  // send so many bytes of the body, then close
    int cuts = 0;                          // how many answers are cut; later ones are whole
    int failures = 0;                      // how many answers are `failure_status`
    int failure_status = 503;
    bool ranges = true;              // false: Range is ignored
    std::string location;            // a redirect to this path or URL
    std::string headers;             // further lines of the answer, each with its line end
    std::string token;               // 401 without this bearer
    std::function<void()> once_cut;  // called when an answer was cut, before the connection is closed
  };
  struct Request {
    std::string method;
    std::string path;
    std::string range;          // the header's value, empty when there is none
    std::string authorization;  // likewise
    std::size_t sent = 0;
  };

  UnreliableServer() : listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    if (listener_ < 0 || ::bind(listener_, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
        ::listen(listener_, 64) != 0 || ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) != 0)
      throw std::runtime_error("the test server cannot listen");
    port_ = ntohs(address.sin_port);
    acceptor_ = std::jthread([this] { accept_all(); });
  }
  ~UnreliableServer() {
    ::shutdown(listener_, SHUT_RDWR);
    acceptor_.join();
    ::close(listener_);
  }

  void put(const std::string& path, File file) {
    const std::lock_guard lock(guard_);
    files_[path] = std::move(file);
  }
  std::string url(const std::string& path) const { return "http://127.0.0.1:" + std::to_string(port_) + path; }
  std::vector<Request> requests() const {
    const std::lock_guard lock(guard_);
    return requests_;
  }
  std::size_t sent() const {
    std::size_t sum = 0;
    for (const Request& request : requests()) sum += request.sent;
    return sum;
  }

 private:
  void accept_all() {
    std::vector<std::jthread> workers;
    for (int client; (client = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC)) >= 0;)
      workers.emplace_back([this, client] {
        answer(client);
        ::shutdown(client, SHUT_RDWR);
        ::close(client);
      });
  }

  static std::string header(const std::string& head, const std::string& name) {
    const std::size_t at = head.find("\r\n" + name + ": ");
    if (at == head.npos) return {};
    const std::size_t begin = at + name.size() + 4;
    return head.substr(begin, head.find("\r\n", begin) - begin);
  }

  void answer(int client) {
    std::string head;
    char buffer[4096];
    while (head.find("\r\n\r\n") == head.npos) {
      const ssize_t count = ::recv(client, buffer, sizeof buffer, 0);
      if (count <= 0) return;
      head.append(buffer, static_cast<std::size_t>(count));
    }
    const std::size_t space = head.find(' ');
    Request request{.method = head.substr(0, space),
                    .path = head.substr(space + 1, head.find(' ', space + 1) - space - 1),
                    .range = header(head, "Range"),
                    .authorization = header(head, "Authorization")};
    std::string reply, body;
    std::function<void()> then;
    compose(request, reply, body, then);
    request.sent = request.method == "HEAD" ? 0 : body.size();
    {
      const std::lock_guard lock(guard_);
      requests_.push_back(request);
    }
    send_all(client, reply);  // only now, so that a client that has the answer also sees the request counted
    if (request.method != "HEAD") send_all(client, body);
    if (then) then();
  }

  void compose(const Request& request, std::string& reply, std::string& body, std::function<void()>& then) {
    const std::lock_guard lock(guard_);
    const auto found = files_.find(request.path);
    const auto status = [&](const std::string& line, const std::string& more, std::size_t length) {
      reply = "HTTP/1.1 " + line + "\r\n" + more + "Content-Length: " + std::to_string(length) +
              "\r\nConnection: close\r\n\r\n";
    };
    if (found == files_.end()) return status("404 Not Found", "", 0);
    File& file = found->second;
    if (!file.token.empty() && request.authorization != "Bearer " + file.token)
      return status("401 Unauthorized", "", 0);
    if (!file.location.empty()) return status("302 Found", "Location: " + file.location + "\r\n", 0);
    if (file.failures > 0) {
      --file.failures;
      return status(std::to_string(file.failure_status) + " Failing", "", 0);
    }
    std::size_t begin = 0, end = file.body.size();
    if (file.ranges && request.range.starts_with("bytes=")) {
      begin = std::stoul(request.range.substr(6));
      if (!request.range.ends_with('-'))
        end = std::min(end, std::stoul(request.range.substr(request.range.find('-') + 1)) + 1);
    }
    if (begin > 0 && begin >= file.body.size()) return status("416 Range Not Satisfiable", "", 0);
    body = file.body.substr(begin, end - begin);
    const std::string range = "Content-Range: bytes " + std::to_string(begin) + "-" + std::to_string(end - 1) + "/" +
                              std::to_string(file.body.size()) + "\r\n";
    if (begin > 0 || end < file.body.size() || (file.ranges && !request.range.empty()))
      status("206 Partial Content", range, body.size());
    else
      status("200 OK", file.headers, body.size());
    if (file.cuts > 0 && file.cut_after && *file.cut_after < body.size()) {
      --file.cuts;
      body.resize(*file.cut_after);
      then = file.once_cut;
    }
  }

  static void send_all(int client, std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t count = ::send(client, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (count <= 0) return;
      bytes.remove_prefix(static_cast<std::size_t>(count));
    }
  }

  int listener_;
  std::uint16_t port_ = 0;
  mutable std::mutex guard_;
  std::map<std::string, File> files_;
  std::vector<Request> requests_;
  std::jthread acceptor_;
};

}  // namespace sealift::test
