// SPDX-License-Identifier: Apache-2.0
// [apt] of jobs and locks: what is taken, and what would end up on a command line or outside a folder and is not.
#include "packager/tables/apt_toml.hpp"

#include <doctest/doctest.h>

#include "tests/support/refusal.hpp"

using namespace sealift;
using namespace sealift::packager;

namespace {

template <class Read>
auto read(const std::string& text, const Read& what, bundle::ErrorCode fault) {
  const TomlValue document = parse_toml(text, "x.toml", fault);
  TomlTable table(document, "x.toml", fault);
  auto value = what(table);
  table.done();
  return value;
}

JobApt job(const std::string& text) {
  return read(text, read_job_apt, bundle::ErrorCode::Usage);
}

LockedApt lock(const std::string& text) {
  return read(text, read_locked_apt, bundle::ErrorCode::Format);
}

}  // namespace

TEST_CASE("a job names packages, perhaps with versions, and a suite or sources") {
  CHECK(job("").packages.empty());
  const JobApt apt =
      job("[apt]\npackages = [\"g++\", \"libc6=2.36-9+deb12u13\", \"xz=1:2~rc\"]\nsuite = \"bookworm\"\n");
  CHECK(apt.packages == std::vector<std::string>{"g++", "libc6=2.36-9+deb12u13", "xz=1:2~rc"});
  CHECK(apt.suite == "bookworm");
  CHECK(job("[apt]\npackages = [\"make\"]\nsources = [\"deb file:/x ./\"]\n").sources.size() == 1);
}

TEST_CASE("values other than a package, suite or source are refused by their key") {
  for (const char* name : {"-o=x", "g++ make", "Make", "a", "make-", "make=", "make=1;rm", "./x.deb", "*"}) {
    INFO(name);
    CHECK_REFUSED(job("[apt]\nsuite = \"s\"\npackages = [\"" + std::string(name) + "\"]\n"), Usage, "Debian package");
  }
  CHECK_REFUSED(job("[apt]\nsuite = \"bookworm\"\n"), Usage, "no package is named");
  CHECK_REFUSED(job("[apt]\npackages = [\"make\"]\n"), Usage, "suite");
  CHECK_REFUSED(job("[apt]\npackages = [\"make\"]\nsuite = \"../x\"\n"), Usage, "name of a suite");
  CHECK_REFUSED(job("[apt]\npackages = [\"make\"]\nsources = [\"http://x\"]\n"), Usage, "sources.list");
  CHECK_REFUSED(job("[apt]\npackages = [\"make\"]\nsources = [\"deb x y\\ndeb z\"]\n"), Usage, "sources.list");
  CHECK_REFUSED(job("[apt]\npackages = [\"make\"]\nsuite = \"s\"\nrecommends = true\n"), Usage, "recommends");
}

TEST_CASE("what is written into a lock is what is read from it") {
  LockedApt apt{.suite = "bookworm",
                .packages = {"g++"},
                .index_size = 77,
                .index_sha256 = bundle::sha256({}),
                .debs = {{.file = "g++_12.2.0-3_amd64.deb",
                          .url = "http://mirror.invalid/g%2b%2b_12.2.0-3_amd64.deb",
                          .size = 9,
                          .sha256 = bundle::sha256(bundle::as_bytes("g"))}}};
  CHECK(lock(write_locked_apt(apt)) == apt);
  CHECK(write_locked_apt({}).empty());
  CHECK(lock("") == LockedApt{});
  SUBCASE("a file that would leave its folder") {
    for (const char* name :
         {"../a_1_all.deb", "a_1_all.deb/b", "a_1.deb", "a_1_all.rpm", "a b_1_all.deb", "._1_all.deb"}) {
      INFO(name);
      apt.debs[0].file = name;
      CHECK_REFUSED(lock(write_locked_apt(apt)), Format, "file name of a Debian package");
    }
  }
  SUBCASE("packages that belong to nothing") {
    const std::string text = write_locked_apt(apt);
    CHECK_REFUSED(lock(text.substr(text.find("[[deb]]"))), Format, "do not match");
    CHECK_REFUSED(lock(text.substr(0, text.find("[[deb]]"))), Format, "do not match");
  }
}
