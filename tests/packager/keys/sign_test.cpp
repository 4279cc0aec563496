// SPDX-License-Identifier: Apache-2.0
// Roots from TOML, and signatures added to roots and bundles: here, and by keys that live elsewhere.
#include "packager/keys/sign.hpp"

#include "packager/host/process.hpp"
#include "packager/keys/keygen.hpp"
#include "packager/keys/root_job.hpp"
#include "tests/support/refusal.hpp"
#include "tests/support/tiny_bundle.hpp"

using namespace sealift;
using namespace sealift::packager;
using namespace sealift::test;
namespace fs = std::filesystem;

namespace {

// Three people with 2 of 3 for roots, two of them release; the desk has its own key.
struct Ceremony {
  TempDir dir;
  Ceremony() {
    for (const char* name : {"alice", "bob", "carol"}) keygen({.folder = dir.path(), .name = name});
    keygen({.folder = dir.path(), .algorithm = bundle::Algorithm::Sm2, .name = "desk"});
    write_file(dir / "root.toml", toml());
  }
  static std::string toml(const std::string& more = "") {
    return "name = \"bank\"\nexpires = \"2036-01-01T00:00:00Z\"\n" + more +
           "[root]\nkeys = [\"alice.pub\", \"bob.pub\", \"carol.pub\"]\nthreshold = 2\n"
           "[release]\nkeys = [\"alice.pub\", \"bob.pub\"]\nthreshold = 2\n"
           "[site]\nkeys = [\"desk.pub\"]\nthreshold = 1\nalgorithms = [\"sm2\"]\n";
  }
  fs::path key(const char* name) const { return dir / (std::string(name) + ".key"); }
  fs::path root() {
    const fs::path file = create_root({.job = dir / "root.toml"}).file;
    sign({.file = file, .keys = {key("alice"), key("bob")}});
    return file;
  }
};

}  // namespace

TEST_CASE("a root is made from TOML and signed by one after the other") {
  Ceremony ceremony;
  const RootJobResult made = create_root({.job = ceremony.dir / "root.toml"});
  CHECK(made.file == ceremony.dir / "root.1.json");
  CHECK(made.root.roles.at("root").threshold == 2);
  CHECK(made.root.roles.at("site").algorithms == std::vector<std::string>{"sm2"});
  CHECK_REFUSED(read_roots({made.file}), Signature, "0 of 2 root signatures");
  CHECK(text_of(sign({.file = made.file, .keys = {ceremony.key("alice")}}).roles) == "root 1 of 2");
  CHECK_REFUSED(read_roots({made.file}), Signature, "1 of 2 root signatures");
  CHECK(text_of(sign({.file = made.file, .keys = {ceremony.key("alice")}}).roles) == "root 1 of 2");  // counts once
  const SignResult done = sign({.file = made.file, .keys = {ceremony.key("carol")}});
  CHECK(text_of(done.roles) == "root 2 of 2");
  CHECK(done.digest == made.fingerprint);
  CHECK(read_roots({made.file}).size() == 1);
  CHECK_REFUSED(create_root({.job = ceremony.dir / "root.toml"}), Conflict, "not overwritten");
}

TEST_CASE("the next root keeps what the one before revoked, and its floors") {
  Ceremony ceremony;
  const fs::path one = ceremony.root();
  const std::string digest = "sha256:" + std::string(64, 'a');
  write_file(ceremony.dir / "root.toml", Ceremony::toml() + "[[revoked_bundle]]\nmanifest = \"" + digest +
                                             "\"\nreason = \"bad\"\n" +
                                             "[[floor]]\nchannel = \"prod\"\nname = \"env\"\nversion = 3\n");
  const RootJobResult two = create_root({.job = ceremony.dir / "root.toml", .previous = one});
  CHECK(two.root.version == 2);
  sign({.file = two.file, .keys = {ceremony.key("alice"), ceremony.key("bob")}});
  write_file(ceremony.dir / "root.toml", Ceremony::toml("strict = true\nreset = true\n"));
  const RootJobResult three = create_root({.job = ceremony.dir / "root.toml", .previous = two.file});
  CHECK(three.root.version == 3);
  CHECK(three.root.strict);
  CHECK(three.root.reset);
  CHECK(three.root.revoked_bundles.at(bundle::Digest::from_hex(std::string(64, 'a')).value()).reason == "bad");
  CHECK(three.root.floors.begin()->second == 3);
  sign({.file = three.file, .keys = {ceremony.key("carol"), ceremony.key("bob")}});
  CHECK(read_roots({one, two.file, three.file}).size() == 3);
}

TEST_CASE("a root job that makes no sense is refused with file, line and key") {
  Ceremony ceremony;
  const auto refused = [&](const std::string& toml) {
    write_file(ceremony.dir / "root.toml", toml);
    return refusal([&] { create_root({.job = ceremony.dir / "root.toml"}); });
  };
  CHECK(mentions(refused(Ceremony::toml("profile = \"gm+fips\"\n")), "no root can meet both"));
  CHECK(mentions(refused(Ceremony::toml("profile = \"nato\"\n")), "line 3, key 'profile'"));
  CHECK(mentions(refused(Ceremony::toml("extra = 1\n")), "not known"));
  CHECK(mentions(refused("name = \"x\"\nexpires = \"soon\"\n"), "this is not a time"));
  std::string twice = Ceremony::toml();
  twice.replace(twice.find("\"bob.pub\""), 9, "\"alice.pub\"");
  CHECK(mentions(refused(twice), "a key is listed twice"));
  std::string zero = Ceremony::toml();
  zero.replace(zero.find("threshold = 2"), 13, "threshold = 0");
  CHECK(mentions(refused(zero), "the threshold must be from 1"));
  std::string private_half = Ceremony::toml();
  private_half.replace(private_half.find("alice.pub"), 9, "alice.key");
  CHECK(mentions(refused(private_half), "a private key"));
  CHECK_FALSE(fs::exists(ceremony.dir / "root.1.json"));
}

TEST_CASE("signatures are added to a bundle without touching a volume, and openssl's are taken in") {
  Ceremony ceremony;
  const fs::path root = ceremony.root();
  const MadeBundle made = make_bundle(ceremony.dir / "b", {});
  const std::string volume = read_file(made.volume(0));
  reseal(made, read_roots({root}), {});
  CHECK(text_of(sign({.file = made.folder, .keys = {ceremony.key("alice")}}).roles) == "release 1 of 2, site 0 of 1");
  CHECK(text_of(sign({.file = made.seal(), .keys = {ceremony.key("bob")}}).roles) == "release 2 of 2, site 0 of 1");
  CHECK_REFUSED(sign({.file = made.folder, .keys = {ceremony.key("carol")}}), Usage, "may not sign bundles");

  const std::string folder = ceremony.dir.path();
  sign({.file = made.folder, .export_to = ceremony.dir / "to-sign"});
  const auto openssl = [&](const std::string& id) {
    run_checked({"openssl", "pkeyutl", "-sign", "-inkey", folder + "/desk.key", "-rawin", "-digest", "sm3", "-pkeyopt",
                 "distid:" + id, "-in", folder + "/to-sign", "-out", folder + "/signature"});
  };
  const std::string before = read_file(made.seal());
  const SignOptions import{
      .file = made.folder, .import_from = ceremony.dir / "signature", .public_key = ceremony.dir / "desk.pub"};
  openssl("8765432187654321");
  CHECK_REFUSED(sign(import), Signature, "SM2 ID");
  CHECK(read_file(made.seal()) == before);
  openssl("1234567812345678");
  CHECK(text_of(sign(import).roles) == "release 2 of 2, site 1 of 1");
  const bundle::Trust trust{
      .state = {.pinned = read_roots({root})[0].digest(), .root = {}, .seen = {}, .time_floor = {}}};
  CHECK(bundle::verify(bundle::open(made.folder), trust, kNow).signers().size() == 3);
  CHECK(read_file(made.volume(0)) == volume);
}

TEST_CASE("a bundle gets a newer chain of roots and its key's signature in one step") {
  Ceremony ceremony;
  const fs::path one = ceremony.root();
  const MadeBundle made = make_bundle(ceremony.dir / "b", {});
  reseal(made, read_roots({one}), {});
  write_file(ceremony.dir / "root.toml",
             "name = \"bank\"\nexpires = \"2036-01-01T00:00:00Z\"\n"
             "[root]\nkeys = [\"alice.pub\", \"bob.pub\"]\nthreshold = 2\n"
             "[release]\nkeys = [\"carol.pub\"]\nthreshold = 1\n"
             "[[revoked_key]]\nkey = \"desk.pub\"\nreason = \"lost\"\n");
  const fs::path two = create_root({.job = ceremony.dir / "root.toml", .previous = one}).file;
  CHECK_REFUSED(sign({.file = made.folder, .keys = {ceremony.key("carol")}, .roots = {one, two}}), Signature, "0 of 2");
  sign({.file = two, .keys = {ceremony.key("alice"), ceremony.key("bob")}});
  CHECK(text_of(sign({.file = made.folder, .keys = {ceremony.key("carol")}, .roots = {one, two}}).roles) ==
        "release 1 of 1");
  CHECK_REFUSED(sign({.file = made.folder, .keys = {ceremony.key("desk")}}), Revoked, "lost");
}

TEST_CASE("sign wants one thing to do") {
  Ceremony ceremony;
  const fs::path root = ceremony.root();
  CHECK_REFUSED(sign({.file = root}), Usage, "one thing");
  CHECK_REFUSED(sign({.file = root, .keys = {ceremony.key("bob")}, .export_to = ceremony.dir / "x"}), Usage,
                "one thing");
  CHECK_REFUSED(sign({.file = root, .import_from = ceremony.dir / "x"}), Usage, "one thing");
  CHECK_REFUSED(sign({.file = root, .roots = {root}}), Usage, "--root is for bundles");
}
