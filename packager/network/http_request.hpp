// SPDX-License-Identifier: Apache-2.0
// One request to a server, from its first byte to its last, on the calling thread. Every download and every question
// goes through it; http_request.cpp is the only door to libcurl, so that its options are chosen in one place.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "packager/host/http_logins.hpp"
#include "sealift/bundle/core/bytes.hpp"

namespace sealift::packager {

struct HttpRequest {
  std::string url;                     // http, https or file
  std::string bearer;                  // a token for this host alone: it is not sent on by a redirect to another
  const HttpLogins* logins = nullptr;  // who we are; a login too stays with its host. Not used beside a bearer
  std::uint64_t resume_at = 0;         // bytes to leave out at the beginning
  std::uint64_t length = 0;            // bytes wanted from there on; 0: all. A server that sends no parts is a failure
  bool only_headers = false;           // HEAD
  bool decode = false;                 // what the server compresses on its way (Content-Encoding) comes as it was
  bool* encoded = nullptr;             // set before the first piece where the server has compressed the body
  // Both may throw, which ends the request; run_request then throws the same.
  std::function<void(bundle::ByteView)> take;  // gets the body, piece by piece
  std::function<void()> check;                 // called about once a second, or more often
};

struct HttpResponse {
  std::string failure;         // why the body is not complete; empty: it is
  bool needs_login = false;    // status 401 or 403
  bool is_missing = false;     // status 404, or 403, by which object stores say it
  bool is_limited = false;     // status 429
  std::uint64_t wait = 0;      // seconds that the server wants us to wait (Retry-After); 0: it does not say
  bool is_encoded = false;     // it has a Content-Encoding, so size and body may be those of a compressed form
  bool may_retry = false;      // whether another attempt may succeed
  bool cannot_resume = false;  // the server does not continue at resume_at
  bool beyond_end = false;     // status 416: resume_at is not inside the file
  std::uint64_t size = 0;      // of the body in bytes, as the server says; 0: it does not
  std::string link;            // the header "Link", empty when there is none
};

// A login that `logins` has for the server is sent at once; one of a netrc file when the server asks for one.
// Object stores read '+' in a path as a space: what is not found that way is asked for as %2B, too.
// Follows up to 10 redirects, to http and https only. Uses the proxy variables of libcurl, trusted_certificates(), and
// SSL_CERT_DIR. Throws Network when libcurl does not start.
HttpResponse run_request(const HttpRequest& request);

}  // namespace sealift::packager
