// SPDX-License-Identifier: Apache-2.0
// What keygen writes, that its root trusts its key, that nothing is written over, and who may read a key.
#include "packager/keys/keygen.hpp"

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/resource.h>

#include <cstdlib>
#include <optional>

#include "packager/host/creation_time.hpp"
#include "packager/keys/key_file.hpp"
#include "sealift/bundle/trust/seal.hpp"
#include "tests/support/refusal.hpp"
#include "tests/support/temp_dir.hpp"

using namespace sealift;
using namespace sealift::packager;
using sealift::test::read_file;
using sealift::test::TempDir;
using sealift::test::write_file;
namespace fs = std::filesystem;

TEST_CASE("keygen writes a key for its owner only, its public half, and a root that trusts it") {
  for (const bundle::AlgorithmFacts& facts : bundle::kAlgorithms) {
    const TempDir dir;
    const bundle::Digest fingerprint = keygen({.folder = dir / "keys", .algorithm = facts.algorithm});
    CHECK(read_file(dir / "keys/root.fingerprint") == "sha256:" + fingerprint.hex() + "\n");
    CHECK(fs::status(dir / "keys/release.key").permissions() == fs::perms(0600));
    const bundle::PrivateKey key = read_private_key(dir / "keys/release.key", "");
    CHECK(read_public_key(dir / "keys/release.pub").id() == key.public_key().id());
    const auto chain =
        bundle::read_root_chain(bundle::parse_roots(read_file(dir / "keys/root.1.json"), "root"), "root");
    CHECK(chain.at(0).fingerprint() == fingerprint);
    CHECK(chain[0].root.roles.at("release").keys == std::vector{key.public_key().id()});
  }
}

TEST_CASE("nothing is dated by a clock that was never set, unless somebody names the date") {
  const char* const before = std::getenv("SOURCE_DATE_EPOCH");
  const std::string kept = before == nullptr ? "" : before;
  ::unsetenv("SOURCE_DATE_EPOCH");
  const auto at = [](const char* time) { return *bundle::parse_time(time); };
  CHECK_REFUSED(creation_time(at("1970-01-02T00:00:00Z")), Usage, "clock is wrong");
  CHECK_REFUSED(creation_time(at("1999-12-31T23:59:59Z")), Usage, "1999-12-31T23:59:59Z");
  CHECK(creation_time(at("2026-02-01T00:00:00Z")) == at("2026-02-01T00:00:00Z"));
  ::setenv("SOURCE_DATE_EPOCH", "3600", 1);
  CHECK(creation_time(at("1970-01-02T00:00:00Z")) == at("1970-01-01T01:00:00Z"));
  ::unsetenv("SOURCE_DATE_EPOCH");
  if (before != nullptr) ::setenv("SOURCE_DATE_EPOCH", kept.c_str(), 1);
}

TEST_CASE("with a name keygen writes only that key, and tells its id") {
  const TempDir dir;
  const bundle::Digest id = keygen({.folder = dir.path(), .name = "alice"});
  CHECK(read_public_key(dir / "alice.pub").id() == id);
  CHECK_FALSE(fs::exists(dir / "root.1.json"));
  CHECK_REFUSED(keygen({.folder = dir.path(), .name = "../bob"}), Usage, "../bob");
}

TEST_CASE("keygen never overwrites a key, even when only its public half is there") {
  const TempDir dir;
  keygen({.folder = dir / "a"});
  const std::string before = read_file(dir / "a/release.key");
  CHECK_REFUSED(keygen({.folder = dir / "a"}), Conflict, "never overwritten");
  CHECK(read_file(dir / "a/release.key") == before);
  write_file(dir / "b/release.pub", "old");
  CHECK_REFUSED(keygen({.folder = dir / "b"}), Conflict, "release.pub");
  CHECK_FALSE(fs::exists(dir / "b/release.key"));
}

TEST_CASE("keygen that finds no room for all of its files leaves none, and the next one finds nothing in its way") {
  const TempDir dir;
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &before) == 0);
  const auto signal_before = ::signal(SIGXFSZ, SIG_IGN);
  for (const rlim_t most : {rlim_t(10), rlim_t(200)}) {  // not even the key; the key, and half a root
    const rlimit small{.rlim_cur = most, .rlim_max = before.rlim_max};
    REQUIRE(::setrlimit(RLIMIT_FSIZE, &small) == 0);
    std::optional<bundle::ErrorCode> code;
    try {
      keygen({.folder = dir / "keys"});
    } catch (const bundle::Error& error) {
      code = error.code();
    }
    REQUIRE(::setrlimit(RLIMIT_FSIZE, &before) == 0);
    CHECK(code == bundle::ErrorCode::Io);
    CHECK(fs::is_empty(dir / "keys"));
  }
  ::signal(SIGXFSZ, signal_before);
  keygen({.folder = dir / "keys"});
}

TEST_CASE("a passphrase comes from a file or the environment") {
  const TempDir dir;
  write_file(dir / "words", "correct horse\nnot this\n");
  CHECK_REFUSED(read_passphrase(dir / "words"), Usage, "a passphrase can be read by others");
  fs::permissions(dir / "words", fs::perms(0600));
  CHECK(read_passphrase(dir / "words") == "correct horse");
  write_file(dir / "empty", "\n");
  fs::permissions(dir / "empty", fs::perms(0600));
  CHECK_REFUSED(read_passphrase(dir / "empty"), Usage, "empty");
  ::setenv("SEALIFT_PASSPHRASE", "battery", 1);
  CHECK(read_passphrase("") == "battery");
  ::unsetenv("SEALIFT_PASSPHRASE");
  CHECK(read_passphrase("").empty());
  keygen({.folder = dir.path(), .name = "k", .passphrase = "correct horse"});
  CHECK_NOTHROW(read_private_key(dir / "k.key", "correct horse"));
  CHECK_REFUSED(read_private_key(dir / "k.key", "battery"), Usage, "passphrase");
  CHECK_REFUSED(read_private_key(dir / "k.key", ""), Usage, "--passphrase-file");
}

TEST_CASE("a private key that others can read does not sign") {
  const TempDir dir;
  keygen({.folder = dir.path()});
  for (const fs::perms bad : {fs::perms::group_read, fs::perms::others_read, fs::perms::others_write}) {
    fs::permissions(dir / "release.key", fs::perms(0600) | bad);
    CHECK_REFUSED(read_private_key(dir / "release.key", ""), Usage, "chmod 600");
  }
  fs::permissions(dir / "release.key", fs::perms(0400));
  CHECK_NOTHROW(read_private_key(dir / "release.key", ""));
  CHECK_REFUSED(read_private_key(dir / "nowhere.key", ""), Missing, "nowhere.key");
  write_file(dir / "large.key", std::string(70'000, 'x'));
  fs::permissions(dir / "large.key", fs::perms(0600));
  CHECK_REFUSED(read_private_key(dir / "large.key", ""), Format, "too large");
}

TEST_CASE("a public key in the place of its private half is told as what it is") {
  const TempDir dir;
  keygen({.folder = dir.path()});
  CHECK_REFUSED(read_private_key(dir / "release.pub", ""), Usage, "this is a public key");
  CHECK_REFUSED(read_private_key(dir / "release.pub", ""), Usage, "release.key'");
}
