// SPDX-License-Identifier: Apache-2.0
// Pieces of a file by range requests; see remote_file.hpp. A wheel's directory and metadata stand at its end, so that
// end is kept and grows; anything far above it is fetched a page at a time.
#include "packager/network/remote_file.hpp"

#include <algorithm>

#include "packager/host/url.hpp"
#include "packager/network/http_request.hpp"
#include "sealift/bundle/core/error.hpp"

namespace sealift::packager {

using bundle::Bytes;
using bundle::ByteView;

namespace {

constexpr std::uint64_t kFirstPiece = std::uint64_t{128} << 10;  // of the end; most directories are shorter
constexpr std::uint64_t kNear = std::uint64_t{4} << 20;          // above the end: fetched up to there
constexpr std::uint64_t kPage = std::uint64_t{64} << 10;
constexpr std::uint64_t kMostOfFile = std::uint64_t{64} << 20;

ByteView part_of(const Bytes& bytes, std::uint64_t at, std::size_t wanted) {
  const std::size_t offset = static_cast<std::size_t>(at);
  return ByteView(bytes).subspan(offset, std::min(wanted, bytes.size() - offset));
}

}  // namespace

ByteView RemoteFile::view(std::uint64_t offset, std::size_t wanted) {
  if (offset >= end_begin_) return part_of(end_, offset - end_begin_, wanted);
  if (offset >= page_begin_ && offset - page_begin_ < page_.size()) return part_of(page_, offset - page_begin_, wanted);
  const bool first = end_begin_ == size_;
  if (first || end_begin_ - offset <= kNear) {
    const std::uint64_t from = first ? std::min(offset, size_ - std::min(size_, kFirstPiece)) : offset;
    Bytes longer = fetch(from, end_begin_ - from);
    longer.insert(longer.end(), end_.begin(), end_.end());
    end_ = std::move(longer);
    end_begin_ = from;
    return part_of(end_, offset - end_begin_, wanted);
  }
  page_ = fetch(offset, std::min(kPage, end_begin_ - offset));
  page_begin_ = offset;
  return part_of(page_, 0, wanted);
}

std::string RemoteFile::name() const {
  return shown_url(url_);
}

Bytes RemoteFile::fetch(std::uint64_t from, std::uint64_t count) {
  if (count > kMostOfFile - fetched_) fail("more of it would be read than is fetched for this");
  fetched_ += count;
  Bytes piece;
  piece.reserve(static_cast<std::size_t>(count));
  const HttpResponse response = run_request({.url = url_,
                                             .bearer = {},
                                             .logins = &logins_,
                                             .resume_at = from,
                                             .length = count,
                                             .take =
                                                 [&](ByteView bytes) {
                                                   if (bytes.size() > count - piece.size())
                                                     fail("the server sent more than was asked for");
                                                   piece.insert(piece.end(), bytes.begin(), bytes.end());
                                                 },
                                             .check = check_});
  if (!response.failure.empty()) fail(response.failure);
  if (piece.size() != count) fail("the server sent less than was asked for");
  return piece;
}

void RemoteFile::fail(const std::string& why) const {
  throw bundle::Error(bundle::ErrorCode::Network,
                      {.what = "a wheel cannot be looked into", .where = shown_url(url_), .got = why});
}

}  // namespace sealift::packager
