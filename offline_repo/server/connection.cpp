// SPDX-License-Identifier: Apache-2.0
// Waiting -> head -> body, where routes.hpp wants one -> answer -> sent -> waiting; see connection.hpp.
#include "offline_repo/server/connection.hpp"

#include <boost/asio/dispatch.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>
#include <utility>

#include "offline_repo/requests/request_head.hpp"
#include "offline_repo/server/request_message.hpp"
#include "offline_repo/server/response_header.hpp"

namespace sealift::offline_repo {

namespace net = boost::asio;
using boost::beast::error_code;
using net::ip::tcp;

namespace {

constexpr std::chrono::milliseconds kLinger{2'000};
constexpr std::chrono::milliseconds kTurnAway{2'000};  // for the request of one that is turned away

}  // namespace

Connection::Connection(ServerState& state, tcp::socket socket, Admission admission)
    : state_(state),
      admission_(admission),
      socket_(std::move(socket), admission == Admission::Admin ? nullptr : state.tls_now()),
      reader_(socket_, state.options.max_header),
      answer_(state, admission == Admission::Admin),
      record_(state, socket_.peer(), admission != Admission::Admin),
      sender_(state, socket_, [this](const std::string& trouble) { on_sent(trouble); }) {}

void Connection::start() {
  socket_.belong_to(weak_from_this());
  begin_waiting();
  net::dispatch(socket_.executor(), [self = shared_from_this()] { self->await_request(); });
}

void Connection::begin_waiting() {
  waiting_since_ = Clock::now().time_since_epoch().count();
}

std::optional<std::chrono::steady_clock::time_point> Connection::waiting_since() const {
  const Clock::rep since = waiting_since_;
  return since == 0 ? std::nullopt : std::optional(Clock::time_point(Clock::duration(since)));
}

void Connection::end_if_idle() {
  net::post(socket_.executor(), [self = shared_from_this()] {
    if (self->waiting_since_ != 0) self->close();
  });
}

void Connection::make_room() {
  net::post(socket_.executor(), [self = shared_from_this()] {
    if (self->waiting_since_ == 0 || std::exchange(self->leaving_, true)) return;
    ++self->state_.metrics.connections_made_room;
    self->record_.end_without_answer("it waited longest, and made room for another connection");
    self->close();
  });
}

void Connection::end_now() {
  net::post(socket_.executor(), [self = shared_from_this()] { self->close(); });
}

// Between two requests a client may take its time; once it has begun one, it has to end it.
void Connection::await_request() {
  if (state_.stopping) return close();
  begin_waiting();
  head_ = false;
  version_ = 11;
  if (reader_.has_begun()) return read_request();
  socket_.expires_after(admission_ == Admission::TurnedAway ? kTurnAway : state_.options.idle_timeout);
  reader_.await([self = shared_from_this()](error_code error) { error ? self->close() : self->read_request(); });
}

void Connection::read_request() {
  socket_.expires_after(admission_ == Admission::TurnedAway ? kTurnAway : state_.options.request_timeout);
  reader_.read_head(
      [self = shared_from_this()](error_code error, std::string_view head) { self->on_head(error, head); });
}

// Of a head with a fault nothing is parsed, and what comes behind it is never read as a request.
void Connection::on_head(error_code error, std::string_view head) {
  waiting_since_ = 0;
  record_.begin();
  if (error == net::error::message_size) return refuse(431, "the request's headers are too long");
  if (error) return close();
  head_ = head.starts_with("HEAD ");
  if (const std::string fault = fault_of_head(head); !fault.empty()) return refuse(400, fault);
  std::optional<RequestMessage> message = parse_message(head, state_.options.max_header, error);
  if (!message) return refuse(400, "the request is not HTTP: " + error.message());
  reader_.take_head(head.size());
  const std::uint64_t length = message->body_size;
  keep_alive_ = message->keep_alive && length == 0 && !message->chunked;
  version_ = message->version;
  head_ = message->is_head;
  const TlsSession* const tls = socket_.tls();
  record_.note(*message);
  if (admission_ == Admission::TurnedAway) return turn_away();
  const std::string user = answer_.see(message->authorization, tls != nullptr ? tls->client_name() : std::string());
  record_.note_user(user);
  if (version_ >= 11 && !message->has_one_host) return refuse(400, "an HTTP/1.1 request has exactly one Host header");
  Request& request = message->request;
  request.user = user;
  if (tls != nullptr) request.forwarded_proto = "https";
  answer_.find(request);
  const std::uint64_t limit = length > 0 ? answer_.wanted_body(request) : 0;
  if (limit > 0 && length > limit) return refuse(413, "a body has at most " + std::to_string(limit) + " bytes here");
  if (limit == 0) return send(answer_.respond(request));
  keep_alive_ = message->keep_alive;
  read_body(std::move(request), static_cast<std::size_t>(length));
}

// With one deadline for all of it.
void Connection::read_body(Request request, std::size_t size) {
  const auto pending = std::make_shared<Request>(std::move(request));
  pending->body.resize(size);
  begin_waiting();
  socket_.expires_after(state_.options.request_timeout);
  reader_.read_body(pending->body, [self = shared_from_this(), pending](error_code error) {
    self->waiting_since_ = 0;
    error ? self->close() : self->send(self->answer_.respond(*pending));
  });
}

void Connection::refuse(unsigned status, const std::string& why) {
  keep_alive_ = false;
  send(refusal(status, why));
}

// Clients read 503 with this header as "once more": pip, uv, the hub's and registries' do.
void Connection::turn_away() {
  keep_alive_ = false;
  Response response = refusal(503,
                              "this address has as many connections here as it may while others want some; ask again "
                              "in a second, or use fewer at a time");
  response.headers.emplace_back("Retry-After", "1");
  send(std::move(response));
}

// An answer to HEAD and a 304 end after the header.
void Connection::send(Response response) {
  if (state_.stopping) keep_alive_ = false;
  const bool bodiless = head_ || response.status == 304;
  std::string header = header_text(response, version_, keep_alive_);
  sender_.send(std::move(response), std::move(header), bodiless, shared_from_this());
}

void Connection::on_sent(const std::string& trouble) {
  record_.end(sender_.response(), sender_.body(), trouble);
  sender_.forget();
  answer_.forget();
  if (!trouble.empty()) return close();
  keep_alive_ ? await_request() : linger();
}

// Closing while the client still sends would discard the answer on its way to it, so its bytes are read for a moment.
void Connection::linger() {
  socket_.end_sending();
  socket_.expires_after(kLinger);
  begin_waiting();
  drain();
}

void Connection::drain() {
  reader_.discard_some([self = shared_from_this()](error_code error) { error ? self->close() : self->drain(); });
}

void Connection::close() {
  socket_.close(waiting_since_ != 0);  // to say the end where an answer is cut short would be a lie
  sender_.stop_waiting();
}

}  // namespace sealift::offline_repo
