// SPDX-License-Identifier: Apache-2.0
// GET into memory and HEAD; see remote_documents.hpp.
#include "packager/network/remote_documents.hpp"

#include <fmt/format.h>

#include "packager/host/url.hpp"
#include "packager/network/http_request.hpp"
#include "sealift/bundle/core/error.hpp"

namespace sealift::packager {

namespace {

struct DocumentTooLong {};

struct Attempt {
  RemoteDocument document;
  std::string failure;  // empty: the document is complete
  bool may_retry = false;
  std::uint64_t wait = 0;  // seconds that the server wants
};

Attempt get_once(const HttpRequest& with_url, std::uint64_t max_size) {
  Attempt attempt;
  HttpRequest request = with_url;
  request.take = [&](bundle::ByteView bytes) {
    if (attempt.document.body.size() + bytes.size() > max_size) throw DocumentTooLong{};
    attempt.document.body += bundle::as_text(bytes);
  };
  try {
    HttpResponse response = run_request(request);
    attempt.document.link = std::move(response.link);
    attempt.failure = std::move(response.failure);
    attempt.may_retry = response.may_retry;
    attempt.wait = response.wait;
  } catch (const DocumentTooLong&) {
    attempt.failure = fmt::format("more than {} bytes", max_size);
  }
  return attempt;
}

}  // namespace

std::vector<RemoteDocument> get_documents(const std::vector<std::string>& urls, const std::string& bearer,
                                          std::uint64_t max_size, const FetchOptions& options, const std::string& what,
                                          const std::string& hint, const HttpLogins* logins) {
  std::vector<RemoteDocument> documents(urls.size());
  parallel_requests(options.jobs, urls.size(), [&](std::size_t index, const StopCheck& check) {
    for (int failures = 0;;) {
      Attempt attempt =
          get_once({.url = urls[index], .bearer = bearer, .logins = logins, .take = {}, .check = check}, max_size);
      if (attempt.failure.empty()) {
        documents[index] = std::move(attempt.document);
        return;
      }
      if (!attempt.may_retry || ++failures >= options.attempts)
        throw bundle::Error(bundle::ErrorCode::Network,
                            {.what = what, .where = shown_url(urls[index]), .got = attempt.failure, .next = hint});
      pause_before_retry(options, failures, check, attempt.wait);
    }
  });
  return documents;
}

std::vector<std::uint64_t> remote_sizes(const std::vector<std::string>& urls, unsigned jobs, const HttpLogins& logins) {
  std::vector<std::uint64_t> sizes(urls.size());
  parallel_requests(jobs, urls.size(), [&](std::size_t index, const StopCheck& check) {
    const HttpResponse response =
        run_request({.url = urls[index], .logins = &logins, .only_headers = true, .take = {}, .check = check});
    if (response.failure.empty() && !response.is_encoded) sizes[index] = response.size;
  });
  return sizes;
}

}  // namespace sealift::packager
