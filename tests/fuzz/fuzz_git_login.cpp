// SPDX-License-Identifier: Apache-2.0
// Texts with addresses of repositories: what is left has no login of git's, whatever is tried, and what git is told is
// lines of its own.
#include "packager/host/git_login.hpp"
#include "packager/host/url.hpp"
#include "tests/fuzz/fuzz.hpp"

using namespace sealift;
using namespace sealift::test;

FUZZ(text) {
  const std::string whole(text);
  accepted([&] {
    packager::GitLogins logins;
    const std::string left = logins.take(whole, "job.toml");
    for (const auto& [name, value] : logins.variables())
      must(value.find_first_of(std::string_view("\n\r\0", 3)) == value.npos, "git is told lines");
    packager::GitLogins again;
    must(again.take(left, "job.toml") == left && again.empty(), "all logins were taken");
    if (logins.empty()) must(left.size() <= whole.size(), "nothing is added");
  });
  const std::string said = packager::without_logins(whole);
  must(packager::without_logins(said) == said, "a message has no login");
  if (const auto url = packager::parse_url(text))
    must(url->path.empty() || url->path[0] == '/' || url->host.empty(), "a path follows its host");
  packager::without_credentials(whole);
}
