// SPDX-License-Identifier: Apache-2.0
// Which login belongs to which address, and what a netrc file says; the programs are held to uv in index_login_test.py.
#include "packager/host/http_logins.hpp"

#include <doctest/doctest.h>

#include <cstdlib>

#include "packager/host/netrc.hpp"

using namespace sealift::packager;

TEST_CASE("a login is for its own server alone, and of several for that which is nearest") {
  HttpLogins logins;
  CHECK(logins.take(
            "--index-url https://me:a%40b@Host.invalid/one/simple\nx @ https://you:c@host.invalid:443/two/x.whl") ==
        "--index-url https://Host.invalid/one/simple\nx @ https://host.invalid:443/two/x.whl");
  CHECK(logins.of("https://host.invalid/one/x.whl") == HttpLogin{"me", "a@b"});
  CHECK(logins.of("https://host.invalid/two/x.whl") == HttpLogin{"you", "c"});
  CHECK_FALSE(logins.of("http://host.invalid/one/x.whl"));
  CHECK_FALSE(logins.of("https://host.invalid:8443/one/x.whl"));
  CHECK_FALSE(logins.of("https://host.invalid.other/one/x.whl"));
  CHECK_FALSE(logins.of("https://host.invalid@other.invalid/one/x.whl"));
  HttpLogins of_git;
  CHECK(of_git.take("git+https://me:x@host.invalid/a.git") == "git+https://me:x@host.invalid/a.git");
  CHECK_FALSE(of_git.of("https://host.invalid/a"));
  HttpLogins two_marks;
  CHECK(two_marks.take("https://me:p@ss@host.invalid/x") == "https://host.invalid/x");
  CHECK(two_marks.of("https://host.invalid/x") == HttpLogin{"me", "p@ss"});
}

TEST_CASE("the variables of an index are those of uv, by its name") {
  ::setenv("UV_INDEX_MY_INDEX_2_USERNAME", "me", 1);
  ::setenv("UV_INDEX_MY_INDEX_2_PASSWORD", "secret", 1);
  HttpLogins logins;
  logins.add_index("my-index.2=https://host.invalid/simple");
  logins.add_index("https://other.invalid/simple");
  CHECK(logins.of("https://host.invalid/files/x.whl") == HttpLogin{"me", "secret"});
  CHECK_FALSE(logins.of("https://other.invalid/files/x.whl"));
  CHECK(logins.remedy("https://host.invalid/files/x.whl").find("UV_INDEX_MY_INDEX_2_USERNAME") != std::string::npos);
  CHECK(logins.remedy("https://host.invalid/files/x.whl").find("does not accept") != std::string::npos);
  CHECK(logins.remedy("https://other.invalid/x").find("machine other.invalid login NAME") != std::string::npos);
  ::unsetenv("UV_INDEX_MY_INDEX_2_USERNAME");
  ::unsetenv("UV_INDEX_MY_INDEX_2_PASSWORD");
}

TEST_CASE("a variable in an address is asked for and never shown, and one that is not set stays") {
  ::setenv("SEALIFT_TEST_TOKEN", "secret", 1);
  HttpLogins logins;
  logins.add_variable_address("https://host.invalid/${SEALIFT_TEST_TOKEN}");
  const std::string written = "https://host.invalid/${SEALIFT_TEST_TOKEN}/x.whl";
  CHECK(logins.as_written("at https://host.invalid/secret/x.whl") == "at " + written);
  CHECK(logins.as_written("https://host.invalid/secretary/x.whl") == "https://host.invalid/secretary/x.whl");
  CHECK(logins.as_asked(written) == "https://host.invalid/secret/x.whl");
  logins.add_index("https://host.invalid/secret/simple");
  CHECK(logins.remedy("https://host.invalid/secret/x.whl").find("secret") == std::string::npos);
  // A server's own words are not an address of the job's.
  CHECK(logins.as_asked("https://evil.invalid/${SEALIFT_TEST_TOKEN}/x") ==
        "https://evil.invalid/${SEALIFT_TEST_TOKEN}/x");
  CHECK(with_variables("${SEALIFT_TEST_TOKEN}-${SEALIFT_TEST_NONE}-$HOME-${}") ==
        "secret-${SEALIFT_TEST_NONE}-$HOME-${}");
  ::unsetenv("SEALIFT_TEST_TOKEN");
}

TEST_CASE("a netrc file is read as curl and uv read it") {
  const std::string text =
      "# machine host.invalid login no password no\nmachine a.invalid login x\n\tpassword y\n"
      "macdef init\nmachine host.invalid login no password no\n\nmachine host.invalid login \"me too\" account z "
      "password p#w\n"
      "machine host.invalid login late password late\ndefault login any password one\n";
  CHECK(login_in_netrc(text, "host.invalid") == HttpLogin{"me too", "p#w"});
  CHECK(login_in_netrc(text, "a.invalid") == HttpLogin{"x", "y"});
  CHECK(login_in_netrc(text, "other.invalid") == HttpLogin{"any", "one"});
  CHECK_FALSE(login_in_netrc("machine a.invalid login x password y", "other.invalid"));
  CHECK_FALSE(login_in_netrc("machine", "machine"));
  CHECK_FALSE(login_in_netrc("", "x"));
}
