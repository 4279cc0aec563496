// SPDX-License-Identifier: Apache-2.0
// URLs: taken apart as RFC 3986 says, and never shown with a password.
#include "packager/host/url.hpp"

#include <doctest/doctest.h>

using namespace sealift::packager;

TEST_CASE("a URL is taken apart, and its scheme and host are compared in lower case") {
  const auto url = parse_url("HTTPS://Mirror.Invalid:8443/a%20b/torch-2.11.0%2Bcpu.whl?token=x#sha256=0");
  REQUIRE(url);
  CHECK(url->scheme == "https");
  CHECK(url->host == "mirror.invalid");
  CHECK(url->path == "/a%20b/torch-2.11.0%2Bcpu.whl");
  CHECK(url->query == "token=x");
  CHECK(url->file_name() == "torch-2.11.0+cpu.whl");
  CHECK_FALSE(url->has_credentials);
  CHECK(url->has_query);
  CHECK(url->has_fragment);
}

TEST_CASE("a host that begins like an address is not that address") {
  CHECK(parse_url("http://127.0.0.1/x")->host == "127.0.0.1");
  const auto other = parse_url("http://127.0.0.1.Example:80/x/y");  // what Boost 1.81 alone takes for 127.0.0.1
  REQUIRE(other);
  CHECK(other->host == "127.0.0.1.example");
  CHECK(other->path == "/x/y");
  CHECK(parse_url("http://1.2.3.4x")->host == "1.2.3.4x");
  CHECK(parse_url("http://1.2.3.4x")->path == "");
}

TEST_CASE("relative and broken URLs are not parsed") {
  for (const char* text : {"", "mirror.invalid", "/srv/simple", "https://a b", "https://h/%2", "://h", "https://[::1"})
    CHECK_FALSE(parse_url(text));
}

TEST_CASE("a user's name alone, an empty name and a password are all credentials") {
  for (const char* text : {"https://me:secret@h/x", "https://me@h/x", "https://@h/x", "https://:secret@h/x"}) {
    REQUIRE(parse_url(text));
    CHECK(parse_url(text)->has_credentials);
    CHECK(without_credentials(text) == "https://h/x");
  }
  CHECK_FALSE(parse_url("https://h/x@1.0")->has_credentials);
}

TEST_CASE("no message holds a password, even of a URL that is not valid") {
  CHECK(without_credentials("https://me:sec/r t@h/x") == "https://h/x");
  CHECK(without_credentials("me:sec ret@h/x") == "h/x");
  CHECK(without_credentials("https://h/pkg@1.0") == "https://h/pkg@1.0");
  CHECK(without_credentials("not a URL") == "not a URL");
}

TEST_CASE("a path becomes a URL and a file name comes back from it") {
  CHECK(file_url("/my wheels/a+b~1.whl") == "file:///my%20wheels/a+b~1.whl");
  CHECK(file_url("/\xc3\xa9#?%") == "file:///%C3%A9%23%3F%25");
  CHECK(parse_url(file_url("/d/\xc3\xa9 #.whl"))->file_name() == "\xc3\xa9 #.whl");
}

TEST_CASE("escapes are written in upper case, read in both, and left alone when they are malformed") {
  CHECK(percent_encoded("a/b c+~") == "a%2Fb%20c%2B~");
  CHECK(percent_encoded("a/b c", "/") == "a/b%20c");
  CHECK(percent_decoded("g%2b%2B_4%3a12") == "g++_4:12");
  CHECK(percent_decoded("100%") == "100%");
}
