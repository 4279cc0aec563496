// SPDX-License-Identifier: Apache-2.0
// Sends one response to a client, by turns and by pieces, each piece with a deadline; a wheel's bytes come from the
// cache of checked chunks and go straight from sealed memory. A chunk that cannot be read ends the answer: the client
// sees a short one and never a wrong one. No chunk is held while the client takes nothing.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string>

#include "offline_repo/server/client_socket.hpp"
#include "offline_repo/server/response_body.hpp"
#include "offline_repo/server/server_state.hpp"

namespace sealift::offline_repo {

class ResponseSender {
 public:
  // `trouble` is empty when everything was sent, and says in the log's words what went wrong otherwise.
  using Done = std::function<void(const std::string& trouble)>;
  // Of this sender and its socket; each pending operation holds it.
  using Owner = std::shared_ptr<void>;

  // `state` and `socket` must outlive this. `done` is called once for each response; it ends with forget().
  ResponseSender(ServerState& state, ClientSocket& socket, Done done);

  // `header`: as it is sent; `bodiless`: nothing follows it.
  void send(Response response, std::string header, bool bodiless, const Owner& owner);
  // Of the response on its way: itself, and its body as far as it was sent.
  const Response& response() const { return response_; }
  const ResponseBody& body() const { return body_; }
  void forget();
  // From any thread: whether the client may have all of the last response, even if nobody here has noticed yet.
  bool may_be_out() const { return may_be_out_; }
  // Once the socket is closed: no deadline runs any more.
  void stop_waiting() { room_timer_.cancel(); }

 private:
  using Clock = std::chrono::steady_clock;

  void take_turn(const Owner& owner);
  bool take_chunk(const Owner& owner);
  void go_on(const ChunkCache::Chunk& chunk, const std::exception_ptr& fault, const Owner& owner);
  bool is_small() const;
  void copy_small();
  ssize_t send_piece();
  ssize_t send_tls();
  void add_sent(std::uint64_t count);
  void await_room(const Owner& owner);
  void watch_room(const Owner& owner);
  void unreadable(const std::exception& error);

  ServerState& state_;
  ClientSocket& socket_;
  const Done done_;
  Response response_;
  std::string header_;            // of response_, as it is sent
  std::size_t header_sent_ = 0;   // bytes of it
  ResponseBody body_;             // of response_; empty for HEAD and 304
  std::string small_;             // a wheel's few bytes, which leave with the header
  ChunkCache::Chunk chunk_;       // for the body's next bytes; let go of before waiting for the client
  std::uint64_t piece_sent_ = 0;  // bytes of the piece that has a deadline
  std::uint64_t in_system_ = 0;   // bytes that the client had not taken when its deadline began
  std::uint64_t in_cipher_ = 0;   // bytes of the response that the TLS session's pending ones say
  Clock::time_point deadline_, chunk_asked_;
  boost::asio::steady_timer room_timer_;  // for the client to take a piece
  bool awaits_room_ = false;
  std::atomic<bool> may_be_out_{false};
};

}  // namespace sealift::offline_repo
