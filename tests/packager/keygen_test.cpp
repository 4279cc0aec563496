// SPDX-License-Identifier: Apache-2.0
// What keygen writes, and that it never writes over it.
#include "packager/keygen.hpp"

#include <doctest/doctest.h>

#include "sealift/bundle/signature.hpp"
#include "tests/support/refusal.hpp"
#include "tests/support/temp_dir.hpp"

using namespace sealift;
using packager::keygen;
using sealift::test::read_file;
using sealift::test::TempDir;
using sealift::test::write_file;

TEST_CASE("keygen writes a key for its owner only, its public half and its fingerprint") {
  const TempDir dir;
  const bundle::Digest fingerprint = keygen(dir / "keys");
  CHECK(read_file(dir / "keys/release.fingerprint") == "sha256:" + fingerprint.hex() + "\n");
  const auto key = bundle::PrivateKey::from_pem(read_file(dir / "keys/release.key"), "release.key");
  CHECK(key.public_key().fingerprint() == fingerprint);
  CHECK(bundle::PublicKey::from_pem(read_file(dir / "keys/release.pub"), "release.pub").fingerprint() == fingerprint);
  CHECK(std::filesystem::status(dir / "keys/release.key").permissions() == std::filesystem::perms(0600));
}

TEST_CASE("keygen never overwrites a key") {
  const TempDir dir;
  keygen(dir.path());
  const std::string before = read_file(dir / "release.key");
  CHECK_REFUSED(keygen(dir.path()), Conflict, "never overwritten");
  CHECK(read_file(dir / "release.key") == before);
}

TEST_CASE("keygen refuses when only the public half of an older key is there") {
  const TempDir dir;
  write_file(dir / "release.pub", "old");
  CHECK_REFUSED(keygen(dir.path()), Conflict, "release.pub");
  CHECK_FALSE(std::filesystem::exists(dir / "release.key"));
}
