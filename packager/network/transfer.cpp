// SPDX-License-Identifier: Apache-2.0
// One attempt of a download; see transfer.hpp. The size limit is checked before a byte is written, the digest after the
// last one: a file with wrong bytes never reaches the cache.
#include "packager/network/transfer.hpp"

#include <fmt/format.h>

#include "packager/host/url.hpp"
#include "packager/network/http_request.hpp"

namespace sealift::packager {

using bundle::Digest;
using bundle::Error;
using bundle::ErrorCode;

namespace {

struct TooLong {};

}  // namespace

Transfer::Transfer(const Download& download, const Cache& cache, bundle::Progress& progress,
                   const FetchOptions& options)
    : download_(download),
      options_(options),
      most_(download.size != 0 ? download.size : options.most_unsized),
      part_(cache, download.sha256, progress) {}

std::string Transfer::attempt(const std::function<void()>& check) {
  if (part_.size() > most_ || decode_) part_.discard();  // no server continues what it decodes
  resumed_at_ = part_.size();
  const auto take = [this](bundle::ByteView bytes) {
    if (part_.size() + bytes.size() > most_) throw TooLong{};
    part_.write(bytes);
  };
  HttpResponse response;
  bool encoded = false;
  try {
    response = run_request({.url = download_.url,
                            .bearer = download_.bearer,
                            .logins = &options_.logins,
                            .resume_at = resumed_at_,
                            .decode = decode_,
                            .encoded = &encoded,
                            .take = take,
                            .check = check});
  } catch (const TooLong&) {
    if (encoded && !decode_) return decoded(check);
    return wrong_bytes(fmt::format("more than {} bytes", most_));
  }
  wait_ = response.wait;
  is_limited_ = response.is_limited;
  if (response.failure.empty() || (response.beyond_end && part_.size() == download_.size))
    return finish(encoded && !decode_, check);
  // The server cannot continue where we stopped, or continues something else.
  if (response.cannot_resume) part_.discard();
  needs_login_ = response.needs_login && download_.bearer.empty();
  if (!response.may_retry) fail(response.failure);
  return response.failure;
}

// Either the file is stored compressed there, and its digest is that of what was sent; or it is compressed on its way.
std::string Transfer::decoded(const std::function<void()>& check) {
  decode_ = true;
  part_.discard();
  return attempt(check);
}

std::string Transfer::finish(bool may_decode, const std::function<void()>& check) {
  if (may_decode && download_.size != 0 && part_.size() != download_.size) return decoded(check);
  if (download_.size != 0 && part_.size() < download_.size)
    return fmt::format("the connection ended after {} of {} bytes", part_.size(), download_.size);
  const std::uint64_t size = part_.size();
  if (const Digest digest = part_.finish_digest(); digest != download_.sha256)
    return may_decode ? decoded(check) : wrong_bytes(fmt::format("{} bytes, sha256 {}", size, digest.hex()));
  part_.adopt();
  return {};
}

// A part from an earlier run may be what is wrong, so a resumed file gets one fresh start.
std::string Transfer::wrong_bytes(const std::string& got) {
  if (resumed_at_ > 0) {
    part_.discard();
    return "what was resumed is not the locked file; starting anew";
  }
  part_.remove();
  throw Error(ErrorCode::Digest,
              {.what = "a download is not the file that was locked: " + download_.name,
               .where = shown_url(download_.url),
               .expected = (download_.size != 0 ? fmt::format("{} bytes, ", download_.size) : "") + "sha256 " +
                           download_.sha256.hex(),
               .got = got,
               .next = "it was not kept; ask the index for another mirror, or lock again if the file was replaced"});
}

void Transfer::fail(const std::string& reason) const {
  throw Error(
      ErrorCode::Network,
      {.what = "a download failed: " + download_.name,
       .where = shown_url(download_.url),
       .got = reason,
       .next = needs_login_ ? options_.logins.remedy(download_.url) +
                                  "; then run the same command again; or lock again, if it is gone"
               : is_limited_ ? kLimitRemedy
                             : "check network, proxy (https_proxy) and certificates (SSL_CERT_FILE), then run the same "
                               "command again; what has arrived is kept"});
}

}  // namespace sealift::packager
