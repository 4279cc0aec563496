// SPDX-License-Identifier: Apache-2.0
// One client's connection: awaits a request, answers it, awaits the next one, each step with a deadline.
// Owned by its pending operation, so it ends with the last of them. What the steps do is in the parts that it has:
// they read, decide, send and record, and know nothing of each other.
#pragma once

#include <atomic>
#include <boost/asio/ip/tcp.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "offline_repo/server/client_answer.hpp"
#include "offline_repo/server/client_socket.hpp"
#include "offline_repo/server/request_reader.hpp"
#include "offline_repo/server/request_record.hpp"
#include "offline_repo/server/response_sender.hpp"
#include "offline_repo/server/server_state.hpp"

namespace sealift::offline_repo {

// What a connection may have: answers; answers to operators; or 503 once, since its client has
// its share already.
enum class Admission { Served, Admin, TurnedAway };

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  // `socket` runs on a strand of its own; `state` must outlive this.
  Connection(ServerState& state, boost::asio::ip::tcp::socket socket, Admission admission = Admission::Served);

  void start();
  // From any thread: ends the connection unless an answer is under way; then it ends after that.
  void end_if_idle();
  void make_room();  // the same for another connection's sake, which is counted and logged
  void end_now();    // from any thread

  const std::string& client() const { return socket_.client(); }  // as client_of says
  // From any thread: since when it has been waiting for its client, with no answer under way; nothing while there is
  // one.
  std::optional<std::chrono::steady_clock::time_point> waiting_since() const;
  // From any thread: whether its client may have the whole answer already, so that it will be waiting in a moment.
  bool may_have_answered() const { return sender_.may_be_out(); }

 private:
  using Clock = std::chrono::steady_clock;

  void begin_waiting();
  void await_request();
  void read_request();
  void on_head(boost::beast::error_code error, std::string_view head);
  void read_body(Request request, std::size_t size);
  void refuse(unsigned status, const std::string& why);
  void turn_away();
  void send(Response response);
  void on_sent(const std::string& trouble);
  void linger();
  void drain();
  void close();

  ServerState& state_;
  const Admission admission_;
  ClientSocket socket_;
  RequestReader reader_;
  ClientAnswer answer_;
  RequestRecord record_;
  ResponseSender sender_;
  unsigned version_ = 11;
  bool head_ = false;  // HEAD: its answer has no body
  bool keep_alive_ = false;
  // Since when it has been waiting for a request, for the rest of one, or for the client to close; 0: it is not.
  std::atomic<Clock::rep> waiting_since_{0};
  bool leaving_ = false;  // it has made room, and is asked to until it is gone
};

}  // namespace sealift::offline_repo
