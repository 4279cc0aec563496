// SPDX-License-Identifier: Apache-2.0
// The curl door: one easy handle a thread, which keeps its connection for the next request to the same server; see
// http_request.hpp. Exceptions of the callbacks are carried past libcurl, which is C and must not see them.
#include "packager/network/http_request.hpp"

#include <curl/curl.h>

#include <cstdlib>
#include <exception>
#include <memory>
#include <span>
#include <string>

#include "packager/host/netrc.hpp"
#include "packager/host/trusted_certificates.hpp"
#include "sealift/bundle/core/error.hpp"

namespace sealift::packager {

using bundle::Error;
using bundle::ErrorCode;

namespace {

struct EasyCloser {
  void operator()(CURL* handle) const { curl_easy_cleanup(handle); }
};
using Easy = std::unique_ptr<CURL, EasyCloser>;

// Takes the options away again, some of which point into the caller; connections stay.
struct Resetter {
  void operator()(CURL* handle) const { curl_easy_reset(handle); }
};
using Borrowed = std::unique_ptr<CURL, Resetter>;

// libcurl honours proxy variables by itself, but these only through its command line tool.
void use_certificates(CURL* easy) {
  if (const std::string file = trusted_certificates(); !file.empty())
    curl_easy_setopt(easy, CURLOPT_CAINFO, file.c_str());
  if (const char* folder = std::getenv("SSL_CERT_DIR"); folder != nullptr && *folder != '\0')
    curl_easy_setopt(easy, CURLOPT_CAPATH, folder);
}

// This thread's handle, with the options that every request has.
Borrowed handle_for(const std::string& url) {
  static const CURLcode started = curl_global_init(CURL_GLOBAL_DEFAULT);
  thread_local const Easy handle(started == CURLE_OK ? curl_easy_init() : nullptr);
  if (!handle) throw Error(ErrorCode::Network, {.what = "libcurl did not start"});
  Borrowed borrowed(handle.get());
  CURL* easy = borrowed.get();
  curl_easy_setopt(easy, CURLOPT_URL, url.c_str());
  curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https,file");
  curl_easy_setopt(easy, CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 1L);
  curl_easy_setopt(easy, CURLOPT_MAXREDIRS, 10L);
  curl_easy_setopt(easy, CURLOPT_FAILONERROR, 1L);
  curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);  // signals and threads do not go together
  curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT, 30L);
  curl_easy_setopt(easy, CURLOPT_LOW_SPEED_LIMIT, 1L);
  curl_easy_setopt(easy, CURLOPT_LOW_SPEED_TIME, 60L);
  // A connection a thread: large files gain more from several connections than from one that is shared.
  curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  curl_easy_setopt(easy, CURLOPT_USERAGENT, "sealift-pack");
  use_certificates(easy);
  return borrowed;
}

// As an option of libcurl and not as a header of ours, so that a redirect to another host does not get it.
void use_bearer(CURL* easy, const std::string& bearer) {
  if (bearer.empty()) return;
  curl_easy_setopt(easy, CURLOPT_HTTPAUTH, static_cast<long>(CURLAUTH_BEARER));
  curl_easy_setopt(easy, CURLOPT_XOAUTH2_BEARER, bearer.c_str());
}

// As an option, too: libcurl keeps it from another host, scheme or port that a redirect leads to.
void use_login(CURL* easy, const HttpLogin& login) {
  curl_easy_setopt(easy, CURLOPT_HTTPAUTH, static_cast<long>(CURLAUTH_BASIC));
  curl_easy_setopt(easy, CURLOPT_USERNAME, login.name.c_str());
  curl_easy_setopt(easy, CURLOPT_PASSWORD, login.password.c_str());
}

bool may_retry(CURLcode result, long status) {
  if (result == CURLE_HTTP_RETURNED_ERROR)
    return status >= 500 || status == 408 || status == 416 || status == 425 || status == 429;
  return result != CURLE_URL_MALFORMAT && result != CURLE_UNSUPPORTED_PROTOCOL &&
         result != CURLE_PEER_FAILED_VERIFICATION && result != CURLE_SSL_CACERT_BADFILE &&
         result != CURLE_FILE_COULDNT_READ_FILE;
}

std::string header_of(CURL* easy, const char* name) {
  curl_header* found = nullptr;
  return curl_easy_header(easy, name, 0, CURLH_HEADER, -1, &found) == CURLHE_OK ? found->value : "";
}

// What libcurl calls back, with what a callback threw.
struct Callbacks {
  const HttpRequest& request;
  CURL* easy;
  std::exception_ptr thrown = {};
  bool no_parts = false;  // the server sent the whole file where a part was asked for

  template <class Call>
  bool succeeds(const Call& call) {
    try {
      call();
      return true;
    } catch (...) {
      thrown = std::current_exception();
      return false;
    }
  }
  bool sent_whole() {
    long status = 0;
    if (request.length > 0) curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
    no_parts = status != 0 && status != 206;  // 0: a file of this machine
    return no_parts;
  }
  static std::size_t on_data(char* data, std::size_t, std::size_t count, void* self) {
    Callbacks& callbacks = *static_cast<Callbacks*>(self);
    if (callbacks.sent_whole()) return 0;
    if (callbacks.request.encoded != nullptr)
      *callbacks.request.encoded = !header_of(callbacks.easy, "Content-Encoding").empty();
    const auto take = [&] {
      if (callbacks.request.take) callbacks.request.take(std::as_bytes(std::span(data, count)));
    };
    return callbacks.succeeds(take) ? count : 0;
  }
  static int on_progress(void* self, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
    Callbacks& callbacks = *static_cast<Callbacks*>(self);
    return callbacks.succeeds([&] { callbacks.request.check(); }) ? 0 : 1;
  }
};

HttpResponse run_once(const HttpRequest& request, const std::optional<HttpLogin>& login) {
  char error[CURL_ERROR_SIZE] = {};
  const Borrowed borrowed = handle_for(request.url);
  CURL* easy = borrowed.get();
  Callbacks callbacks{.request = request, .easy = easy};
  curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, error);
  curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, &Callbacks::on_data);
  curl_easy_setopt(easy, CURLOPT_WRITEDATA, &callbacks);
  if (request.check) {
    curl_easy_setopt(easy, CURLOPT_NOPROGRESS, 0L);
    curl_easy_setopt(easy, CURLOPT_XFERINFOFUNCTION, &Callbacks::on_progress);
    curl_easy_setopt(easy, CURLOPT_XFERINFODATA, &callbacks);
  }
  use_bearer(easy, request.bearer);
  if (login) use_login(easy, *login);
  if (request.decode) curl_easy_setopt(easy, CURLOPT_ACCEPT_ENCODING, "identity");  // asks for none, and undoes one
  if (request.only_headers) curl_easy_setopt(easy, CURLOPT_NOBODY, 1L);
  if (request.length > 0) {
    const std::string range =
        std::to_string(request.resume_at) + "-" + std::to_string(request.resume_at + request.length - 1);
    curl_easy_setopt(easy, CURLOPT_RANGE, range.c_str());  // libcurl copies it
  } else if (request.resume_at > 0)
    curl_easy_setopt(easy, CURLOPT_RESUME_FROM_LARGE, static_cast<curl_off_t>(request.resume_at));

  const CURLcode result = curl_easy_perform(easy);
  if (callbacks.thrown) std::rethrow_exception(callbacks.thrown);
  HttpResponse response;
  long status = 0;
  curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
  if (result != CURLE_OK) response.failure = error[0] != '\0' ? error : curl_easy_strerror(result);
  if (callbacks.no_parts) response.failure = "the server does not send parts of files";
  response.is_missing = result == CURLE_HTTP_RETURNED_ERROR && (status == 403 || status == 404);
  response.needs_login = result == CURLE_HTTP_RETURNED_ERROR && (status == 401 || status == 403);
  if (response.needs_login)
    response.failure = status == 401
                           ? "the server asks for a login (401)"
                           : "the server wants a login, refuses the one it was given, or does not have this (403)";
  response.is_limited = result == CURLE_HTTP_RETURNED_ERROR && status == 429;
  if (response.is_limited) response.failure = "the server limits how often it is asked (429)";
  curl_off_t wait = 0;
  curl_easy_getinfo(easy, CURLINFO_RETRY_AFTER, &wait);
  if (wait > 0) response.wait = static_cast<std::uint64_t>(wait);
  response.is_encoded = !header_of(easy, "Content-Encoding").empty();
  response.may_retry = may_retry(result, status);
  response.beyond_end = result == CURLE_HTTP_RETURNED_ERROR && status == 416;
  response.cannot_resume = result == CURLE_RANGE_ERROR || status == 416 || result == CURLE_BAD_DOWNLOAD_RESUME;
  curl_off_t size = -1;
  curl_easy_getinfo(easy, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &size);
  if (size > 0) response.size = static_cast<std::uint64_t>(size);
  response.link = header_of(easy, "Link");
  return response;
}

// The address with %2B for each '+' of its path; the address itself where there is none.
std::string with_plus_encoded(const std::string& url) {
  const std::size_t end = std::min(url.find_first_of("?#"), url.size());
  std::string out;
  for (std::size_t i = 0; i < url.size(); ++i) out += url[i] == '+' && i < end ? "%2B" : std::string(1, url[i]);
  return out;
}

HttpResponse run_as_asked(HttpRequest request, const std::optional<HttpLogin>& login) {
  HttpResponse response = run_once(request, login);
  const std::string encoded = with_plus_encoded(request.url);
  if (!response.is_missing || encoded == request.url) return response;
  request.url = encoded;
  HttpResponse other = run_once(request, login);
  return other.is_missing ? response : other;
}

}  // namespace

HttpResponse run_request(const HttpRequest& request) {
  if (!request.bearer.empty() || request.logins == nullptr) return run_as_asked(request, {});
  HttpRequest asked = request;
  asked.url = request.logins->as_asked(request.url);
  if (const std::vector<std::string> unset = variables_in(asked.url); !unset.empty()) {
    HttpResponse response;
    response.failure = "its address names the variable " + unset.front() + ", which is not set";
    return response;
  }
  const std::optional<HttpLogin> known = request.logins->of(asked.url);
  HttpResponse response = run_as_asked(asked, known);
  if (!response.needs_login || known) return response;
  const std::optional<HttpLogin> login = netrc_login(asked.url);
  return login ? run_as_asked(asked, login) : response;
}

}  // namespace sealift::packager
