// SPDX-License-Identifier: Apache-2.0
// Beast's asynchronous operations, each of which holds a pointer to the connection. Bodies of requests are read where
// routes.hpp wants one, and nowhere else.
#include "offline_repo/server/connection.hpp"

#include <unistd.h>

#include <algorithm>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/write.hpp>
#include <ctime>

#include "offline_repo/server/client_address.hpp"
#include "offline_repo/server/request_head.hpp"
#include "offline_repo/server/routes.hpp"
#include "sealift/bundle/core/safe_path.hpp"

namespace sealift::offline_repo {

namespace net = boost::asio;
namespace http = boost::beast::http;
using boost::beast::error_code;
using boost::beast::tcp_stream;
using net::ip::tcp;

namespace {

constexpr std::chrono::milliseconds kLinger{2'000};

// The present moment, for the Date header ("%a, %d %b %Y %T GMT") and for log lines ("%FT%TZ").
std::string now(const char* format) {
  const std::time_t seconds = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  char text[64];
  return {text, std::strftime(text, sizeof text, format, &parts)};
}

std::string peer_name(const tcp_stream& stream) {
  error_code error;
  const tcp::endpoint peer = stream.socket().remote_endpoint(error);
  return error ? "unknown" : peer.address().to_string();
}

std::string client_name(const tcp_stream& stream) {
  error_code error;
  const tcp::endpoint peer = stream.socket().remote_endpoint(error);
  return error ? "unknown" : client_of(peer.address());
}

std::string joined(const http::request<http::empty_body>& message, http::field field) {
  std::string all;
  const auto [begin, end] = message.equal_range(field);
  for (auto it = begin; it != end; ++it) all += (all.empty() ? "" : ", ") + std::string(it->value());
  return all;
}

}  // namespace

Connection::Connection(ServerState& state, tcp::socket socket)
    : state_(state),
      stream_(std::move(socket)),
      peer_(peer_name(stream_)),
      client_(client_name(stream_)),
      buffer_(state.options.max_header) {
  error_code ignored;  // headers and bodies are separate writes
  stream_.socket().set_option(tcp::no_delay(true), ignored);
}

void Connection::start() {
  begin_waiting();
  net::dispatch(stream_.get_executor(), [self = shared_from_this()] { self->await_request(); });
}

void Connection::begin_waiting() {
  waiting_since_ = std::chrono::steady_clock::now().time_since_epoch().count();
}

std::optional<std::chrono::steady_clock::time_point> Connection::waiting_since() const {
  using Clock = std::chrono::steady_clock;
  const Clock::rep since = waiting_since_;
  return since == 0 ? std::nullopt : std::optional(Clock::time_point(Clock::duration(since)));
}

void Connection::end_if_idle() {
  net::post(stream_.get_executor(), [self = shared_from_this()] {
    if (self->waiting_since_ != 0) self->close();
  });
}

void Connection::end_now() {
  net::post(stream_.get_executor(), [self = shared_from_this()] { self->close(); });
}

// Between two requests a client may take its time; once it has begun one, it has to end it.
void Connection::await_request() {
  if (state_.stopping) return close();
  begin_waiting();
  head_ = false;
  version_ = 11;
  if (buffer_.size() > 0) return read_request();
  stream_.expires_after(state_.options.idle_timeout);
  const std::size_t wanted = std::min<std::size_t>(4096, state_.options.max_header);
  stream_.async_read_some(buffer_.prepare(wanted), [self = shared_from_this()](error_code error, std::size_t count) {
    if (error) return self->close();
    self->buffer_.commit(count);
    self->read_request();
  });
}

void Connection::read_request() {
  stream_.expires_after(state_.options.request_timeout);
  net::async_read_until(stream_, buffer_, "\r\n\r\n", [self = shared_from_this()](error_code error, std::size_t size) {
    self->waiting_since_ = 0;
    self->on_request(error, size);
  });
}

// Of a head with a fault nothing is parsed, and what comes behind it is never read as a request.
void Connection::on_request(error_code error, std::size_t size) {
  if (error == net::error::not_found) return refuse(431, "the request's headers are too long");
  if (error) return close();
  const std::string_view head(static_cast<const char*>(buffer_.data().data()), size);
  head_ = head.starts_with("HEAD ");
  if (const std::string fault = fault_of_head(head); !fault.empty()) return refuse(400, fault);
  parser_.emplace();
  parser_->header_limit(static_cast<std::uint32_t>(state_.options.max_header));
  parser_->skip(true);  // of a body that nobody wants nothing is read: a refusal, and the connection ends
  parser_->put(net::buffer(head), error);
  if (error || !parser_->is_header_done()) return refuse(400, "the request is not HTTP: " + error.message());
  buffer_.consume(size);
  const http::request<http::empty_body>& message = parser_->get();
  keep_alive_ = parser_->keep_alive() && parser_->content_length().value_or(0) == 0 && !parser_->chunked();
  version_ = message.version();
  head_ = message.method() == http::verb::head;
  line_ = std::string(message.method_string()) + " " + bundle::SafePath::printable(std::string(message.target()));
  if (version_ >= 11 && message.count(http::field::host) != 1)
    return refuse(400, "an HTTP/1.1 request has exactly one Host header");
  Request request{.method = std::string(message.method_string()),
                  .target = std::string(message.target()),
                  .accept = joined(message, http::field::accept),
                  .range = joined(message, http::field::range),
                  .if_range = joined(message, http::field::if_range),
                  .if_none_match = joined(message, http::field::if_none_match),
                  .content_type = joined(message, http::field::content_type)};
  const std::uint64_t length = parser_->content_length().value_or(0);
  const std::uint64_t limit = length > 0 ? wanted_body(state_.catalogue, request) : 0;
  if (limit > 0 && length > limit) return refuse(413, "a body has at most " + std::to_string(limit) + " bytes here");
  if (limit > 0) return read_body(std::move(request), static_cast<std::size_t>(length));
  answer(respond(state_.catalogue, request));
}

// The part of it that came with the head, then the rest, with one deadline for all of it.
void Connection::read_body(Request request, std::size_t size) {
  keep_alive_ = parser_->keep_alive();
  const auto pending = std::make_shared<Request>(std::move(request));
  pending->body.resize(size);
  const std::size_t here = net::buffer_copy(net::buffer(pending->body), buffer_.data());
  buffer_.consume(here);
  begin_waiting();
  stream_.expires_after(state_.options.request_timeout);
  net::async_read(stream_, net::buffer(pending->body) + here,
                  [self = shared_from_this(), pending](error_code error, std::size_t) {
                    self->waiting_since_ = 0;
                    error ? self->close() : self->answer(respond(self->state_.catalogue, *pending));
                  });
}

void Connection::refuse(unsigned status, const std::string& why) {
  keep_alive_ = false;
  if (line_.empty()) line_ = "-";
  answer(refusal(status, why));
}

// Sends the header, then the body piece by piece; an answer to HEAD and a 304 end after the header.
void Connection::answer(Response response) {
  response_ = std::move(response);
  const bool bodiless = head_ || response_.status == 304;
  body_ = bodiless ? ResponseBody() : ResponseBody(response_);
  if (state_.stopping) keep_alive_ = false;
  header_ = {static_cast<http::status>(response_.status), version_};
  header_.set(http::field::server, "sealift-repo");
  header_.set(http::field::date, now("%a, %d %b %Y %T GMT"));
  for (const auto& [name, value] : response_.headers) header_.set(name, value);
  if (response_.status != 304) header_.content_length(response_.body_size());
  header_.keep_alive(keep_alive_);
  serializer_.emplace(header_);
  stream_.expires_after(state_.options.write_timeout);
  http::async_write_header(stream_, *serializer_, [self = shared_from_this()](error_code error, std::size_t) {
    if (error) return self->finish("the client went away");
    self->send_body();
  });
}

void Connection::send_body() {
  if (body_.sent() == body_.size()) return finish("");
  bundle::ByteView piece;
  try {
    piece = body_.next_piece();
  } catch (const std::exception& error) {  // ends this connection and no other
    state_.options.on_fault(std::string("a file could not be served, the connection ends: ") + error.what());
    return finish("unreadable");
  }
  stream_.expires_after(state_.options.write_timeout);
  net::async_write(stream_, net::buffer(piece.data(), piece.size()),
                   [self = shared_from_this()](error_code error, std::size_t count) {
                     self->body_.add_sent(count);
                     error ? self->finish("the client went away") : self->send_body();
                   });
}

// `trouble` is empty when everything was sent.
void Connection::finish(const std::string& trouble) {
  std::string line = now("%FT%TZ ") + peer_ + " " + line_ + " " + std::to_string(response_.status) + " " +
                     std::to_string(body_.sent());
  if (!trouble.empty()) line += " of " + std::to_string(body_.size()) + ", " + trouble;
  state_.options.on_request(line);
  body_ = {};
  line_.clear();
  if (!trouble.empty()) return close();
  keep_alive_ ? await_request() : linger();
}

// Closing while the client still sends would discard the answer on its way to it, so its bytes are read for a moment.
void Connection::linger() {
  error_code ignored;
  stream_.socket().shutdown(tcp::socket::shutdown_send, ignored);
  stream_.expires_after(kLinger);
  begin_waiting();
  drain();
}

void Connection::drain() {
  buffer_.clear();
  stream_.async_read_some(buffer_.prepare(4096), [self = shared_from_this()](error_code error, std::size_t) {
    error ? self->close() : self->drain();
  });
}

void Connection::close() {
  error_code ignored;
  stream_.socket().shutdown(tcp::socket::shutdown_both, ignored);
  stream_.close();
}

}  // namespace sealift::offline_repo
