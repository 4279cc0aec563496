// SPDX-License-Identifier: Apache-2.0
// The real apt against a made archive in a folder: what it resolves, what is written down of it, and how it refuses.
#include "packager/debian/lock_apt.hpp"

#include <doctest/doctest.h>

#include <cstdlib>

#include "packager/debian/apt_files.hpp"
#include "packager/debian/signed_release.hpp"
#include "packager/host/process.hpp"
#include "tests/support/left_out.hpp"
#include "tests/support/real_apt.hpp"
#include "tests/support/refusal.hpp"
#include "tests/support/temp_dir.hpp"

using namespace sealift;
using namespace sealift::packager;
using sealift::test::GpgHome;
using sealift::test::OpenPgpKey;
using sealift::test::read_file;
using sealift::test::RealApt;
using sealift::test::TempDir;
using sealift::test::write_file;
namespace fs = std::filesystem;

namespace {

bool no_gpg() {
  if (!find_program("gpg").empty() && !find_program("gpgv").empty()) return false;
  sealift::test::left_out("needs gpg and gpgv");
  return true;
}

bool no_apt() {
  if (!find_program("apt-get").empty()) return false;
  sealift::test::left_out("needs apt");
  return true;
}

// An archive as a mirror has it; apt resolves by its index and never opens the packages, so any bytes will do.
struct Archive {
  TempDir dir;
  std::string index;
  Cache cache{dir / "cache"};
  bundle::Progress progress{nullptr};

  Archive() {
    add("alpha", "1.0", "amd64", "Depends: beta (>= 1:2)\n");
    add("beta", "1:2.0+b~1", "all", "Description: two\n lines, of which\n Size: is not a field\n");
    add("gamma", "3", "amd64", "Recommends: beta\n");
    add("delta", "1", "amd64", "Depends: epsilon\n");
  }
  void add(const std::string& name, const std::string& version, const std::string& arch, const std::string& more) {
    const std::string bytes = "package " + name;
    const std::string file = name + "_" + version.substr(version.find(':') + 1) + "_" + arch + ".deb";
    write_file(dir / ("pool/" + file), bytes);
    index += "Package: " + name + "\nVersion: " + version + "\nArchitecture: " + arch + "\n" + more + "Filename: ./" +
             file + "\nSize: " + std::to_string(bytes.size()) +
             "\nMD5sum: 0123456789abcdef0123456789abcdef\nSHA256: " + bundle::sha256(bundle::as_bytes(bytes)).hex() +
             "\n\n";
    write_file(dir / "pool/Packages", index);
  }
  std::string source() const { return "deb [trusted=yes] file:" + (dir / "pool").string() + " ./"; }
  LockedApt lock(const std::vector<std::string>& packages) {
    return lock_apt({.packages = packages, .suite = {}, .sources = {source()}}, "x86_64", cache, progress);
  }
};

}  // namespace

TEST_CASE("apt's closure is locked by address and digest, with an index of exactly these packages") {
  if (no_apt()) return;
  Archive archive;
  CHECK(archive.lock({}) == LockedApt{});
  const LockedApt locked = archive.lock({"alpha"});
  REQUIRE(locked.debs.size() == 2);
  CHECK(locked.debs[0].file == "alpha_1.0_amd64.deb");
  CHECK(locked.debs[1].file == "beta_2.0+b~1_all.deb");
  CHECK(locked.debs[1].size == 12);
  CHECK(locked.debs[1].sha256 == bundle::sha256(bundle::as_bytes("package beta")));
  CHECK(read_file(archive.cache.path(locked.index_sha256)) ==
        "Package: alpha\nVersion: 1.0\nArchitecture: amd64\nDepends: beta (>= 1:2)\nFilename: ./alpha_1.0_amd64.deb\n"
        "Size: 13\nSHA256: " +
            locked.debs[0].sha256.hex() +
            "\n\nPackage: beta\nVersion: 1:2.0+b~1\nArchitecture: all\n"
            "Description: two\n lines, of which\n Size: is not a field\nFilename: ./beta_2.0+b~1_all.deb\nSize: "
            "12\nSHA256: " +
            locked.debs[1].sha256.hex() + "\n\n");
  CHECK(archive.lock({"alpha"}) == locked);

  SUBCASE("and what is carried is an archive by itself, which resolves to the same") {
    const std::vector<Content> contents = contents_of(locked);
    fetch(downloads_of(contents), archive.cache, archive.progress);
    for (const Content& content : contents) {
      fs::create_directories((archive.dir / content.into).parent_path());
      fs::copy_file(file_of(content, archive.cache), archive.dir / content.into);
    }
    LockedApt again = lock_apt({.packages = {"alpha"},
                                .suite = {},
                                .sources = {"deb [trusted=yes] file:" + (archive.dir / "apt").string() + " ./"}},
                               "x86_64", archive.cache, archive.progress);
    REQUIRE(again.debs.size() == 2);
    for (std::size_t i = 0; i < 2; ++i) CHECK(again.debs[i].sha256 == locked.debs[i].sha256);
    CHECK(again.index_sha256 == locked.index_sha256);
  }
  SUBCASE("and an index that the cache lost is named") {
    require_inputs(contents_of(locked), archive.cache);
    fs::remove(archive.cache.path(locked.index_sha256));
    CHECK_REFUSED(require_inputs(contents_of(locked), archive.cache), Missing, "index of the Debian packages");
    require_inputs(contents_of(LockedApt{}), archive.cache);
  }
}

TEST_CASE("packages that are only recommended stay behind") {
  if (no_apt()) return;
  Archive archive;
  CHECK(archive.lock({"gamma"}).debs.size() == 1);
}

TEST_CASE("unknown packages are all named at once") {
  if (no_apt()) return;
  Archive archive;
  CHECK_REFUSED(archive.lock({"nosuch", "alpha", "neither"}), Usage, "nosuch, neither");
  CHECK_REFUSED(archive.lock({"alpha=7"}), Usage, "alpha");
  CHECK_REFUSED(archive.lock({"delta"}), Conflict, "epsilon");
}

TEST_CASE("a package whose file has the epoch in its name is carried under the name without it") {
  if (no_apt()) return;
  for (const std::string colon : {"%3a", ":"}) {
    Archive archive;
    const std::string bytes = "package zeta", file = "zeta_2" + colon + "1.0_amd64.deb";
    write_file(archive.dir / ("pool/" + file), bytes);
    archive.index += "Package: zeta\nVersion: 2:1.0\nArchitecture: amd64\nFilename: ./" + file +
                     "\nSize: " + std::to_string(bytes.size()) +
                     "\nSHA256: " + bundle::sha256(bundle::as_bytes(bytes)).hex() + "\n\n";
    write_file(archive.dir / "pool/Packages", archive.index);
    const LockedApt locked = archive.lock({"zeta"});
    REQUIRE(locked.debs.size() == 1);
    CHECK(locked.debs[0].file == "zeta_1.0_amd64.deb");
    CHECK(fetch(downloads_of(contents_of(locked)), archive.cache, archive.progress) == 1);
  }
}

TEST_CASE("who provides a virtual package is named, and naming one of them locks it") {
  if (no_apt()) return;
  Archive archive;
  archive.add("mailer", "1", "amd64", "Provides: mail-agent\n");
  archive.add("sender", "1", "amd64", "Provides: mail-agent\n");
  CHECK_REFUSED(archive.lock({"mail-agent"}), Usage, "mail-agent: ");
  CHECK_REFUSED(archive.lock({"mail-agent"}), Usage, "mailer");
  CHECK_REFUSED(archive.lock({"mail-agent"}), Usage, "sender");
  CHECK(archive.lock({"sender"}).debs.size() == 1);
}

TEST_CASE("a frozen mirror is told the option that takes it, and taken with it") {
  if (no_apt() || no_gpg()) return;
  Archive archive;
  const std::string index = read_file(archive.dir / "pool/Packages");
  write_file(archive.dir / "pool/Release",
             "Suite: frozen\nCodename: frozen\nDate: Thu, 01 Jan 2015 00:00:00 UTC\nValid-Until: Thu, 08 Jan 2015 "
             "00:00:00 UTC\nSHA256:\n " +
                 bundle::sha256(bundle::as_bytes(index)).hex() + " " + std::to_string(index.size()) + " Packages\n");
  const auto lock = [&](const std::string& source) {
    return lock_apt({.packages = {"gamma"}, .suite = {}, .sources = {source}}, "x86_64", archive.cache,
                    archive.progress);
  };
  const std::string plain = archive.source();
  CHECK_REFUSED(lock(plain), CannotCheck, "check-valid-until=no");
  CHECK(lock("deb [trusted=yes check-valid-until=no]" + plain.substr(plain.find(']') + 1)).debs.size() == 1);
}

TEST_CASE("a suite that this machine has no source for is refused with those that it has") {
  if (no_apt()) return;
  Archive archive;
  write_file(archive.dir / "etc/sources.list", "deb http://mirror.invalid/debian bookworm main\n");
  const AptOptions options{.config = archive.dir / "etc"};
  const JobApt job{.packages = {"alpha"}, .suite = "trixie", .sources = {}};
  CHECK_REFUSED(lock_apt(job, "x86_64", archive.cache, archive.progress, options), Usage, "bookworm");
  write_file(archive.dir / "etc/sources.list", archive.source() + "\n");  // whose suite is "./"
  CHECK_REFUSED(lock_apt(job, "x86_64", archive.cache, archive.progress, options), Usage, "./");
}

TEST_CASE("an archive that does not answer is said with apt's own words") {
  if (no_apt()) return;
  Archive archive;
  fs::remove(archive.dir / "pool/Packages");
  CHECK_REFUSED(archive.lock({"alpha"}), Network, "Packages");
}

TEST_CASE("a machine without apt is told so") {
  Archive archive;
  const std::string path = std::getenv("PATH");
  ::setenv("PATH", archive.dir.path().c_str(), 1);
  CHECK_REFUSED(archive.lock({"alpha"}), Missing, "apt, which resolves Debian packages");
  ::setenv("PATH", path.c_str(), 1);
}

TEST_CASE("an index that gpg has signed is taken by apt without trusted=yes, and a changed one is not") {
  if (no_apt() || no_gpg()) return;
  Archive archive;
  Lock lock{.name = "env", .version = 7, .channel = "prod", .created = "2026-01-02T03:04:05Z"};
  lock.target.arch = "x86_64";
  lock.apt = archive.lock({"alpha"});
  const std::string release = release_text(lock);
  CHECK(
      release.starts_with("Origin: Sealift\nLabel: env\nSuite: prod\nDate: Fri, 02 Jan 2026 03:04:05 UTC\n"
                          "Architectures: amd64\nAcquire-By-Hash: yes\n"));
  CHECK(release.ends_with("SHA256:\n " + lock.apt.index_sha256.hex() + " " + std::to_string(lock.apt.index_size) +
                          " Packages\n"));
  const OpenPgpKey key;
  REQUIRE(key.made());
  const GpgHome home(key);
  std::vector<Content> contents = contents_of(lock.apt);
  fetch(downloads_of(contents), archive.cache, archive.progress);
  const std::vector<Content> release_files = signed_release(lock, key.fingerprint(), archive.progress);
  REQUIRE(release_files.size() == 4);
  for (const Content& content : release_files) {
    CHECK(content.entry == "files/" + content.into);
    write_file(archive.dir / content.into, std::get<FromText>(content.origin).text);
  }
  for (const Content& content : contents) fs::copy_file(file_of(content, archive.cache), archive.dir / content.into);
  const std::string place = (archive.dir / "apt").string();
  const RealApt apt("deb [signed-by=" + place + "/archive-key.asc] file:" + place + " ./");
  const test::ShellRan updated = apt.run("update");
  CHECK_MESSAGE(updated.status == 0, updated.output);
  CHECK(updated.output.find("W:") == std::string::npos);
  const test::ShellRan got = apt.run("download beta");
  CHECK_MESSAGE(got.status == 0, got.output);

  write_file(archive.dir / "apt/Packages", read_file(archive.dir / "apt/Packages") + "\n");
  const RealApt fresh("deb [signed-by=" + place + "/archive-key.asc] file:" + place + " ./");
  CHECK(fresh.run("update").status != 0);
  const OpenPgpKey other;
  REQUIRE(other.gpg("--armor --output '" + place + "/other.asc' --export").status == 0);
  CHECK(
      RealApt("deb [signed-by=" + place + "/other.asc] file:" + place + " ./").run("update").output.find("NO_PUBKEY") !=
      std::string::npos);
}

TEST_CASE("a key that gpg does not have, no fingerprint, and a job without packages are refused") {
  if (no_apt() || no_gpg()) return;
  Archive archive;
  Lock lock{.name = "env", .version = 7, .channel = "prod", .created = "2026-01-02T03:04:05Z"};
  const OpenPgpKey key("2y");
  REQUIRE(key.made());
  const GpgHome home(key);
  CHECK_REFUSED(signed_release(lock, key.fingerprint(), archive.progress), Usage, "no Debian packages");
  lock.apt = archive.lock({"alpha"});
  CHECK_REFUSED(signed_release(lock, "packages@site.invalid", archive.progress), Usage, "40 hexadecimal digits");
  CHECK_REFUSED(signed_release(lock, std::string(40, 'A'), archive.progress), Missing, "gpg has no secret key");
  CHECK(signed_release(lock, key.fingerprint(), archive.progress).size() == 4);  // and its end is only warned of
}
