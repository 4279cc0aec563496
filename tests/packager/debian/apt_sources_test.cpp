// SPDX-License-Identifier: Apache-2.0
// A machine's sources in both forms, and what is left of them for one suite.
#include "packager/debian/apt_sources.hpp"

#include <doctest/doctest.h>

#include "tests/support/temp_dir.hpp"

using namespace sealift::packager;
using sealift::test::TempDir;
using sealift::test::write_file;

TEST_CASE("of a machine's sources those of the suite are kept as they were written, and no others") {
  const TempDir dir;
  write_file(dir / "sources.list",
             "# deb http://old.invalid/debian old main\n"
             "deb [arch=amd64 signed-by=/keys/a.gpg] http://mirror.invalid/debian old main contrib # here\n"
             "deb [ trusted=yes ] http://mirror.invalid/debian new main\n"
             "deb-src http://mirror.invalid/debian old main\n"
             "deb http://mirror.invalid/security old-security main\n"
             "deb http://mirror.invalid/debian old-backports main\n"
             "deb\n"
             "deb [never closed\n");
  write_file(dir / "sources.list.d/b.list", "deb http://other.invalid/x nodistro main\n");
  write_file(
      dir / "sources.list.d/a.sources",
      "Types: deb\n# a comment\nURIs: http://mirror.invalid/debian\nSUITES: old-updates\n new\nComponents: main\n"
      "Signed-By: /keys/a.gpg\n\n\nTypes: deb\nURIs: http://mirror.invalid/new\nSuites: new\nComponents: main\n");
  write_file(dir / "sources.list.d/notes.txt", "deb http://mirror.invalid/debian old main\n");
  const AptSources found = find_apt_sources(dir.path(), "old");
  CHECK(found.lines ==
        "deb [arch=amd64 signed-by=/keys/a.gpg] http://mirror.invalid/debian old main contrib # here\n"
        "deb http://mirror.invalid/security old-security main\n");
  CHECK(found.stanzas ==
        "Types: deb\nURIs: http://mirror.invalid/debian\nComponents: main\nSigned-By: /keys/a.gpg\nSuites: "
        "old-updates\n\n");
  CHECK(found.suites ==
        std::set<std::string>{"new", "nodistro", "old", "old-backports", "old-security", "old-updates"});
}

TEST_CASE("a machine without sources has none, which is no error here") {
  const TempDir dir;
  const AptSources found = find_apt_sources(dir / "nowhere", "old");
  CHECK(found.lines.empty());
  CHECK(found.stanzas.empty());
  CHECK(found.suites.empty());
}
