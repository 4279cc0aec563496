// SPDX-License-Identifier: Apache-2.0
// One client's connection: reads a request, answers it, reads the next one, each step with a deadline.
// Owned by its pending operation, so it ends with the last of them. A damaged chunk ends the connection in the middle
// of the answer: the client sees a short one and never a wrong one. Beast parses what comes and writes the header of
// what goes; the answer's bytes go to the socket by turns, straight from sealed memory where they are a wheel's.
#pragma once

#include <atomic>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>
#include <chrono>
#include <exception>
#include <memory>
#include <optional>
#include <string>

#include "offline_repo/server/response_body.hpp"
#include "offline_repo/server/server_state.hpp"

namespace sealift::offline_repo {

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  // `socket` runs on a strand of its own; `state` must outlive this.
  // `admin`: it came in where only /healthz and /metrics are answered.
  Connection(ServerState& state, boost::asio::ip::tcp::socket socket, bool admin = false);

  void start();
  // From any thread: ends the connection unless an answer is under way; then it ends after that.
  void end_if_idle();
  void end_now();  // from any thread

  const std::string& client() const { return client_; }  // as client_of says
  // From any thread: since when it has been waiting for its client, with no answer under way; nothing while there is
  // one.
  std::optional<std::chrono::steady_clock::time_point> waiting_since() const;

 private:
  using Clock = std::chrono::steady_clock;
  using Message = boost::beast::http::request<boost::beast::http::empty_body>;

  void await_request();
  void read_request();
  void read_head();
  template <class Then>
  void read_some(std::size_t wanted, Then then);
  bool flush_tls();
  void on_head(boost::beast::error_code error, std::size_t size);
  void on_request(boost::beast::error_code error, std::size_t size);
  void read_body(Request request, std::size_t size);
  void fill_body(const std::shared_ptr<Request>& pending, std::size_t here);
  void begin_waiting();
  void refuse(unsigned status, const std::string& why);
  void note(const Message& message);
  void see(const Message& message);
  void find(Request& request);
  void answer(const Request& request);
  Response respond_to(const Request& request);
  Response by_digest(const Request& request, Response missing);
  void send(Response response);
  void send();
  bool take_chunk();
  bool is_small() const;
  void copy_small();
  void go_on(const ChunkCache::Chunk& chunk, const std::exception_ptr& fault);
  ssize_t send_piece();
  ssize_t send_tls();
  void add_sent(std::uint64_t count);
  void await_room();
  void unreadable(const std::exception& error);
  void finish(const std::string& trouble);
  void log(const std::string& trouble);
  void audit(bool complete);
  void linger();
  void drain();
  void close();

  ServerState& state_;
  boost::beast::tcp_stream stream_;
  std::string peer_;
  std::string client_;
  std::unique_ptr<TlsSession> tls_;  // null: plain HTTP
  std::string cipher_;               // room for what comes, where there is TLS
  std::uint64_t in_cipher_ = 0;      // bytes of the answer that the session's pending ones say
  boost::beast::flat_buffer buffer_;
  std::size_t scanned_ = 0;  // bytes of it without the end of a head
  std::optional<boost::beast::http::request_parser<boost::beast::http::empty_body>> parser_;
  std::shared_ptr<const Views> views_;  // what this client sees, for one answer; null: it has no token
  std::shared_ptr<const View> view_;    // that which it asks
  std::string view_name_;               // empty: the merged one
  Response response_;
  std::string header_;            // of response_, as it is sent
  std::size_t header_sent_ = 0;   // bytes of it
  ResponseBody body_;             // of response_; empty for HEAD and 304
  std::string small_;             // a wheel's few bytes, which leave with the header
  ChunkCache::Chunk chunk_;       // for the body's next bytes; let go of before waiting for the client
  std::uint64_t piece_sent_ = 0;  // bytes of the piece that has a deadline
  std::chrono::steady_clock::time_point deadline_, chunk_asked_;
  boost::asio::steady_timer room_timer_;  // for the client to take a piece
  bool awaits_room_ = false;
  std::string line_;          // of the request, for the log
  AnsweredRequest answered_;  // for the audit log, where there is one
  Clock::time_point asked_;   // when its head was there
  unsigned version_ = 11;
  // Since when it has been waiting for a request, for the rest of one, or for the client to close; 0: it is not.
  std::atomic<std::chrono::steady_clock::rep> waiting_since_{0};
  bool head_ = false;
  const bool admin_;
  bool keep_alive_ = false;
};

}  // namespace sealift::offline_repo
