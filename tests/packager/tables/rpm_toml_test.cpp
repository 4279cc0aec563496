// SPDX-License-Identifier: Apache-2.0
// [rpm] of jobs and locks: what is taken, and what dnf would take for something else and is not.
#include "packager/tables/rpm_toml.hpp"

#include <doctest/doctest.h>

#include "tests/support/refusal.hpp"
#include "tests/support/temp_dir.hpp"

using namespace sealift;
using namespace sealift::packager;
using sealift::test::TempDir;
using sealift::test::write_file;

namespace {

template <class Read>
auto read_rpm_toml(const std::string& text, const Read& what, bundle::ErrorCode fault) {
  const TomlValue document = parse_toml(text, "x.toml", fault);
  TomlTable table(document, "x.toml", fault);
  auto value = what(table);
  table.done();
  return value;
}

struct JobFolder {
  TempDir dir;

  JobFolder() {
    write_file(dir / "KEY", "-----BEGIN PGP PUBLIC KEY BLOCK-----\n");
    write_file(dir / "SECRET", "-----BEGIN PGP PRIVATE KEY BLOCK-----\n");
  }
  JobRpm job(const std::string& text) const {
    return read_rpm_toml(
        text, [&](TomlTable& table) { return read_job_rpm(table, dir.path()); }, bundle::ErrorCode::Usage);
  }
  JobRpm package(const std::string& name) const {
    return job("[rpm]\nrelease = \"9\"\npackages = [\"" + name + "\"]\n" + repository());
  }
  JobRpm repository_of(const std::string& text) const {
    return job("[rpm]\nrelease = \"9\"\npackages = [\"a\"]\n[[rpm.repository]]\n" + text);
  }
  static std::string repository(const std::string& name = "base") {
    return "[[rpm.repository]]\nname = \"" + name + "\"\nurl = \"https://mirror.invalid/$releasever/$basearch/\"\n" +
           "keys = [\"KEY\"]\n";
  }
};

LockedRpm rpm_lock(const std::string& text) {
  return read_rpm_toml(text, read_locked_rpm, bundle::ErrorCode::Format);
}

}  // namespace

TEST_CASE("a job names rpm packages, a release, and repositories with their keys") {
  const JobFolder folder;
  CHECK(folder.job("").packages.empty());
  const JobRpm rpm = folder.job(
      "[rpm]\npackages = [\"gcc-c++\", \"openssl-devel-1:3.2.2-6.el9\"]\nrelease = \"9\"\n" + JobFolder::repository() +
      "[[rpm.repository]]\nname = \"extra\"\nurl = \"file:///srv/extra\"\nsigned = \"nothing\"\n");
  CHECK(rpm.packages == std::vector<std::string>{"gcc-c++", "openssl-devel-1:3.2.2-6.el9"});
  REQUIRE(rpm.repositories.size() == 2);
  CHECK(rpm.repositories[0].url == "https://mirror.invalid/$releasever/$basearch");
  CHECK(rpm.repositories[0].keys == std::vector<std::filesystem::path>{folder.dir / "KEY"});
  CHECK(rpm.repositories[0].checked == RpmSigned::Packages);
  CHECK(rpm.repositories[1].checked == RpmSigned::Nothing);
}

TEST_CASE("names that dnf would take for a pattern, a file, a group or an option are refused") {
  const JobFolder folder;
  for (const char* name : {"-y", "gcc*", "@development", "/usr/bin/gcc", "./x.rpm", "a b", "a;b", "a[1]", "a-", ""}) {
    INFO(name);
    CHECK_REFUSED(folder.package(name), Usage, "name of an rpm package");
  }
  CHECK_REFUSED(folder.job("[rpm]\nrelease = \"9\"\npackages = []\n"), Usage, "no package is named");
  CHECK_REFUSED(folder.job("[rpm]\nrelease = \"9\"\npackages = [\"a\"]\n"), Usage, "no repository is named");
  CHECK_REFUSED(folder.job("[rpm]\npackages = [\"a\"]\n" + JobFolder::repository()), Usage, "release");
  CHECK_REFUSED(folder.job("[rpm]\nrelease = \"9/..\"\npackages = [\"a\"]\n" + JobFolder::repository()), Usage,
                "release of a system");
  CHECK_REFUSED(
      folder.job("[rpm]\nrelease = \"9\"\npackages = [\"a\"]\n" + JobFolder::repository() + JobFolder::repository()),
      Usage, "one name");
}

TEST_CASE("a repository without a key is refused unless the job says so, and so is what is no key or no address") {
  const JobFolder folder;
  const std::string name = "name = \"base\"\n", url = "url = \"https://mirror.invalid/\"\n";
  CHECK_REFUSED(folder.repository_of(name + url), Usage, "no key says who signs");
  CHECK_REFUSED(folder.repository_of(name + url + "signed = \"index\"\n"), Usage, "no key says who signs");
  CHECK_REFUSED(folder.repository_of(name + url + "keys = [\"KEY\"]\nsigned = \"nothing\"\n"), Usage, "keys are named");
  CHECK_REFUSED(folder.repository_of(name + url + "keys = [\"KEY\"]\nsigned = \"maybe\"\n"), Usage, "not what a");
  CHECK_REFUSED(folder.repository_of(name + url + "keys = [\"NONE\"]\n"), Usage, "the key is not there");
  CHECK_REFUSED(folder.repository_of(name + url + "keys = [\"SECRET\"]\n"), Usage, "public keys");
  for (const char* bad :
       {"mirror.invalid/x", "ftp://mirror.invalid/", "https://mirror.invalid/?a=b", "https://mirror.invalid/$other/",
        "https://a.invalid/,https://b.invalid/", "https://a.invalid/ x"}) {
    INFO(bad);
    CHECK_REFUSED(folder.repository_of(name + "url = \"" + bad + "\"\nkeys = [\"KEY\"]\n"), Usage,
                  "address of a repository");
  }
  const bundle::Error error = test::refusal(
      [&] { folder.repository_of(name + "url = \"https://me:hunter2@mirror.invalid/\"\nkeys = [\"KEY\"]\n"); });
  CHECK(test::mentions(error, "a lock keeps addresses"));
  CHECK_FALSE(test::mentions(error, "hunter2"));
  CHECK_REFUSED(folder.repository_of("name = \"a b\"\n" + url + "keys = [\"KEY\"]\n"), Usage, "name");
}

TEST_CASE("what is written of rpm packages into a lock is what is read from it") {
  LockedRpm rpm{.release = "9",
                .packages = {"gcc-c++"},
                .unsigned_repositories = {"extra"},
                .index = {{.file = "keys.asc", .size = 3, .sha256 = bundle::sha256(bundle::as_bytes("key"))},
                          {.file = "repodata/repomd.xml", .size = 7, .sha256 = bundle::sha256({})}},
                .rpms = {{.file = "gcc-c++-11.5.0-5.el9.x86_64.rpm",
                          .url = "https://mirror.invalid/gcc-c%2B%2B.rpm",
                          .size = 9,
                          .sha256 = bundle::sha256(bundle::as_bytes("g"))}}};
  CHECK(rpm_lock(write_locked_rpm(rpm)) == rpm);
  CHECK(write_locked_rpm({}).empty());
  CHECK(rpm_lock("") == LockedRpm{});
  SUBCASE("a package that would leave its folder") {
    for (const char* name :
         {"../a-1-1.noarch.rpm", "a-1-1.noarch.rpm/b", "a-1.rpm", "a-1-1.deb", "a b-1-1.rpm", ".a-1-1.rpm"}) {
      INFO(name);
      rpm.rpms[0].file = name;
      CHECK_REFUSED(rpm_lock(write_locked_rpm(rpm)), Format, "file name of an rpm package");
    }
  }
  SUBCASE("an index that would") {
    for (const char* name :
         {"repodata/../x", "repodata/", "repodata/.x", "repomd.xml", "/etc/passwd", "repodata/a/b"}) {
      INFO(name);
      rpm.index[0].file = name;
      CHECK_REFUSED(rpm_lock(write_locked_rpm(rpm)), Format, "no file of an index");
    }
  }
  SUBCASE("packages without an index, an index without packages") {
    const std::string text = write_locked_rpm(rpm);
    CHECK_REFUSED(rpm_lock(text.substr(0, text.find("[[rpm.package]]"))), Format, "no packages or no index");
    rpm.index.clear();
    CHECK_REFUSED(rpm_lock(write_locked_rpm(rpm)), Format, "no packages or no index");
  }
}
