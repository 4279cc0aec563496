// SPDX-License-Identifier: Apache-2.0
// Beast and Asio behind server.hpp: asynchronous connections on a few threads, each with limits and deadlines.
// A connection holds at most one chunk of payload; it is sent only after its digest held, and if it does not hold the
// connection ends, so that a client sees a short answer and never a wrong one.
#include "offline_repo/server/server.hpp"

#include <atomic>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>
#include <charconv>
#include <csignal>
#include <ctime>
#include <map>
#include <optional>
#include <thread>
#include <vector>

#include "offline_repo/server/routes.hpp"

namespace sealift::offline_repo {

namespace {

namespace net = boost::asio;
namespace http = boost::beast::http;
using boost::beast::error_code;
using boost::beast::tcp_stream;
using bundle::Error;
using bundle::ErrorCode;
using net::ip::tcp;

constexpr std::size_t kPiece = std::size_t{256} << 10;
constexpr std::chrono::milliseconds kLinger{2'000};
constexpr std::chrono::milliseconds kAcceptPause{100};  // after running out of descriptors

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

// What connections have in common. It outlives them.
struct House {
  Catalog catalog;
  ServerOptions options;
  net::io_context context;
  std::atomic<bool> stopping{false};
};

// One client's connection, alive as long as an operation of its own is under way.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(House& house, tcp::socket socket)
      : house_(house),
        stream_(std::move(socket)),
        peer_(peer_name(stream_)),
        buffer_(house.options.max_header + kPiece) {
    error_code ignored;  // headers and bodies are separate writes
    stream_.socket().set_option(tcp::no_delay(true), ignored);
  }

  void start() {
    net::dispatch(stream_.get_executor(), [self = shared_from_this()] { self->read_request(); });
  }

  // From any thread: ends the connection unless an answer is under way; after that it ends by itself.
  void end_if_idle() {
    net::post(stream_.get_executor(), [self = shared_from_this()] {
      if (self->idle_) self->close();
    });
  }
  void end_now() {
    net::post(stream_.get_executor(), [self = shared_from_this()] { self->close(); });
  }

 private:
  void read_request() {
    if (house_.stopping) return close();
    idle_ = true;
    head_ = false;
    version_ = 11;
    parser_.emplace();
    parser_->header_limit(static_cast<std::uint32_t>(house_.options.max_header));
    parser_->skip(true);  // a body is never read: its request gets a refusal, then the connection ends
    stream_.expires_after(house_.options.request_timeout);
    http::async_read_header(stream_, buffer_, *parser_, [self = shared_from_this()](error_code error, std::size_t) {
      self->idle_ = false;
      self->on_request(error);
    });
  }

  void on_request(error_code error) {
    static const auto& http_errors = http::make_error_code(http::error::end_of_stream).category();
    if (error == http::error::end_of_stream || error == http::error::partial_message) return close();
    if (error == http::error::header_limit || error == http::error::buffer_overflow)
      return refuse(431, "the request's headers are too long");
    if (error && error.category() == http_errors) return refuse(400, "the request is not HTTP: " + error.message());
    if (error) return close();
    const http::request<http::empty_body>& message = parser_->get();
    keep_alive_ = parser_->keep_alive() && parser_->content_length().value_or(0) == 0 && !parser_->chunked();
    version_ = message.version();
    head_ = message.method() == http::verb::head;
    line_ = std::string(message.method_string()) + " " + bundle::SafePath::printable(std::string(message.target()));
    if (version_ >= 11 && message.count(http::field::host) != 1)
      return refuse(400, "an HTTP/1.1 request has exactly one Host header");
    answer(respond(house_.catalog, {.method = std::string(message.method_string()),
                                    .target = std::string(message.target()),
                                    .accept = joined(message, http::field::accept),
                                    .range = joined(message, http::field::range),
                                    .if_range = joined(message, http::field::if_range),
                                    .if_none_match = joined(message, http::field::if_none_match)}));
  }

  static std::string joined(const http::request<http::empty_body>& message, http::field field) {
    std::string all;
    const auto [begin, end] = message.equal_range(field);
    for (auto it = begin; it != end; ++it) all += (all.empty() ? "" : ", ") + std::string(it->value());
    return all;
  }

  void refuse(unsigned status, const std::string& why) {
    keep_alive_ = false;
    if (line_.empty()) line_ = "-";
    answer(refusal(status, why));
  }

  // Header first, then the body piece by piece; a HEAD request and a 304 end after the header.
  void answer(Response response) {
    response_ = std::move(response);
    sent_ = 0;
    const bool bodiless = head_ || response_.status == 304;
    to_send_ = bodiless ? 0 : response_.body_size();
    if (house_.stopping) keep_alive_ = false;
    header_ = {static_cast<http::status>(response_.status), version_};
    header_.set(http::field::server, "sealift-repo");
    header_.set(http::field::date, now("%a, %d %b %Y %T GMT"));
    for (const auto& [name, value] : response_.headers) header_.set(name, value);
    if (response_.status != 304) header_.content_length(response_.body_size());
    header_.keep_alive(keep_alive_);
    serializer_.emplace(header_);
    stream_.expires_after(house_.options.write_timeout);
    http::async_write_header(stream_, *serializer_, [self = shared_from_this()](error_code error, std::size_t) {
      error ? self->finish("the client went away") : self->send_body();
    });
  }

  void send_body() {
    if (sent_ == to_send_) return finish("");
    net::const_buffer piece;
    try {
      piece = next_piece();
    } catch (const std::exception& error) {  // one connection's fault must not end the others
      house_.options.on_fault(std::string("a file could not be served, the connection ends: ") + error.what());
      return finish("unreadable");
    }
    stream_.expires_after(house_.options.write_timeout);
    net::async_write(stream_, piece, [self = shared_from_this()](error_code error, std::size_t count) {
      self->sent_ += count;
      error ? self->finish("the client went away") : self->send_body();
    });
  }

  // At least one byte of what is left to send, valid until the next call; throws Digest for a damaged chunk.
  net::const_buffer next_piece() {
    const std::uint64_t left = std::min<std::uint64_t>(to_send_ - sent_, kPiece);
    const auto* part = std::get_if<WheelPart>(&response_.body);
    if (part == nullptr)
      return net::buffer(std::get<std::string>(response_.body).data() + sent_, static_cast<std::size_t>(left));
    const bundle::PayloadReader& payload = part->wheel->in->payload();
    const std::uint64_t chunk_size = payload.payload().chunk_size;
    const std::uint64_t position = part->wheel->payload_offset + part->range.first + sent_;
    if (chunk_.empty() || position / chunk_size != chunk_index_) {
      chunk_ = payload.chunk(position / chunk_size, std::move(chunk_));
      chunk_index_ = position / chunk_size;
    }
    const bundle::ByteView rest = chunk_.view().subspan(static_cast<std::size_t>(position % chunk_size));
    return net::buffer(rest.data(), static_cast<std::size_t>(std::min<std::uint64_t>(rest.size(), left)));
  }

  // `trouble` is empty when everything was sent.
  void finish(const std::string& trouble) {
    std::string line =
        now("%FT%TZ ") + peer_ + " " + line_ + " " + std::to_string(response_.status) + " " + std::to_string(sent_);
    if (!trouble.empty()) line += " of " + std::to_string(to_send_) + ", " + trouble;
    house_.options.on_request(line);
    chunk_ = {};
    line_.clear();
    if (!trouble.empty()) return close();
    keep_alive_ ? read_request() : linger();
  }

  // Closing while the client still sends would discard our answer on its way, so what comes is read for a moment.
  void linger() {
    error_code ignored;
    stream_.socket().shutdown(tcp::socket::shutdown_send, ignored);
    stream_.expires_after(kLinger);
    idle_ = true;
    drain();
  }
  void drain() {
    buffer_.clear();
    stream_.async_read_some(buffer_.prepare(4096), [self = shared_from_this()](error_code error, std::size_t) {
      error ? self->close() : self->drain();
    });
  }

  void close() {
    error_code ignored;
    stream_.socket().shutdown(tcp::socket::shutdown_both, ignored);
    stream_.close();
  }

  House& house_;
  tcp_stream stream_;
  std::string peer_;
  boost::beast::flat_buffer buffer_;
  std::optional<http::request_parser<http::empty_body>> parser_;
  http::response<http::empty_body> header_;
  std::optional<http::response_serializer<http::empty_body>> serializer_;
  Response response_;
  std::string line_;  // of the request, for the log
  unsigned version_ = 11;
  bool idle_ = false;  // waiting for a request, or for the client to close
  bool head_ = false;
  bool keep_alive_ = false;
  std::uint64_t to_send_ = 0;  // of the body
  std::uint64_t sent_ = 0;
  bundle::ChunkBuffer chunk_;  // the last one, checked
  std::uint64_t chunk_index_ = 0;
};

[[noreturn]] void throw_listen(const ListenAddress& address, const error_code& error) {
  throw Error(ErrorCode::Io, {.what = "this address cannot be listened on",
                              .where = address.text(),
                              .got = error.message(),
                              .next = "choose another one with --listen ADDRESS:PORT"});
}

}  // namespace

std::string ListenAddress::text() const {
  const std::string shown = host.find(':') != std::string::npos ? "[" + host + "]" : host;
  return shown + ":" + std::to_string(port);
}

ListenAddress parse_listen(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  std::string_view host = text.substr(0, colon);
  const bool brackets = host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (brackets) host = host.substr(1, host.size() - 2);
  const std::string_view digits = colon == text.npos ? std::string_view() : text.substr(colon + 1);
  ListenAddress address{.host = std::string(host)};
  const auto [end, failure] = std::from_chars(digits.data(), digits.data() + digits.size(), address.port);
  error_code error;
  const net::ip::address numeric = net::ip::make_address(address.host, error);
  const bool port_ok = !digits.empty() && failure == std::errc() && end == digits.data() + digits.size();
  if (!port_ok || error || numeric.is_v6() != brackets)
    throw Error(ErrorCode::Usage, {.what = "this is not an address to listen on",
                                   .expected = "a numeric ADDRESS:PORT such as 127.0.0.1:8080, [::1]:8080, 0.0.0.0:80",
                                   .got = bundle::SafePath::printable(text)});
  return address;
}

struct Server::Impl {
  Impl(Catalog catalog, ServerOptions options)
      : house{.catalog = std::move(catalog), .options = std::move(options), .context = {}},
        acceptor(net::make_strand(house.context)),
        timer(acceptor.get_executor()),
        signals(acceptor.get_executor()) {
    const ListenAddress& wanted = house.options.listen;
    const tcp::endpoint endpoint(net::ip::make_address(wanted.host), wanted.port);
    error_code error;
    acceptor.open(endpoint.protocol(), error);
    if (!error) acceptor.set_option(net::socket_base::reuse_address(true), error);
    if (!error) acceptor.bind(endpoint, error);
    if (!error) acceptor.listen(net::socket_base::max_listen_connections, error);
    if (error) throw_listen(wanted, error);
  }

  void accept() {
    if (house.stopping || connections.size() >= house.options.max_connections) {
      accepting = false;
      return;
    }
    accepting = true;
    acceptor.async_accept(net::make_strand(house.context), [this](error_code error, tcp::socket socket) {
      if (house.stopping) return;
      if (!error) admit(std::move(socket));
      if (!error || error == net::error::connection_aborted) return accept();
      house.options.on_fault("a connection cannot be accepted: " + error.message());
      timer.expires_after(kAcceptPause);
      timer.async_wait([this](error_code) { accept(); });
    });
  }

  // The last owner of a connection lets go of it on some thread; the books are kept on the acceptor's strand.
  void admit(tcp::socket socket) {
    auto* connection = new Connection(house, std::move(socket));
    std::shared_ptr<Connection> owned(connection, [this](Connection* gone) {
      delete gone;
      net::post(acceptor.get_executor(), [this, gone] { forget(gone); });
    });
    connections.emplace(connection, owned);
    owned->start();
  }
  void forget(Connection* gone) {
    connections.erase(gone);
    if (house.stopping && connections.empty()) timer.cancel();
    if (!accepting && !house.stopping) accept();
  }

  void begin_stop() {
    if (house.stopping.exchange(true)) return;
    error_code ignored;
    acceptor.close(ignored);
    signals.cancel(ignored);
    for (const auto& [key, weak] : connections)
      if (const std::shared_ptr<Connection> connection = weak.lock()) connection->end_if_idle();
    if (connections.empty()) return;
    timer.expires_after(house.options.stop_timeout);
    timer.async_wait([this](error_code error) {
      if (error) return;
      for (const auto& [key, weak] : connections)
        if (const std::shared_ptr<Connection> connection = weak.lock()) connection->end_now();
    });
  }

  House house;
  tcp::acceptor acceptor;  // its strand guards what follows
  net::steady_timer timer;
  net::signal_set signals;
  std::map<Connection*, std::weak_ptr<Connection>> connections;
  bool accepting = false;
};

Server::Server(Catalog catalog, ServerOptions options)
    : impl_(std::make_unique<Impl>(std::move(catalog), std::move(options))) {}

Server::~Server() = default;

ListenAddress Server::address() const {
  const tcp::endpoint endpoint = impl_->acceptor.local_endpoint();
  return {.host = endpoint.address().to_string(), .port = endpoint.port()};
}

void Server::run() {
  Impl& impl = *impl_;
  impl.signals.add(SIGTERM);
  impl.signals.add(SIGINT);
  impl.signals.async_wait([&impl](error_code error, int) {
    if (!error) impl.begin_stop();
  });
  net::dispatch(impl.acceptor.get_executor(), [&impl] { impl.accept(); });
  const auto work = [&house = impl.house] {
    for (;;) try {
        house.context.run();
        return;
      } catch (const std::exception& error) {  // memory ran out: the request at hand is lost with its connection
        house.options.on_fault(std::string("a request was given up: ") + error.what());
      }
  };
  std::vector<std::jthread> workers;
  for (unsigned i = 1; i < impl.house.options.threads; ++i) workers.emplace_back(work);
  work();
}

void Server::stop() {
  net::post(impl_->acceptor.get_executor(), [impl = impl_.get()] { impl->begin_stop(); });
}

}  // namespace sealift::offline_repo
