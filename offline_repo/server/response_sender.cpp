// SPDX-License-Identifier: Apache-2.0
// Header and bytes go out by sendmsg(2) and sendfile(2) on the socket itself, or through its TLS session.
#include "offline_repo/server/response_sender.hpp"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <cerrno>
#include <string_view>
#include <utility>

namespace sealift::offline_repo {

namespace net = boost::asio;
using boost::beast::error_code;

namespace {

constexpr std::uint64_t kPiece = std::uint64_t{256} << 10;  // has a deadline: small, since a slow client must meet it
constexpr std::uint64_t kSend = std::uint64_t{1} << 20;  // bytes of one system call: each costs, and wakes the client
constexpr std::uint64_t kTurn = std::uint64_t{2} << 20;  // bytes, then other connections of this thread send theirs
constexpr std::uint64_t kSmallBody = std::uint64_t{8} << 10;
constexpr std::uint64_t kPlainPiece = std::uint64_t{64} << 10;  // of an answer, encrypted at once

// Bytes that the system may keep unsent of one connection. With few of them it wakes a thread once for many, which
// takes half of the processor's time; with many, clients that take nothing cost little.
constexpr std::uint64_t kLeastUnsent = std::uint64_t{512} << 10, kMostUnsent = std::uint64_t{4} << 20;
constexpr std::uint64_t kAllUnsent = std::uint64_t{128} << 20;  // shared by as many as there are, down to the least

std::uint64_t unsent_for(std::uint64_t connections) {
  return std::clamp(kAllUnsent / std::max<std::uint64_t>(connections, 1), kLeastUnsent, kMostUnsent);
}

iovec part_of(std::string_view text) {
  return {.iov_base = const_cast<char*>(text.data()), .iov_len = text.size()};
}

}  // namespace

ResponseSender::ResponseSender(ServerState& state, ClientSocket& socket, Done done)
    : state_(state), socket_(socket), done_(std::move(done)), room_timer_(socket.executor()) {}

void ResponseSender::send(Response response, std::string header, bool bodiless, const Owner& owner) {
  response_ = std::move(response);
  body_ = bodiless ? ResponseBody() : ResponseBody(response_);
  header_ = std::move(header);
  header_sent_ = 0;
  piece_sent_ = 0;
  may_be_out_ = false;
  deadline_ = Clock::now() + state_.options.write_timeout;
  if (body_.size() > kLeastUnsent) socket_.keep_unsent(unsent_for(state_.metrics.connections));
  take_turn(owner);
}

void ResponseSender::forget() {
  body_ = {};
  chunk_.reset();
  small_.clear();
  response_ = {};
  header_.clear();
}

// Until the socket takes no more, the answer is out, or others should have their turn.
void ResponseSender::take_turn(const Owner& owner) {
  for (std::uint64_t turn = 0; turn < kTurn;) {
    if (is_small()) {
      if (!chunk_ && !take_chunk(owner)) return;
      copy_small();
    } else if (header_sent_ == header_.size()) {
      if (body_.sent() == body_.size()) return done_("");
      if (body_.payload() != nullptr && !chunk_ && !take_chunk(owner)) return;
    }
    may_be_out_ = header_.size() - header_sent_ + body_.size() - body_.sent() <= kSend;
    ++state_.sends.calls;
    const ssize_t count = send_piece();
    if (count < 0) may_be_out_ = false;
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return await_room(owner);
    if (count <= 0) return done_("the client went away");
    add_sent(static_cast<std::uint64_t>(count));
    turn += static_cast<std::uint64_t>(count);
  }
  chunk_.reset();
  ++state_.sends.turns;
  net::post(socket_.executor(), [this, owner] { take_turn(owner); });
}

// Whether the body is a few bytes of one chunk: to copy them costs less than a second system call.
bool ResponseSender::is_small() const {
  return body_.payload() != nullptr && header_sent_ == 0 && body_.size() <= kSmallBody && !body_.place().goes_on;
}

void ResponseSender::copy_small() {
  const ChunkPlace place = body_.place();
  small_ = chunk_->bytes(place.offset, place.count);
  chunk_.reset();
  body_.replace(small_);
}

// Whether there is a chunk now. If not, the answer ends, or goes on once another thread has read the chunk.
bool ResponseSender::take_chunk(const Owner& owner) {
  const ChunkPlace place = body_.place();
  if ((chunk_ = state_.cache.find(*body_.payload(), place.index))) return true;
  chunk_asked_ = Clock::now();
  try {
    chunk_ = state_.cache.take(
        *body_.payload(), place.index, place.goes_on,
        [this, owner](const ChunkCache::Chunk& chunk, const std::exception_ptr& fault) {
          net::post(socket_.executor(), [this, owner, chunk, fault] { go_on(chunk, fault, owner); });
        },
        body_.file_size());
  } catch (const std::exception& error) {
    unreadable(error);
    return false;
  }
  if (chunk_) deadline_ += Clock::now() - chunk_asked_;  // the client is not at fault for what reading took
  return chunk_ != nullptr;
}

void ResponseSender::go_on(const ChunkCache::Chunk& chunk, const std::exception_ptr& fault, const Owner& owner) {
  deadline_ += Clock::now() - chunk_asked_;
  chunk_ = chunk;
  if (fault) try {
      std::rethrow_exception(fault);
    } catch (const std::exception& error) {
      return unreadable(error);
    }
  take_turn(owner);
}

// As send(2) returns. A header leaves with what follows it.
ssize_t ResponseSender::send_piece() {
  if (socket_.tls() != nullptr) return send_tls();
  const int socket = socket_.descriptor();
  if (header_sent_ == header_.size() && chunk_) {
    const ChunkPlace place = body_.place();
    return chunk_->send(socket, place.offset, std::min(place.count, kSend));
  }
  const std::string_view header = std::string_view(header_).substr(header_sent_);
  const std::string_view text = body_.payload() != nullptr ? std::string_view() : body_.text_left().substr(0, kSend);
  iovec parts[] = {part_of(header), part_of(text)};
  msghdr message{};
  message.msg_iov = parts;
  message.msg_iovlen = 2;
  return ::sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT | (body_.payload() != nullptr ? MSG_MORE : 0));
}

// As send_piece(), but returns how many bytes of the answer were said, once the client's system has all that says them.
ssize_t ResponseSender::send_tls() {
  TlsSession& tls = *socket_.tls();
  if (tls.pending().empty()) {
    std::string piece = header_.substr(header_sent_, static_cast<std::size_t>(kPlainPiece));
    if (chunk_ && header_sent_ == header_.size())
      piece += chunk_->bytes(body_.place().offset, std::min(body_.place().count, kPlainPiece));
    else if (body_.payload() == nullptr)
      piece += body_.text_left().substr(0, static_cast<std::size_t>(kPlainPiece));
    if (!tls.write(piece)) {
      errno = ECONNRESET;
      return -1;
    }
    in_cipher_ = piece.size();
  }
  if (!socket_.flush()) return -1;
  return static_cast<ssize_t>(std::exchange(in_cipher_, 0));
}

void ResponseSender::add_sent(std::uint64_t count) {
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
void ResponseSender::await_room(const Owner& owner) {
  chunk_.reset();
  awaits_room_ = true;
  ++state_.sends.waits;
  in_system_ = socket_.bytes_in_system();
  watch_room(owner);
  socket_.await_room([this, owner](error_code error) {
    awaits_room_ = false;
    room_timer_.cancel();
    error ? done_("the client went away") : take_turn(owner);
  });
}

// The system may hold many pieces. A client that has taken one of them meanwhile has met the deadline.
void ResponseSender::watch_room(const Owner& owner) {
  room_timer_.expires_at(deadline_);
  room_timer_.async_wait([this, owner](error_code error) {
    if (error || !awaits_room_ || Clock::now() < deadline_) return;
    const std::uint64_t left = socket_.bytes_in_system();
    if (left + kPiece > in_system_) return socket_.close(false);
    in_system_ = left;
    deadline_ = Clock::now() + state_.options.write_timeout;
    watch_room(owner);
  });
}

// Ends this answer and no other.
void ResponseSender::unreadable(const std::exception& error) {
  const auto* part = std::get_if<WheelPart>(&response_.body);
  if (part != nullptr && dynamic_cast<const bundle::Error*>(&error) != nullptr)
    state_.fail(part->wheel->in, body_.place().index, error.what());
  state_.options.on_fault(std::string("a file could not be served, the connection ends: ") + error.what());
  done_("unreadable");
}

}  // namespace sealift::offline_repo
