// SPDX-License-Identifier: Apache-2.0
// [[owner]]: what a rule may say.
#include "packager/tables/owner_rules.hpp"

#include <doctest/doctest.h>

#include "tests/support/refusal.hpp"

using namespace sealift::packager;
using sealift::bundle::ErrorCode;

namespace {

std::vector<OwnerRule> read(const std::string& text) {
  const TomlValue document = parse_toml(text, "job.toml", ErrorCode::Usage);
  TomlTable table(document, "job.toml", ErrorCode::Usage);
  return read_owner_rules(table);
}

}  // namespace

TEST_CASE("rules for packages that are not locked are refused before any wheel is there, all in one message") {
  const std::set<std::string> locked = {"nvidia-nccl-cu13", "torch"};
  CHECK_NOTHROW(require_packages({{.path = "a", .package = "torch"}}, locked));
  const sealift::bundle::Error error = sealift::test::refusal([&] {
    require_packages({{.path = "a", .package = "x"}, {.path = "b", .package = "torch"}, {.path = "c", .package = "y"}},
                     locked);
  });
  CHECK(error.code() == ErrorCode::Usage);
  CHECK(sealift::test::mentions(error, "path = \"a\", package = \"x\": no such package is locked"));
  CHECK(sealift::test::mentions(error, "path = \"c\", package = \"y\""));
  CHECK_FALSE(sealift::test::mentions(error, "torch"));
}

TEST_CASE("rules read back as they were written, names normalized, and bad ones name line and key") {
  const std::vector<OwnerRule> rules = read("[[owner]]\npath = \"a/b\"\npackage = \"NVIDIA_nccl.cu13\"\n");
  REQUIRE(rules.size() == 1);
  CHECK(rules[0].package == "nvidia-nccl-cu13");
  CHECK(read(write_owner_rules(rules)) == rules);
  CHECK(read("").empty());
  CHECK(write_owner_rules({}).empty());
  for (const auto& [text, word] : std::vector<std::pair<std::string, const char*>>{
           {"path = \"../a\"\npackage = \"x\"", "path"},
           {"path = \"/a\"\npackage = \"x\"", "path"},
           {"path = \"\"\npackage = \"x\"", "path"},
           {"path = \"a\"\npackage = \"\"", "package"},
           {"path = \"a\"\npackage = \"x y\"", "package"},
           {"path = \"a\"", "package"},
           {"package = \"x\"", "path"},
           {"path = \"a\"\npackage = \"x\"\nwheel = \"y\"", "wheel"},
           {"path = \"a\"\npackage = \"x\"\n[[owner]]\npath = \"a\"\npackage = \"y\"", "two rules"}}) {
    CAPTURE(text);
    CHECK_REFUSED(read("[[owner]]\n" + text + "\n"), Usage, word);
    CHECK_REFUSED(read("[[owner]]\n" + text + "\n"), Usage, "job.toml");
  }
}
