// SPDX-License-Identifier: Apache-2.0
// Beast's asynchronous operations, each of which holds a pointer to the connection. Bodies of requests are read where
// routes.hpp wants one, and nowhere else.
#include "offline_repo/server/connection.hpp"

#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/read.hpp>
#include <boost/beast/core/buffers_range.hpp>
#include <cerrno>
#include <ctime>

#include "offline_repo/server/apt_routes.hpp"
#include "offline_repo/server/client_address.hpp"
#include "offline_repo/server/oci_routes.hpp"
#include "offline_repo/server/request_head.hpp"
#include "offline_repo/server/routes.hpp"
#include "offline_repo/server/status_pages.hpp"
#include "sealift/bundle/core/safe_path.hpp"

namespace sealift::offline_repo {

namespace net = boost::asio;
namespace http = boost::beast::http;
using boost::beast::error_code;
using boost::beast::tcp_stream;
using net::ip::tcp;

namespace {

constexpr std::chrono::milliseconds kLinger{2'000};
constexpr std::uint64_t kPiece = std::uint64_t{256}
                                 << 10;                  // small beside a chunk: a slow client must meet its deadline
constexpr std::uint64_t kTurn = std::uint64_t{1} << 20;  // bytes, then other connections of this thread send theirs
constexpr char kTlsHandshake = 0x16;                     // RFC 8446, 5.1: no request begins so
constexpr std::string_view kEmptyLine = "\r\n\r\n";
constexpr std::uint64_t kSmallBody = std::uint64_t{8} << 10;
constexpr std::size_t kCipherRoom = std::size_t{4} << 10;       // a request's head, or a client's part of a handshake
constexpr std::uint64_t kPlainPiece = std::uint64_t{64} << 10;  // of an answer, encrypted at once
constexpr int kUnsent = 512 << 10;                              // bytes of a connection that the system may keep unsent

// The present moment as strftime(3) writes it.
std::string now(const char* format) {
  const std::time_t seconds = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  char text[64];
  return {text, std::strftime(text, sizeof text, format, &parts)};
}

// Made once a second.
const std::string& date() {
  thread_local std::time_t made = 0;
  thread_local std::string text;
  if (const std::time_t seconds = std::time(nullptr); seconds != made)
    made = seconds, text = now("%a, %d %b %Y %T GMT");
  return text;
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

std::string written(http::response<http::empty_body>& header) {
  http::response_serializer<http::empty_body> serializer(header);
  std::string text;
  error_code error;
  while (!error && !serializer.is_header_done())
    serializer.next(error, [&](error_code&, const auto& buffers) {
      for (const net::const_buffer buffer : boost::beast::buffers_range_ref(buffers))
        text.append(static_cast<const char*>(buffer.data()), buffer.size());
      serializer.consume(net::buffer_size(buffers));
    });
  return text;
}

// Clients of hubs send their token before they are asked. Basic is the only challenge: what pulls images takes a Bearer
// challenge for the address of another server that gives out tokens.
Response unauthorized(const Request& request) {
  const std::string why = "a token of this repository is needed: as a password, or as a Bearer token";
  Response response = is_registry_target(request.target) ? registry_error(401, "UNAUTHORIZED", why) : refusal(401, why);
  response.headers.emplace_back("WWW-Authenticate", "Basic realm=\"sealift-repo\", charset=\"UTF-8\"");
  return response;
}

// Relative, so that it holds below any prefix; `name` is a view's.
Response slash_added(const std::string& name) {
  Response response = refusal(301, "the page is at " + name + "/");
  response.headers.emplace_back("Location", name + "/");
  return response;
}

// Whether the address is of bytes, whatever bundle they are in.
bool is_by_digest(std::string_view target) {
  return target.starts_with("/files/") || is_apt_package(target) ||
         (is_registry_target(target) && target.find("/sha256:") != target.npos);
}

std::unique_ptr<TlsSession> session_of(std::shared_ptr<const TlsContext> context) {
  return context ? std::make_unique<TlsSession>(std::move(context)) : nullptr;
}

iovec part_of(std::string_view text) {
  return {.iov_base = const_cast<char*>(text.data()), .iov_len = text.size()};
}

}  // namespace

Connection::Connection(ServerState& state, tcp::socket socket, bool admin)
    : state_(state),
      stream_(std::move(socket)),
      peer_(peer_name(stream_)),
      client_(client_name(stream_)),
      tls_(admin ? nullptr : session_of(state.tls_now())),
      cipher_(tls_ ? kCipherRoom : 0, '\0'),
      buffer_(state.options.max_header),
      room_timer_(stream_.get_executor()),
      admin_(admin) {
  error_code ignored;
  stream_.socket().set_option(tcp::no_delay(true), ignored);
  stream_.socket().native_non_blocking(true, ignored);
  ::setsockopt(stream_.socket().native_handle(), IPPROTO_TCP, TCP_NOTSENT_LOWAT, &kUnsent, sizeof kUnsent);
}

void Connection::start() {
  begin_waiting();
  net::dispatch(stream_.get_executor(), [self = shared_from_this()] { self->await_request(); });
}

void Connection::begin_waiting() {
  waiting_since_ = std::chrono::steady_clock::now().time_since_epoch().count();
}

std::optional<std::chrono::steady_clock::time_point> Connection::waiting_since() const {
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
  const std::size_t wanted = std::min<std::size_t>(1024, state_.options.max_header);
  read_some(wanted, [self = shared_from_this()](error_code error) { error ? self->close() : self->read_request(); });
}

// Adds to the buffer some of what the client says. A handshake is a part of waiting for its first request.
template <class Then>
void Connection::read_some(std::size_t wanted, Then then) {
  const auto into = buffer_.prepare(wanted);
  if (!tls_)
    return stream_.async_read_some(into, [self = shared_from_this(), then](error_code error, std::size_t count) {
      if (!error) self->buffer_.commit(count);
      then(error);
    });
  const std::optional<std::size_t> said = tls_->read(static_cast<char*>(into.data()), into.size());
  const bool good = flush_tls() && said;
  if (good && *said == 0)
    return stream_.async_read_some(net::buffer(cipher_),
                                   [self = shared_from_this(), wanted, then](error_code error, std::size_t count) {
                                     if (error) return then(error);
                                     self->tls_->feed(std::string_view(self->cipher_).substr(0, count));
                                     self->read_some(wanted, then);
                                   });
  if (good) buffer_.commit(*said);
  net::post(stream_.get_executor(),
            [self = shared_from_this(), good, then] { then(good ? error_code() : net::error::connection_reset); });
}

// The few bytes of a handshake or an end. A client that does not take them is let go.
bool Connection::flush_tls() {
  while (!tls_->pending().empty()) {
    const std::string_view bytes = tls_->pending();
    const ssize_t count =
        ::send(stream_.socket().native_handle(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    tls_->take(static_cast<std::size_t>(count));
  }
  return true;
}

void Connection::read_request() {
  stream_.expires_after(state_.options.request_timeout);
  scanned_ = 0;
  read_head();
}

// Until the empty line at the head's end is there, however many pieces it comes in.
void Connection::read_head() {
  const std::string_view all(static_cast<const char*>(buffer_.data().data()), buffer_.size());
  if (!tls_ && all.starts_with(kTlsHandshake))
    return close();  // a client that tries TLS first goes on without it at once
  const std::size_t end = all.find(kEmptyLine, scanned_ - std::min(scanned_, kEmptyLine.size() - 1));
  if (end != all.npos) return on_head({}, end + kEmptyLine.size());
  scanned_ = all.size();
  if (scanned_ == state_.options.max_header) return on_head(net::error::not_found, 0);
  const std::size_t wanted = std::min<std::size_t>(4096, state_.options.max_header - scanned_);
  read_some(wanted,
            [self = shared_from_this()](error_code error) { error ? self->on_head(error, 0) : self->read_head(); });
}

void Connection::on_head(error_code error, std::size_t size) {
  waiting_since_ = 0;
  asked_ = Clock::now();
  answered_ = {.time = std::chrono::system_clock::now(), .client = peer_};
  on_request(error, size);
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
  note(message);
  see(message);
  if (version_ >= 11 && message.count(http::field::host) != 1)
    return refuse(400, "an HTTP/1.1 request has exactly one Host header");
  Request request{.method = std::string(message.method_string()),
                  .target = std::string(message.target()),
                  .accept = joined(message, http::field::accept),
                  .range = joined(message, http::field::range),
                  .if_range = joined(message, http::field::if_range),
                  .if_none_match = joined(message, http::field::if_none_match),
                  .content_type = joined(message, http::field::content_type),
                  .host = joined(message, http::field::host),
                  .accept_language = joined(message, http::field::accept_language),
                  .forwarded_proto = tls_ ? "https"
                                     : message.count("X-Forwarded-Proto") == 1
                                         ? std::string(message["X-Forwarded-Proto"])
                                         : ""};
  find(request);
  const std::uint64_t length = parser_->content_length().value_or(0);
  const std::uint64_t limit = length > 0 && view_ ? wanted_body(view_->catalogue, request) : 0;
  if (limit > 0 && length > limit) return refuse(413, "a body has at most " + std::to_string(limit) + " bytes here");
  if (limit > 0) return read_body(std::move(request), static_cast<std::size_t>(length));
  answer(request);
}

// A client that changes its token on a connection is another one from there on.
void Connection::see(const Message& message) {
  views_.reset();
  std::optional<Access::Client> client = state_.access_now()->client(joined(message, http::field::authorization),
                                                                     tls_ ? tls_->client_name() : std::string());
  if (!client) return;
  views_ = std::move(client->views);
  answered_.user = client->user;
}

// The view that the target names; the target is then one within it.
void Connection::find(Request& request) {
  view_.reset();
  view_name_.clear();
  if (!views_) return;
  Viewed viewed = find_view(*views_, request.target);
  view_ = std::move(viewed.view);
  view_name_ = std::move(viewed.name);
  request.target = std::move(viewed.target);
  request.registry = std::move(viewed.registry);
}

// What the logs say of it; texts are kept only where there is a log.
void Connection::note(const Message& message) {
  if (state_.options.on_request)
    line_ = std::string(message.method_string()) + " " + bundle::SafePath::printable(std::string(message.target()));
  if (!state_.options.audit) return;
  answered_.method = std::string(message.method_string());
  answered_.target = std::string(message.target());
  answered_.range = joined(message, http::field::range);
  answered_.agent = joined(message, http::field::user_agent);
}

// The part of it that came with the head, then the rest, with one deadline for all of it.
void Connection::read_body(Request request, std::size_t size) {
  keep_alive_ = parser_->keep_alive();
  const auto pending = std::make_shared<Request>(std::move(request));
  pending->body.resize(size);
  begin_waiting();
  stream_.expires_after(state_.options.request_timeout);
  fill_body(pending, 0);
}

// `here`: bytes of it that are there.
void Connection::fill_body(const std::shared_ptr<Request>& pending, std::size_t here) {
  const std::size_t more = net::buffer_copy(net::buffer(pending->body) + here, buffer_.data());
  buffer_.consume(more);
  here += more;
  if (here == pending->body.size()) {
    waiting_since_ = 0;
    return answer(*pending);
  }
  const std::size_t wanted = std::min(pending->body.size() - here, state_.options.max_header);
  read_some(wanted, [self = shared_from_this(), pending, here](error_code error) {
    if (!error) return self->fill_body(pending, here);
    self->waiting_since_ = 0;
    self->close();
  });
}

void Connection::refuse(unsigned status, const std::string& why) {
  keep_alive_ = false;
  if (line_.empty()) line_ = "-";
  send(refusal(status, why));
}

void Connection::answer(const Request& request) {
  send(respond_to(request));
}

// Where nobody could say later who took it, nothing is given.
Response Connection::respond_to(const Request& request) {
  if (view_name_.empty() && (admin_ || !state_.options.admin_listen))
    if (std::optional<Response> status = status_answer(state_, request, admin_)) return *std::move(status);
  if (admin_) return refusal(404, "here are /healthz, /metrics and /status");
  if (!view_) return unauthorized(request);
  if (state_.options.audit_required && !state_.options.audit->writable())
    return refusal(503, "the audit log cannot be written, and nothing is served without it");
  if (request.target.empty()) return slash_added(view_name_);
  Response response = respond(view_->catalogue, view_->pages, request);
  if (response.status == 404 && is_by_digest(request.target)) return by_digest(request, std::move(response));
  return response;
}

// A client that read the index before a switch still finds what it was told of: a file's address is its digest, so any
// bundle that this client may see can give it.
Response Connection::by_digest(const Request& request, Response missing) {
  for (const auto& [stem, view] : views_->bundles) {
    Response response = respond(view->catalogue, view->pages, request);
    if (response.status == 404) continue;
    view_ = view;
    return response;
  }
  return missing;
}

// An answer to HEAD and a 304 end after the header.
void Connection::send(Response response) {
  response_ = std::move(response);
  const bool bodiless = head_ || response_.status == 304;
  body_ = bodiless ? ResponseBody() : ResponseBody(response_);
  if (state_.stopping) keep_alive_ = false;
  http::response<http::empty_body> header(static_cast<http::status>(response_.status), version_);
  header.set(http::field::server, "sealift-repo");
  header.set(http::field::date, date());
  for (const auto& [name, value] : response_.headers) header.set(name, value);
  if (response_.status != 304) header.content_length(response_.body_size());
  header.keep_alive(keep_alive_);
  header_ = written(header);
  header_sent_ = 0;
  piece_sent_ = 0;
  deadline_ = Clock::now() + state_.options.write_timeout;
  send();
}

// One turn: until the socket takes no more, the answer is out, or others should have their turn.
void Connection::send() {
  for (std::uint64_t turn = 0; turn < kTurn;) {
    if (is_small()) {
      if (!chunk_ && !take_chunk()) return;
      copy_small();
    } else if (header_sent_ == header_.size()) {
      if (body_.sent() == body_.size()) return finish("");
      if (body_.payload() != nullptr && !chunk_ && !take_chunk()) return;
    }
    const ssize_t count = send_piece();
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return await_room();
    if (count <= 0) return finish("the client went away");
    add_sent(static_cast<std::uint64_t>(count));
    turn += static_cast<std::uint64_t>(count);
  }
  chunk_.reset();
  net::post(stream_.get_executor(), [self = shared_from_this()] { self->send(); });
}

// Whether the body is a few bytes of one chunk: to copy them costs less than a second system call.
bool Connection::is_small() const {
  return body_.payload() != nullptr && header_sent_ == 0 && body_.size() <= kSmallBody && !body_.place().goes_on;
}

void Connection::copy_small() {
  const ChunkPlace place = body_.place();
  small_ = chunk_->copy(place.offset, place.count);
  chunk_.reset();
  body_.replace(small_);
}

// Whether there is a chunk now. If not, the connection ends, or goes on once another thread has read the chunk.
bool Connection::take_chunk() {
  chunk_asked_ = Clock::now();
  const ChunkPlace place = body_.place();
  try {
    chunk_ = state_.cache.take(
        *body_.payload(), place.index, place.goes_on,
        [self = shared_from_this()](const ChunkCache::Chunk& chunk, const std::exception_ptr& fault) {
          net::post(self->stream_.get_executor(), [self, chunk, fault] { self->go_on(chunk, fault); });
        });
  } catch (const std::exception& error) {
    unreadable(error);
    return false;
  }
  if (chunk_) deadline_ += Clock::now() - chunk_asked_;  // the client is not at fault for what reading took
  return chunk_ != nullptr;
}

void Connection::go_on(const ChunkCache::Chunk& chunk, const std::exception_ptr& fault) {
  deadline_ += Clock::now() - chunk_asked_;
  chunk_ = chunk;
  if (fault) try {
      std::rethrow_exception(fault);
    } catch (const std::exception& error) {
      return unreadable(error);
    }
  send();
}

// At most the rest of the piece whose deadline runs; as send(2) returns. A header leaves with what follows it.
ssize_t Connection::send_piece() {
  if (tls_) return send_tls();
  const int socket = stream_.socket().native_handle();
  const std::uint64_t room = kPiece - piece_sent_;
  if (header_sent_ == header_.size() && chunk_) {
    const ChunkPlace place = body_.place();
    return chunk_->send(socket, place.offset, std::min(place.count, room));
  }
  const std::string_view header = std::string_view(header_).substr(header_sent_);
  const std::string_view text = body_.payload() != nullptr ? std::string_view() : body_.text_left().substr(0, room);
  iovec parts[] = {part_of(header), part_of(text)};
  msghdr message{};
  message.msg_iov = parts;
  message.msg_iovlen = 2;
  return ::sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT | (body_.payload() != nullptr ? MSG_MORE : 0));
}

// As send_piece(), but returns how many bytes of the answer were said, once the client's system has all that says them.
ssize_t Connection::send_tls() {
  if (tls_->pending().empty()) {
    const std::uint64_t room = std::min(kPlainPiece, kPiece - piece_sent_);
    std::string piece = header_.substr(header_sent_, static_cast<std::size_t>(kPlainPiece));
    if (chunk_ && header_sent_ == header_.size())
      piece += chunk_->copy(body_.place().offset, std::min(body_.place().count, room));
    else if (body_.payload() == nullptr)
      piece += body_.text_left().substr(0, static_cast<std::size_t>(room));
    if (!tls_->write(piece)) {
      errno = ECONNRESET;
      return -1;
    }
    in_cipher_ = piece.size();
  }
  if (!flush_tls()) return -1;
  return static_cast<ssize_t>(std::exchange(in_cipher_, 0));
}

void Connection::add_sent(std::uint64_t count) {
  const std::uint64_t of_header = std::min<std::uint64_t>(count, header_.size() - header_sent_);
  header_sent_ += static_cast<std::size_t>(of_header);
  body_.add_sent(count - of_header);
  piece_sent_ += count - of_header;
  if (piece_sent_ >= kPiece) {
    piece_sent_ = 0;
    deadline_ = Clock::now() + state_.options.write_timeout;
  }
  if (chunk_ && (body_.sent() == body_.size() || body_.place().offset == 0)) chunk_.reset();
}

// Holds no chunk meanwhile, however long the client takes.
void Connection::await_room() {
  chunk_.reset();
  awaits_room_ = true;
  room_timer_.expires_at(deadline_);
  room_timer_.async_wait([self = shared_from_this()](error_code error) {
    if (!error && self->awaits_room_ && Clock::now() >= self->deadline_) self->close();
  });
  stream_.socket().async_wait(tcp::socket::wait_write, [self = shared_from_this()](error_code error) {
    self->awaits_room_ = false;
    self->room_timer_.cancel();
    error ? self->finish("the client went away") : self->send();
  });
}

// Ends this connection and no other.
void Connection::unreadable(const std::exception& error) {
  const auto* part = std::get_if<WheelPart>(&response_.body);
  if (part != nullptr && dynamic_cast<const bundle::Error*>(&error) != nullptr)
    state_.fail(part->wheel->in, body_.place().index, error.what());
  state_.options.on_fault(std::string("a file could not be served, the connection ends: ") + error.what());
  finish("unreadable");
}

// `trouble` is empty when everything was sent.
void Connection::finish(const std::string& trouble) {
  state_.metrics.count(response_.route, response_.status, body_.sent());
  if (state_.options.audit && !admin_) audit(trouble.empty());
  if (state_.options.on_request) log(trouble);
  body_ = {};
  chunk_.reset();
  small_.clear();
  response_ = {};
  view_.reset();
  views_.reset();
  header_.clear();
  line_.clear();
  if (!trouble.empty()) return close();
  keep_alive_ ? await_request() : linger();
}

void Connection::log(const std::string& trouble) {
  std::string line = now("%FT%TZ ") + peer_ + " " + line_ + " " + std::to_string(response_.status) + " " +
                     std::to_string(body_.sent());
  if (!trouble.empty()) line += " of " + std::to_string(body_.size()) + ", " + trouble;
  state_.options.on_request(line);
}

void Connection::audit(bool complete) {
  answered_.status = response_.status;
  answered_.bytes = body_.sent();
  answered_.complete = complete;
  answered_.milliseconds = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - asked_).count();
  if (const auto* part = std::get_if<WheelPart>(&response_.body)) {
    answered_.bundle = part->wheel->in->manifest().stem();
    answered_.entry = part->wheel->entry->path.text();
    answered_.sha256 = part->wheel->sha256.hex();
  }
  if (state_.options.audit->write(audit_line(answered_))) return;
  if (state_.metrics.audit_failures++ == 0)
    state_.options.on_fault("the audit log cannot be written; its lines wait, 4096 of them at most");
}

// Closing while the client still sends would discard the answer on its way to it, so its bytes are read for a moment.
void Connection::linger() {
  error_code ignored;
  if (tls_) tls_->say_end(), flush_tls();
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
  if (tls_ && waiting_since_ != 0) tls_->say_end(), flush_tls();  // none where an answer is cut short
  stream_.socket().shutdown(tcp::socket::shutdown_both, ignored);
  stream_.close();
  room_timer_.cancel();
}

}  // namespace sealift::offline_repo
