// SPDX-License-Identifier: Apache-2.0
// [[shared]] as people write it and as a lock keeps it.
#include "packager/tables/shared_rules.hpp"

#include <doctest/doctest.h>

#include "tests/support/refusal.hpp"

using namespace sealift::packager;
using sealift::bundle::ErrorCode;

namespace {

std::vector<SharedRule> rules_in(const std::string& text) {
  const TomlValue document = parse_toml(text, "job.toml", ErrorCode::Usage);
  TomlTable table(document, "job.toml", ErrorCode::Usage);
  return read_shared_rules(table);
}

}  // namespace

TEST_CASE("[[shared]] is read, with the package's name normalized, and written as it is read") {
  const std::vector<SharedRule> rules = rules_in("[[shared]]\npackage = \"Plug_Cu12\"\ninto = \"host/plugins\"\n");
  CHECK(rules == std::vector<SharedRule>{{.package = "plug-cu12", .into = "host/plugins"}});
  CHECK(rules_in(write_shared_rules(rules)) == rules);
  CHECK(write_shared_rules({}).empty());
}

TEST_CASE("a [[shared]] that names no package or no folder is refused with its line") {
  const auto rule = [](const std::string& package, const std::string& into) {
    return "[[shared]]\npackage = \"" + package + "\"\ninto = \"" + into + "\"\n";
  };
  CHECK_REFUSED(rules_in(rule("plug", "../x")), Usage, "not safe");
  CHECK_REFUSED(rules_in(rule("plug", "")), Usage, "into");
  CHECK_REFUSED(rules_in(rule("a b", "host")), Usage, "not the name of a package");
  CHECK_REFUSED(rules_in(rule("plug", "host") + rule("PLUG", "host")), Usage, "stands twice");
  CHECK_REFUSED(rules_in(rule("plug", "host") + "path = \"x\"\n"), Usage, "path");
  CHECK_REFUSED(require_packages({{.package = "plug", .into = "host"}}, {"host"}), Usage, "no such package is locked");
}
