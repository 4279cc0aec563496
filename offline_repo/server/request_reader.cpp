// SPDX-License-Identifier: Apache-2.0
// Looks for a head's end by hand: Beast would parse what request_head.hpp has not judged yet.
#include "offline_repo/server/request_reader.hpp"

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <utility>

namespace sealift::offline_repo {

namespace net = boost::asio;
using boost::beast::error_code;

namespace {

constexpr char kTlsHandshake = 0x16;  // RFC 8446, 5.1: no request begins so
constexpr std::string_view kEmptyLine = "\r\n\r\n";

}  // namespace

RequestReader::RequestReader(ClientSocket& socket, std::size_t max_head)
    : socket_(socket), max_head_(max_head), buffer_(max_head) {}

void RequestReader::await(Then then) {
  socket_.read_some(buffer_, std::min<std::size_t>(1024, max_head_), std::move(then));
}

void RequestReader::read_head(Head then) {
  scanned_ = 0;
  find_end(std::move(then));
}

void RequestReader::find_end(Head then) {
  const std::string_view all(static_cast<const char*>(buffer_.data().data()), buffer_.size());
  if (socket_.tls() == nullptr && all.starts_with(kTlsHandshake))
    return then(net::error::connection_reset, {});  // a client that tries TLS first goes on without it at once
  const std::size_t end = all.find(kEmptyLine, scanned_ - std::min(scanned_, kEmptyLine.size() - 1));
  if (end != all.npos) return then({}, all.substr(0, end + kEmptyLine.size()));
  scanned_ = all.size();
  if (scanned_ == max_head_) return then(net::error::message_size, {});
  const std::size_t wanted = std::min<std::size_t>(4096, max_head_ - scanned_);
  socket_.read_some(buffer_, wanted, [this, then = std::move(then)](error_code error) mutable {
    error ? then(error, {}) : find_end(std::move(then));
  });
}

void RequestReader::read_body(std::string& body, Then then) {
  fill(body, 0, std::move(then));
}

// `here`: bytes of it that are there.
void RequestReader::fill(std::string& body, std::size_t here, Then then) {
  const std::size_t more = net::buffer_copy(net::buffer(body) + here, buffer_.data());
  buffer_.consume(more);
  here += more;
  if (here == body.size()) return then({});
  const std::size_t wanted = std::min(body.size() - here, max_head_);
  socket_.read_some(buffer_, wanted, [this, &body, here, then = std::move(then)](error_code error) mutable {
    error ? then(error) : fill(body, here, std::move(then));
  });
}

}  // namespace sealift::offline_repo
