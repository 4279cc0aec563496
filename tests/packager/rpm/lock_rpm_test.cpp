// SPDX-License-Identifier: Apache-2.0
// The real dnf, createrepo_c and rpmkeys over made repositories: what is locked, what is carried, what is refused, and
// that dnf installs from what is carried, holding it to the keys that came along.
#include "packager/rpm/lock_rpm.hpp"

#include <doctest/doctest.h>

#include <cstdlib>

#include "packager/compare/diff.hpp"
#include "packager/host/process.hpp"
#include "packager/rpm/rpm_files.hpp"
#include "packager/rpm/signed_index.hpp"
#include "sealift/bundle/core/human_text.hpp"
#include "tests/packager/workshop.hpp"
#include "tests/support/real_gpg.hpp"
#include "tests/support/refusal.hpp"
#include "tests/support/rpm_repository.hpp"
#include "tests/support/unreliable_server.hpp"

using namespace sealift;
using namespace sealift::packager;
using namespace sealift::test;
namespace fs = std::filesystem;

namespace {

struct RpmDesk {
  TempDir dir;
  Cache cache{dir / "cache"};
  bundle::Progress progress{nullptr};

  // A copy of a repository, for a test that changes it.
  fs::path copy_of(const std::string& name) const {
    fs::copy(rpm_repositories() / name, dir / name, fs::copy_options::recursive);
    return dir / name;
  }
  static RpmRepository at(const fs::path& folder, RpmSigned checked, const std::vector<std::string>& keys) {
    RpmRepository repository{
        .name = folder.filename(), .url = "file://" + folder.string(), .keys = {}, .checked = checked};
    for (const std::string& key : keys) repository.keys.push_back(rpm_repositories() / (key + ".asc"));
    return repository;
  }
  static RpmRepository site(RpmSigned checked = RpmSigned::Packages) {
    return at(rpm_repositories() / "signed", checked, {"site"});
  }
  LockedRpm lock(const std::vector<std::string>& packages, const std::vector<RpmRepository>& repositories) {
    return lock_rpm({.packages = packages, .release = "9", .repositories = repositories}, "x86_64", cache, progress);
  }
  LockedRpm lock(const std::vector<std::string>& packages) { return lock(packages, {site()}); }
  // createrepo_c of what a hostile mirror puts in its folder.
  static void index(const fs::path& folder, const std::vector<std::string>& more = {}) {
    std::vector<std::string> command = {"createrepo_c", "--quiet", "--no-database", folder.string()};
    command.insert(command.end(), more.begin(), more.end());
    run_checked(command);
  }
};

std::vector<std::string> names_of_files(const LockedRpm& rpm) {
  std::vector<std::string> names;
  for (const LockedRpmPackage& package : rpm.rpms) names.push_back(package.file);
  return names;
}

// The text of primary.xml in a folder, changed, with a repomd.xml that fits it.
void replace_in_index(const fs::path& folder, const std::string& before, const std::string& after) {
  const std::string command = "cd " + folder.string() + "/repodata && gunzip *-primary.xml.gz && sed -i 's|" + before +
                              "|" + after +
                              "|' *-primary.xml && mv *-primary.xml primary.xml && modifyrepo_c --remove primary . > "
                              "/dev/null 2>&1; modifyrepo_c --mdtype primary primary.xml . > /dev/null 2>&1";
  REQUIRE(std::system(command.c_str()) == 0);
}

}  // namespace

TEST_CASE("dnf's closure is locked by address and digest, with an index of exactly these packages and their keys") {
  RpmDesk desk;
  CHECK(desk.lock({}, {}) == LockedRpm{});
  const LockedRpm locked = desk.lock({"alpha"});
  CHECK(names_of_files(locked) == std::vector<std::string>{"alpha-1.0-1.noarch.rpm", "beta-2.0~rc1-1.noarch.rpm"});
  const fs::path alpha = rpm_repositories() / "signed/alpha-1.0-1.noarch.rpm";
  CHECK(locked.rpms[0].url == "file://" + alpha.string());
  CHECK(locked.rpms[0].size == fs::file_size(alpha));
  CHECK(locked.rpms[0].sha256 == digest_of_file(alpha));
  CHECK(read_file(desk.cache.path(locked.rpms[0].sha256)) == read_file(alpha));
  REQUIRE(locked.index.size() == 5);
  CHECK(locked.index[0].file == "keys.asc");
  CHECK(read_file(desk.cache.path(locked.index[0].sha256)) == read_file(rpm_repositories() / "site.asc"));
  CHECK(locked.index[4].file == "repodata/repomd.xml");
  CHECK(locked.unsigned_repositories.empty());
  CHECK(desk.lock({"alpha"}) == locked);

  SUBCASE("the same from another cache, so that two locks of one job are one") {
    RpmDesk other;
    CHECK(other.lock({"alpha"}) == locked);
  }
  SUBCASE("and what is carried is a repository by itself, which resolves to the same") {
    const std::vector<Content> contents = contents_of(locked);
    REQUIRE(contents.size() == 7);
    fetch(downloads_of(contents), desk.cache, desk.progress);
    for (const Content& content : contents) {
      fs::create_directories((desk.dir / content.into).parent_path());
      fs::copy_file(file_of(content, desk.cache), desk.dir / content.into);
    }
    const LockedRpm again = desk.lock({"alpha"}, {RpmDesk::at(desk.dir / "rpm", RpmSigned::Packages, {"site"})});
    CHECK(names_of_files(again) == names_of_files(locked));
    CHECK(again.index == locked.index);
  }
  SUBCASE("and an index that the cache lost is named") {
    require_inputs(contents_of(locked), desk.cache);
    fs::remove(desk.cache.path(locked.index[4].sha256));
    CHECK_REFUSED(require_inputs(contents_of(locked), desk.cache), Missing, "repomd.xml of the rpm packages");
    require_inputs(contents_of(LockedRpm{}), desk.cache);
  }
}

TEST_CASE("rpm packages that are only recommended stay behind, and a version can be asked for") {
  RpmDesk desk;
  CHECK(names_of_files(desk.lock({"gamma"})) == std::vector<std::string>{"gamma-3-1.noarch.rpm"});
  CHECK(desk.lock({"beta-1:2.0~rc1-1"}).rpms.size() == 1);
}

TEST_CASE("unknown rpm packages are all named at once, and what cannot be resolved is said in dnf's words") {
  RpmDesk desk;
  CHECK_REFUSED(desk.lock({"nosuch", "alpha", "neither"}), Usage, "nosuch, neither");
  CHECK_REFUSED(desk.lock({"alpha-7"}), Usage, "alpha-7");
  CHECK_REFUSED(desk.lock({"needy"}), Conflict, "epsilon");
  CHECK_REFUSED(desk.lock({"alpha"}, {RpmDesk::at(desk.dir / "nowhere", RpmSigned::Packages, {"site"})}), Network,
                "repomd.xml");
}

TEST_CASE("packages that a repository's own keys did not sign are refused by name, unless the job says so") {
  RpmDesk desk;
  const fs::path other = rpm_repositories() / "other";
  CHECK_REFUSED(desk.lock({"plain"}, {RpmDesk::at(other, RpmSigned::Packages, {"other"})}), Signature,
                "plain-1-1.noarch.rpm: no signature");
  CHECK_REFUSED(desk.lock({"foreign"}, {RpmDesk::at(other, RpmSigned::Packages, {"site"})}), Signature, "NOKEY");
  CHECK(desk.lock({"foreign"}, {RpmDesk::at(other, RpmSigned::Packages, {"other"})}).rpms.size() == 1);
  // The key of one repository says nothing about another's packages.
  const std::vector<RpmRepository> both = {
      RpmDesk::at(rpm_repositories() / "signed", RpmSigned::Packages, {"site", "other"}),
      RpmDesk::at(other, RpmSigned::Packages, {"site"})};
  CHECK_REFUSED(desk.lock({"alpha", "foreign"}, both), Signature, "foreign");
  const LockedRpm taken = desk.lock({"plain"}, {RpmDesk::at(other, RpmSigned::Nothing, {})});
  CHECK(taken.unsigned_repositories == std::vector<std::string>{"other"});
  for (const LockedRpmIndex& index : taken.index) CHECK(index.file != "keys.asc");
}

TEST_CASE("an index is held to its signature where the job asks for it") {
  RpmDesk desk;
  for (const RpmSigned checked : {RpmSigned::Index, RpmSigned::Both}) {
    CHECK(desk.lock({"alpha"}, {RpmDesk::site(checked)}).rpms.size() == 2);
    CHECK_REFUSED(desk.lock({"plain"}, {RpmDesk::at(rpm_repositories() / "other", checked, {"other"})}), Signature,
                  "GPG");
    CHECK_REFUSED(desk.lock({"alpha"}, {RpmDesk::at(rpm_repositories() / "signed", checked, {"other"})}), Signature,
                  "GPG");
  }
  const fs::path changed = desk.copy_of("signed");
  write_file(changed / "repodata/repomd.xml", read_file(changed / "repodata/repomd.xml") + "\n");
  CHECK_REFUSED(desk.lock({"alpha"}, {RpmDesk::at(changed, RpmSigned::Index, {"site"})}), Signature, "GPG");
  CHECK(desk.lock({"alpha"}, {RpmDesk::at(changed, RpmSigned::Packages, {"site"})}).rpms.size() == 2);
}

TEST_CASE("a package that is another than its index says is refused, though its own signature is right") {
  RpmDesk desk;
  const fs::path hostile = desk.copy_of("signed");
  replace_in_index(hostile, "<name>gamma</name>", "<name>delta</name>");
  CHECK_REFUSED(desk.lock({"delta"}, {RpmDesk::at(hostile, RpmSigned::Packages, {"site"})}), Conflict,
                "another than its repository's index says");
  replace_in_index(hostile, "ver=\"3\"", "ver=\"4\"");
  CHECK_REFUSED(desk.lock({"delta-4"}, {RpmDesk::at(hostile, RpmSigned::Packages, {"site"})}), Conflict, "delta 4-1");
}

TEST_CASE("an index whose package climbs out of its folder, is of another machine or lies about bytes is refused") {
  RpmDesk desk;
  const fs::path hostile = desk.copy_of("signed");
  const auto lock = [&] { return desk.lock({"gamma"}, {RpmDesk::at(hostile, RpmSigned::Packages, {"site"})}); };
  SUBCASE("a version with a slash") {
    replace_in_index(hostile, "ver=\"3\"", "ver=\"../3\"");
    CHECK_REFUSED(lock(), Format, "other characters");
  }
  SUBCASE("an address with a password") {
    replace_in_index(hostile, "<location href=\"gamma", "<location xml:base=\"http://a:b@c.invalid/\" href=\"gamma");
    CHECK_REFUSED(lock(), Format, "address");
  }
  SUBCASE("a file of this machine, in the index of another one") {
    replace_in_index(hostile, "<location href=\"gamma",
                     "<location xml:base=\"file://" + hostile.string() + "\" href=\"gamma");
    CHECK(lock().rpms.size() == 1);  // the mirror is a folder here, and names its own
    UnreliableServer server;
    for (const fs::directory_entry& file : fs::directory_iterator(hostile / "repodata"))
      server.put("/repodata/" + file.path().filename().string(), {.body = read_file(file.path())});
    RpmRepository far = RpmDesk::at(hostile, RpmSigned::Packages, {"site"});
    far.url = server.url("");
    CHECK_REFUSED(desk.lock({"gamma"}, {far}), Format, "a file of this machine");
  }
  SUBCASE("other bytes than the index says") {
    write_file(hostile / "gamma-3-1.noarch.rpm", read_file(hostile / "gamma-3-1.noarch.rpm") + "x");
    CHECK_REFUSED(lock(), Digest, "gamma");
  }
  SUBCASE("digests of another kind") {
    fs::remove_all(hostile / "repodata");
    RpmDesk::index(hostile, {"--checksum", "sha512"});
    CHECK_REFUSED(lock(), CannotCheck, "no SHA-256");
  }
}

TEST_CASE("the index is compressed as every dnf reads it, whatever createrepo_c would choose") {
  RpmDesk desk;
  write_file(desk.dir / "bin/createrepo_c",
             "#!/bin/sh\ncase \"$*\" in *--general-compress-type*) ;; *) set -- --general-compress-type xz \"$@\";; "
             "esac\nexec /usr/bin/createrepo_c \"$@\"\n");
  fs::permissions(desk.dir / "bin/createrepo_c", fs::perms(0755));
  const std::string path = std::getenv("PATH");
  ::setenv("PATH", ((desk.dir / "bin").string() + ":" + path).c_str(), 1);
  const LockedRpm locked = desk.lock({"alpha"});
  ::setenv("PATH", path.c_str(), 1);
  for (const LockedRpmIndex& file : locked.index)
    CHECK((file.file.ends_with(".gz") || file.file.ends_with("repomd.xml") || file.file == "keys.asc"));
}

TEST_CASE("an rpm whose version has a '^' is locked, and carried under its name") {
  RpmDesk desk;
  const LockedRpm locked = desk.lock({"snapshot"});
  CHECK(names_of_files(locked) == std::vector<std::string>{"snapshot-1.0^git5-1.noarch.rpm"});
  CHECK(contents_of(locked).back().into.ends_with("snapshot-1.0^git5-1.noarch.rpm"));
  CHECK(fetch(downloads_of(contents_of(locked)), desk.cache, desk.progress) == 0);
}

TEST_CASE("a machine without dnf, createrepo_c or rpmkeys is told which") {
  RpmDesk desk;
  fs::create_directories(desk.dir / "bin");
  const std::string path = std::getenv("PATH");
  ::setenv("PATH", (desk.dir / "bin").c_str(), 1);
  const auto give = [&](const char* name) { fs::create_symlink(fs::path("/usr/bin") / name, desk.dir / "bin" / name); };
  CHECK_REFUSED(desk.lock({"alpha"}), Missing, "createrepo_c, which");
  give("createrepo_c");
  CHECK_REFUSED(desk.lock({"alpha"}), Missing, "rpmkeys, which");
  give("rpmkeys");
  CHECK_REFUSED(desk.lock({"alpha"}), Missing, "dnf, which");
  write_file(desk.dir / "bin/dnf",
             "\x7f"
             "ELF");
  fs::permissions(desk.dir / "bin/dnf", fs::perms::owner_all);
  CHECK_REFUSED(desk.lock({"alpha"}), CannotCheck, "another interface");
  ::setenv("PATH", path.c_str(), 1);
}

TEST_CASE("from lock to a bare root: packed, compared, exported, and installed by dnf with its signatures checked") {
  Workshop workshop;
  const Cache cache(workshop.cache());
  bundle::Progress silent(nullptr);
  workshop.lock.rpm =
      lock_rpm({.packages = {"alpha"}, .release = "9", .repositories = {RpmDesk::site()}}, "x86_64", cache, silent);
  const CreateResult made = workshop.pack();
  const Diff same = diff(read_diff_side(workshop.dir / "demo.lock.toml"), read_diff_side(made.folder));
  for (const Diff::Item& item : same.items) CHECK(item.name.find("rpm") == std::string::npos);
  const fs::path out = workshop.dir / "rpms";
  run_checked({SEALIFT_INSTALL, "export", made.folder, "--fingerprint",
               bundle::fingerprint_text(*pinned(one_key_root(workshop.key)).state.pinned), "--rpms", out});
  for (const LockedRpmPackage& rpm : workshop.lock.rpm.rpms) CHECK(digest_of_file(out / rpm.file) == rpm.sha256);
  const std::string url = "file://" + out.string(), root = (workshop.dir / "root").string();
  const int status = dnf_install(root, url, url + "/keys.asc", "alpha");
  INFO(read_file(root + ".log"));
  REQUIRE(status == 0);
  CHECK(read_file(root + "/usr/share/alpha/file") == "alpha 1.0\n");
  CHECK(read_file(root + "/usr/share/beta/file") == "beta 2.0~rc1\n");
  const std::string other = "file://" + (rpm_repositories() / "other.asc").string();
  CHECK(dnf_install(root + "2", url, other, "alpha") != 0);
  CHECK_FALSE(fs::exists(root + "2/usr/share/alpha"));
}

TEST_CASE(
    "an index that gpg signed is taken by dnf with repo_gpgcheck; changed, unsigned or by another key it is not") {
  Workshop workshop;
  const Cache cache(workshop.cache());
  bundle::Progress silent(nullptr);
  workshop.lock.rpm =
      lock_rpm({.packages = {"alpha"}, .release = "9", .repositories = {RpmDesk::site()}}, "x86_64", cache, silent);
  const OpenPgpKey key, other;
  REQUIRE(key.made());
  const GpgHome home(key);
  workshop.rpm_key = key.fingerprint();
  const fs::path out = workshop.dir / "rpms";
  run_checked({SEALIFT_INSTALL, "export", workshop.pack().folder, "--fingerprint",
               bundle::fingerprint_text(*pinned(one_key_root(workshop.key)).state.pinned), "--rpms", out});
  const std::string url = "file://" + out.string(), packages = url + "/keys.asc",
                    index = url + "/repodata/repomd.xml.key";
  int number = 0;
  const auto installs = [&](const std::string& keys) {
    const std::string root = (workshop.dir / ("root" + std::to_string(number++))).string();
    const bool good = dnf_install(root, url, keys, "alpha", true) == 0;
    INFO(read_file(root + ".log"));
    CHECK(good == fs::exists(root + "/usr/share/alpha/file"));
    if (!good) CHECK(read_file(root + ".log").find("GPG signature verification error") != std::string::npos);
    return good;
  };
  CHECK(installs(packages + "," + index));
  CHECK_FALSE(installs(packages));  // the packages' key did not sign the index
  write_file(workshop.dir / "other.asc", other.gpg("--armor --export").output);
  CHECK_FALSE(installs(packages + ",file://" + (workshop.dir / "other.asc").string()));
  const std::string repomd = read_file(out / "repodata/repomd.xml");
  write_file(out / "repodata/repomd.xml", repomd + "\n");
  CHECK_FALSE(installs(packages + "," + index));
  write_file(out / "repodata/repomd.xml", repomd);
  fs::remove(out / "repodata/repomd.xml.asc");
  const std::string root = (workshop.dir / "unsigned").string();
  CHECK(dnf_install(root, url, packages + "," + index, "alpha", true) != 0);
}

TEST_CASE("only the index that was locked is signed, and only where there is one") {
  RpmDesk desk;
  const OpenPgpKey key;
  REQUIRE(key.made());
  const GpgHome home(key);
  Lock lock;
  CHECK_REFUSED(signed_index(lock, key.fingerprint(), desk.cache, desk.progress), Usage, "no rpm packages");
  lock.rpm = desk.lock({"gamma"});
  CHECK_REFUSED(signed_index(lock, "packages", desk.cache, desk.progress), Usage, "40 hexadecimal digits");
  CHECK_REFUSED(signed_index(lock, std::string(40, 'A'), desk.cache, desk.progress), Missing, "gpg has no secret key");
  const std::vector<Content> made = signed_index(lock, key.fingerprint(), desk.cache, desk.progress);
  REQUIRE(made.size() == 2);
  CHECK(made[0].entry == "files/rpm/repodata/repomd.xml.asc");
  CHECK(made[1].into == "rpm/repodata/repomd.xml.key");
  const LockedRpmIndex& repomd = lock.rpm.index.back();
  REQUIRE(repomd.file == "repodata/repomd.xml");
  const fs::path kept = desk.cache.path(repomd.sha256);
  const std::string changed = read_file(kept) + "\n";
  fs::remove(kept);
  write_file(kept, changed);
  CHECK_REFUSED(signed_index(lock, key.fingerprint(), desk.cache, desk.progress), Digest, "another than was locked");
}
