// SPDX-License-Identifier: Apache-2.0
// Text forms of bytes and digests: right on known values, strict on everything else.
#include "sealift/bundle/core/bytes.hpp"

#include "sealift/bundle/core/digest.hpp"
#include "tests/support/refusal.hpp"

using namespace sealift::bundle;

TEST_CASE("hexadecimal round-trips and refuses upper case, odd lengths and other characters") {
  CHECK(to_hex(as_bytes("\x01\xfe")) == "01fe");
  CHECK(as_text(*from_hex("01fe")) == "\x01\xfe");
  for (const char* bad : {"01FE", "01f", "0g", " 01", "0x01"}) CHECK_FALSE(from_hex(bad));
}

TEST_CASE("base64 gives the values of RFC 4648") {
  const std::pair<const char*, const char*> cases[] = {{"", ""},
                                                       {"f", "Zg=="},
                                                       {"fo", "Zm8="},
                                                       {"foo", "Zm9v"},
                                                       {"foob", "Zm9vYg=="},
                                                       {"fooba", "Zm9vYmE="},
                                                       {"foobar", "Zm9vYmFy"}};
  for (const auto& [plain, encoded] : cases) {
    CHECK(to_base64(as_bytes(plain)) == encoded);
    REQUIRE(from_base64(encoded));
    CHECK(as_text(*from_base64(encoded)) == plain);
  }
  CHECK(to_base64(as_bytes("\xfb\xff"), Base64::UrlNoPad) == "-_8");
}

TEST_CASE("base64 has one spelling per value") {
  for (const char* bad : {"Zg", "Zg=", "Zg===", "Zh==", "Zm9v=", "Zm 9v", "Zm9v\n", "=", "Z", "-_8="}) {
    CAPTURE(std::string(bad));
    CHECK_FALSE(from_base64(bad));
  }
  CHECK_FALSE(from_base64("-_9", Base64::UrlNoPad));  // stray bits in the last digit
  CHECK_FALSE(from_base64("-_8=", Base64::UrlNoPad));
}

TEST_CASE("SHA-256 is the one of FIPS 180-4, in one piece or many") {
  CHECK(sha256(as_bytes("abc")).hex() == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  Hasher hasher;
  hasher.update(as_bytes("a"));
  hasher.update(as_bytes("bc"));
  CHECK(hasher.finish() == sha256(as_bytes("abc")));
  CHECK(hasher.finish() == sha256({}));  // finished hashers start anew
  CHECK(Digest::from_hex(sha256({}).hex()) == sha256({}));
  CHECK_FALSE(Digest::from_hex("abcd"));
}

TEST_CASE("SM3 is the one of GB/T 32905, in one piece or many, and no other name has an algorithm") {
  const Digest expected = *Digest::from_hex("66c7f0f462eeedd9d1f2d46bdc10e4e24167c4875cf2f7a2297da02b8f4ba8e0");
  CHECK(digest_of(as_bytes("abc"), DigestAlgorithm::Sm3) == expected);
  Hasher hasher(DigestAlgorithm::Sm3);
  hasher.update(as_bytes("a"));
  hasher.update(as_bytes("bc"));
  CHECK(hasher.finish() == expected);
  CHECK(hasher.finish() == digest_of({}, DigestAlgorithm::Sm3));
  for (const DigestAlgorithm algorithm : {DigestAlgorithm::Sha256, DigestAlgorithm::Sm3})
    CHECK(digest_algorithm(name_of(algorithm)) == algorithm);
  for (const char* other : {"", "md5", "sha1", "sha512", "SM3", "sha-256"}) CHECK_FALSE(digest_algorithm(other));
}
