// SPDX-License-Identifier: Apache-2.0
// Roots from TOML, and signatures added to roots and bundles: here, and by keys that live elsewhere.
#include "packager/keys/sign.hpp"

#include <functional>
#include <thread>

#include "packager/host/process.hpp"
#include "packager/keys/key_file.hpp"
#include "packager/keys/keygen.hpp"
#include "packager/keys/root_job.hpp"
#include "packager/keys/sign_root.hpp"
#include "packager/keys/signing.hpp"
#include "sealift/bundle/trust/trust_folder.hpp"
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
    return "name = \"bank\"\nexpires = \"2036-01-01T00:00:00Z\"\nshared_keys = true\n" + more +
           "[root]\nkeys = [\"alice.pub\", \"bob.pub\", \"carol.pub\"]\nthreshold = 2\n"
           "[release]\nkeys = [\"alice.pub\", \"bob.pub\"]\nthreshold = 2\n"
           "[site]\nkeys = [\"desk.pub\"]\nthreshold = 1\nalgorithms = [\"sm2\"]\n";
  }
  fs::path key(const char* name) const { return dir / (std::string(name) + ".key"); }
  fs::path root() {
    const RootJobResult made = create_root({.job = dir / "root.toml"});
    fingerprint = made.fingerprint;
    sign_first(made.file, {"alice", "bob"});
    return made.file;
  }
  // By keys of this folder; the first root's fingerprint is what everybody has pinned.
  SignOptions by(const fs::path& file, const std::vector<const char*>& names, std::vector<fs::path> roots = {}) const {
    SignOptions options;
    for (const char* name : names) options.keys.push_back(key(name));
    options.file = file;
    options.roots = std::move(roots);
    options.fingerprint = fingerprint;
    return options;
  }
  SignResult sign_first(const fs::path& file, const std::vector<const char*>& names) const {
    return sign_root(by(file, names), quiet);
  }
  SignResult sign_next(const fs::path& file, const std::vector<const char*>& names,
                       std::vector<fs::path> before) const {
    return sign_root(by(file, names, std::move(before)), quiet);
  }
  SignResult sign_bundle(const fs::path& file, const std::vector<const char*>& names,
                         std::vector<fs::path> roots = {}) const {
    return sign(by(file, names, std::move(roots)), quiet);
  }

  bundle::Digest fingerprint;
  mutable bundle::Progress quiet{nullptr};
};

}  // namespace

TEST_CASE("a root is made from TOML and signed by one after the other") {
  Ceremony ceremony;
  const RootJobResult made = create_root({.job = ceremony.dir / "root.toml"});
  CHECK(made.file == ceremony.dir / "root.1.json");
  CHECK(made.root.roles.at("root").threshold == 2);
  CHECK(made.root.roles.at("site").algorithms == std::vector<std::string>{"sm2"});
  ceremony.fingerprint = made.fingerprint;
  CHECK_REFUSED(read_roots({made.file}), Signature, "0 of 2 root signatures");
  CHECK(text_of(ceremony.sign_first(made.file, {"alice"}).roles) == "root 1 of 2");
  CHECK_REFUSED(read_roots({made.file}), Signature, "1 of 2 root signatures");
  CHECK(text_of(ceremony.sign_first(made.file, {"alice"}).roles) == "root 1 of 2");  // counts once
  const SignResult done = ceremony.sign_first(made.file, {"carol"});
  CHECK(text_of(done.roles) == "root 2 of 2");
  CHECK(done.digest == made.fingerprint);
  CHECK(read_roots({made.file}).size() == 1);
  CHECK_REFUSED(create_root({.job = ceremony.dir / "root.toml"}), Conflict, "not overwritten");
}

TEST_CASE("the next root keeps what the one before revoked, and its floors") {
  Ceremony ceremony;
  const fs::path one = ceremony.root();
  keygen({.folder = ceremony.dir.path(), .name = "dave"});
  const std::string digest = "sha256:" + std::string(64, 'a');
  write_file(ceremony.dir / "root.toml", Ceremony::toml() + "[[revoked_key]]\nkey = \"dave.pub\"\nreason = \"lost\"\n" +
                                             "[[revoked_bundle]]\nmanifest = \"" + digest + "\"\nreason = \"bad\"\n" +
                                             "[[floor]]\nchannel = \"prod\"\nname = \"env\"\nversion = 3\n");
  const RootJobResult two = create_root({.job = ceremony.dir / "root.toml", .previous = one});
  CHECK(two.root.version == 2);
  ceremony.sign_next(two.file, {"alice", "bob"}, {one});
  write_file(ceremony.dir / "root.toml", Ceremony::toml("strict = true\nreset = true\n"));
  const RootJobResult three = create_root({.job = ceremony.dir / "root.toml", .previous = two.file});
  CHECK(three.root.version == 3);
  CHECK(three.root.strict);
  CHECK(three.root.reset);
  CHECK(three.root.revoked_bundles.at(bundle::Digest::from_hex(std::string(64, 'a')).value()).reason == "bad");
  CHECK(three.root.floors.begin()->second == 3);
  REQUIRE(three.root.revoked_keys.size() == 1);
  CHECK(three.root.revoked_keys.begin()->second.reason == "lost");
  ceremony.sign_next(three.file, {"carol", "bob"}, {one, two.file});
  CHECK(read_roots({one, two.file, three.file}).size() == 3);
}

TEST_CASE("a role that names a revoked key is refused in the words of the job, now and in each later root") {
  Ceremony ceremony;
  const fs::path one = ceremony.root(), job = ceremony.dir / "root.toml";
  const std::string revoked = "[[revoked_key]]\nkey = \"alice.pub\"\nreason = \"laptop stolen\"\n";
  write_file(job, Ceremony::toml() + revoked);
  CHECK_REFUSED(create_root({.job = job, .previous = one}), Usage, "[[revoked_key]] below revokes");
  CHECK_REFUSED(create_root({.job = job, .previous = one}), Usage, "put its owner's new key there");
  CHECK_FALSE(fs::exists(ceremony.dir / "root.2.json"));
  std::string without = Ceremony::toml();
  for (const char* list : {"[\"alice.pub\", \"bob.pub\", \"carol.pub\"]", "[\"alice.pub\", \"bob.pub\"]"})
    without.replace(without.find(list), std::string(list).size(), "[\"carol.pub\", \"bob.pub\"]");
  write_file(job, without + revoked);
  const fs::path two = create_root({.job = job, .previous = one}).file;
  ceremony.sign_next(two, {"carol", "bob"}, {one});
  write_file(job, Ceremony::toml());
  CHECK_REFUSED(create_root({.job = job, .previous = two}), Usage, "was revoked by root 2 or one before it");
}

TEST_CASE("a root job that makes no sense is refused with file, line and key") {
  Ceremony ceremony;
  const auto refused = [&](const std::string& toml) {
    write_file(ceremony.dir / "root.toml", toml);
    return refusal([&] { create_root({.job = ceremony.dir / "root.toml"}); });
  };
  CHECK(mentions(refused(Ceremony::toml("profile = \"gm+fips\"\n")), "no root can meet both"));
  CHECK(mentions(refused(Ceremony::toml("profile = \"nato\"\n")), "line 4, key 'profile'"));
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
  CHECK(text_of(ceremony.sign_bundle(made.folder, {"alice"}).roles) == "release 1 of 2, site 0 of 1");
  CHECK(text_of(ceremony.sign_bundle(made.seal(), {"bob"}).roles) == "release 2 of 2, site 0 of 1");
  CHECK_REFUSED(ceremony.sign_bundle(made.folder, {"carol"}), Usage, "may not sign bundles");

  const std::string folder = ceremony.dir.path();
  SignOptions export_it = ceremony.by(made.folder, {});
  export_it.export_to = ceremony.dir / "to-sign";
  sign(export_it, ceremony.quiet);
  const auto openssl = [&](const std::string& id) {
    run_checked({"openssl", "pkeyutl", "-sign", "-inkey", folder + "/desk.key", "-rawin", "-digest", "sm3", "-pkeyopt",
                 "distid:" + id, "-in", folder + "/to-sign", "-out", folder + "/signature"});
  };
  const std::string before = read_file(made.seal());
  SignOptions import = ceremony.by(made.folder, {});
  import.import_from = ceremony.dir / "signature";
  import.public_key = ceremony.dir / "desk.pub";
  openssl("8765432187654321");
  CHECK_REFUSED(sign(import, ceremony.quiet), Signature, "SM2 ID");
  CHECK(read_file(made.seal()) == before);
  openssl("1234567812345678");
  CHECK(text_of(sign(import, ceremony.quiet).roles) == "release 2 of 2, site 1 of 1");
  const bundle::Trust trust{
      .state = {.pinned = read_roots({root})[0].digest(), .root = {}, .seen = {}, .time_floor = {}}};
  CHECK(bundle::verify(bundle::open(made.folder), trust, kNow).signers().size() == 3);
  CHECK(read_file(made.volume(0)) == volume);
}

TEST_CASE("several signers of one file lose no signature: each signs, or is told to wait") {
  Ceremony ceremony;
  const fs::path root = ceremony.root();
  const MadeBundle made = make_bundle(ceremony.dir / "b", {});
  for (int round = 0; round < 20; ++round) {
    reseal(made, read_roots({root}), {});
    std::vector<std::string> faults(2);
    {
      std::vector<std::jthread> signers;
      for (const std::size_t i : {0U, 1U})
        signers.emplace_back([&, i] {
          for (bool signed_now = false; !signed_now && faults[i].empty();) try {
              ceremony.sign_bundle(made.folder, {i == 0 ? "alice" : "bob"});
              signed_now = true;
            } catch (const bundle::Error& error) {
              if (error.code() != bundle::ErrorCode::Conflict) faults[i] = error.what();
            }
        });
    }
    for (const std::string& fault : faults) CHECK(fault == "");
    CHECK(text_of(bundle_status(bundle::open(made.folder).seal)) == "release 2 of 2, site 0 of 1");
  }
  const bundle::Descriptor held = lock_signed(made.seal());
  CHECK_REFUSED(ceremony.sign_bundle(made.folder, {"alice"}), Conflict, "another process is signing this file");
  const bundle::Descriptor held_root = lock_signed(root);
  CHECK_REFUSED(ceremony.sign_first(root, {"carol"}), Conflict, "another process is signing this file");
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
  CHECK_REFUSED(ceremony.sign_bundle(made.folder, {"carol"}, {one, two}), Signature, "0 of 2");
  ceremony.sign_next(two, {"alice", "bob"}, {one});
  CHECK(text_of(ceremony.sign_bundle(made.folder, {"carol"}, {one, two}).roles) == "release 1 of 1");
  CHECK_REFUSED(ceremony.sign_bundle(made.folder, {"desk"}), Revoked, "lost");
}

TEST_CASE("sign wants one thing to do") {
  Ceremony ceremony;
  const fs::path root = ceremony.root();
  const auto refused = [&](const std::function<void(SignOptions&)>& change, const char* words) {
    SignOptions options = ceremony.by(root, {});
    change(options);
    CHECK_REFUSED(sign_root(options, ceremony.quiet), Usage, words);
  };
  refused([](SignOptions&) {}, "one thing");
  refused([&](SignOptions& it) { it.keys = {ceremony.key("bob")}, it.export_to = ceremony.dir / "x"; }, "one thing");
  refused([&](SignOptions& it) { it.import_from = ceremony.dir / "x"; }, "one thing");
  refused([&](SignOptions& it) { it.keys = {ceremony.key("bob")}, it.public_key = ceremony.dir / "bob.pub"; },
          "one thing");
  refused([&](SignOptions& it) { it.keys = {ceremony.key("bob")}, it.fingerprint.reset(); },
          "nothing says whom the signer trusts");
}

TEST_CASE("a seal whose last line is a root is not signed, not exported, and takes no signature") {
  Ceremony ceremony;
  const fs::path root = ceremony.root();
  const MadeBundle made = make_bundle(ceremony.dir / "b", {});
  reseal(made, read_roots({root}), {});
  // The attack: carol, who may sign nothing that a site takes in alone, offers "release 1 of 2" of a root of her own.
  bundle::Root hers = make_root({}, {});
  const bundle::PrivateKey carol = read_private_key(ceremony.key("carol"), "");
  add_key(hers, "root", carol.public_key());
  add_key(hers, "release", carol.public_key());
  hers.version = 2;
  bundle::Seal seal{.roots = read_roots({root}), .manifest = signed_root(hers, {&carol})};
  write_file(made.seal(), write_seal(seal));
  const std::string before = read_file(made.seal());
  CHECK_REFUSED(ceremony.sign_bundle(made.folder, {"alice"}), Format, "no bundle, and is not signed");
  SignOptions out = ceremony.by(made.folder, {}), in = out;
  out.export_to = ceremony.dir / "to-sign";
  CHECK_REFUSED(sign(out, ceremony.quiet), Format, "no bundle, and is not signed");
  CHECK_FALSE(fs::exists(out.export_to));
  in.import_from = ceremony.dir / "root.toml";
  in.public_key = ceremony.dir / "alice.pub";
  CHECK_REFUSED(sign(in, ceremony.quiet), Format, "no bundle, and is not signed");
  CHECK(read_file(made.seal()) == before);

  SUBCASE("nor is a manifest signed as a root, whatever its file is called") {
    const MadeBundle whole = make_bundle(ceremony.dir / "c", {});
    const std::string text = read_file(whole.seal());
    write_file(ceremony.dir / "root.7.json", text.substr(text.find('\n') + 1));
    CHECK_REFUSED(ceremony.sign_first(ceremony.dir / "root.7.json", {"alice"}), Format, "no root, and is not signed");
    CHECK_REFUSED(ceremony.sign_first(whole.folder, {"alice"}), Usage, "no root is signed in one");
    CHECK_REFUSED(ceremony.sign_bundle(root, {"alice"}), Usage, "sealift-pack root sign");
  }
}

TEST_CASE("a bundle is signed only by what the signer has pinned, whatever roots it brings") {
  Ceremony ceremony;
  const fs::path root = ceremony.root();
  const MadeBundle made = make_bundle(ceremony.dir / "b", {});
  const bundle::PrivateKey alice = read_private_key(ceremony.key("alice"), ""),
                           stranger = bundle::PrivateKey::generate();
  SUBCASE("a stranger's root that names the signer's key") {
    reseal(made, {signed_root(make_root({&stranger}, {&alice}), {&stranger})}, {});
    CHECK_REFUSED(ceremony.sign_bundle(made.folder, {"alice"}), Signature, "is not among the bundle's roots");
  }
  SUBCASE("and behind the pinned root, one that only the stranger signed") {
    const bundle::Root next = next_root(make_root({&stranger}, {&alice}));
    reseal(made, {read_roots({root})[0], signed_root(next, {&stranger})}, {});
    CHECK_REFUSED(ceremony.sign_bundle(made.folder, {"alice"}), Signature, "0 of 2");
  }
  SUBCASE("a signature in it that does not hold") {
    reseal(made, read_roots({root}), {&alice});
    bundle::Seal seal = bundle::open(made.folder).seal;
    seal.manifest.signatures.begin()->second.bytes[0] ^= std::byte{1};
    write_file(made.seal(), write_seal(seal));
    CHECK_REFUSED(ceremony.sign_bundle(made.folder, {"bob"}), Signature, "does not hold");
  }
  SUBCASE("a manifest that no reader would take") {
    reseal(made, read_roots({root}), {});
    bundle::Seal seal = bundle::open(made.folder).seal;
    seal.manifest.payload.insert(1, "\"approved\":true,");
    write_file(made.seal(), write_seal(seal));
    CHECK_REFUSED(ceremony.sign_bundle(made.folder, {"alice"}), Format, "approved");
  }
  SUBCASE("a seal under another bundle's name") {
    reseal(made, read_roots({root}), {});
    fs::rename(made.seal(), made.folder / "harmless-9.seal");
    CHECK_REFUSED(ceremony.sign_bundle(made.folder, {"alice"}), Conflict, "is not named as the bundle it seals");
  }
  SUBCASE("a trust folder takes the fingerprint's place, with what it has accepted") {
    reseal(made, read_roots({root}), {});
    fs::create_directory(ceremony.dir / "trust");
    write_file(ceremony.dir / "trust/state.a",
               bundle::write_trust_copy({.pinned = ceremony.fingerprint, .root = read_roots({root})[0].payload}, 1));
    SignOptions options = ceremony.by(made.folder, {"alice"});
    options.fingerprint.reset();
    options.trust = ceremony.dir / "trust";
    CHECK(text_of(sign(options, ceremony.quiet).roles) == "release 1 of 2, site 0 of 1");
    reseal(made, {signed_root(make_root({&stranger}, {&alice}), {&stranger})}, {});
    CHECK_REFUSED(sign(options, ceremony.quiet), Signature, "not those of the owner");
  }
}

TEST_CASE("a bundle that a root has withdrawn is signed by nobody, and exported for nobody") {
  Ceremony ceremony;
  const fs::path one = ceremony.root();
  const MadeBundle made = make_bundle(ceremony.dir / "b", {});
  const std::string identity = bundle::fingerprint_text(bundle::open(made.folder).seal.manifest.digest());
  write_file(ceremony.dir / "root.toml",
             Ceremony::toml() + "[[revoked_bundle]]\nmanifest = \"" + identity + "\"\nreason = \"bad\"\n");
  const fs::path two = create_root({.job = ceremony.dir / "root.toml", .previous = one}).file;
  ceremony.sign_next(two, {"alice", "bob"}, {one});
  reseal(made, read_roots({one, two}), {});
  const std::string before = read_file(made.seal());
  CHECK_REFUSED(ceremony.sign_bundle(made.folder, {"alice"}), Revoked, "this bundle was withdrawn: bad");
  SignOptions out = ceremony.by(made.folder, {});
  out.export_to = ceremony.dir / "to-sign";
  CHECK_REFUSED(sign(out, ceremony.quiet), Revoked, "this bundle was withdrawn: bad");
  CHECK_FALSE(fs::exists(out.export_to));
  CHECK(read_file(made.seal()) == before);
}

TEST_CASE("roots that are written into a seal are all signed, those before the signer's accepted one too") {
  Ceremony ceremony;
  const fs::path one = ceremony.root();
  const MadeBundle made = make_bundle(ceremony.dir / "b", {});
  reseal(made, read_roots({one}), {});
  const fs::path two = create_root({.job = ceremony.dir / "root.toml", .previous = one}).file;
  ceremony.sign_next(two, {"alice", "bob"}, {one});
  bundle::Envelope bare = read_roots({one})[0];
  bare.signatures.clear();
  write_file(ceremony.dir / "bare.json", write_envelope(bare));
  fs::create_directory(ceremony.dir / "trust");
  write_file(
      ceremony.dir / "trust/state.a",
      bundle::write_trust_copy(
          {.pinned = ceremony.fingerprint, .root = read_roots({one, two})[1].payload, .seen = {}, .time_floor = {}},
          1));
  SignOptions options = ceremony.by(made.folder, {"alice"}, {ceremony.dir / "bare.json", two});
  options.fingerprint.reset();
  options.trust = ceremony.dir / "trust";
  CHECK_REFUSED(sign(options, ceremony.quiet), Signature, "0 of 2 root signatures");
  options.roots = {one, two};
  CHECK(text_of(sign(options, ceremony.quiet).roles) == "release 1 of 2, site 0 of 1");
}

TEST_CASE("a bundle to sign is shown in full before a key is opened") {
  Ceremony ceremony;
  const fs::path root = ceremony.root();
  const MadeBundle made = make_bundle(ceremony.dir / "b", {});
  reseal(made, read_roots({root}), {});
  const auto said_by = [&](const std::vector<std::string>& words) {
    std::vector<std::string> command = {SEALIFT_PACK};
    command.insert(command.end(), words.begin(), words.end());
    return run_process(command).err;
  };
  const std::string pinned = bundle::fingerprint_text(ceremony.fingerprint);
  const std::string bundle_said =
      said_by({"sign", made.folder.string(), "--fingerprint", pinned, "--key", (ceremony.dir / "gone.key").string()});
  const bundle::Digest identity = bundle::open(made.folder).seal.manifest.digest();
  for (const std::string& words :
       {"to be signed: the bundle " + made.manifest.stem(), "version " + std::to_string(made.manifest.version),
        bundle::fingerprint_text(identity), pinned, std::string("release 0 of 2, site 0 of 1")})
    CHECK_MESSAGE(bundle_said.find(words) < bundle_said.find("gone.key"), words);
  const std::string root_said =
      said_by({"root", "sign", root.string(), "--fingerprint", pinned, "--key", (ceremony.dir / "gone.key").string()});
  for (const std::string& words : {std::string("to be signed: root 1 of bank"), pinned, std::string("root     2 of 3")})
    CHECK_MESSAGE(root_said.find(words) < root_said.find("gone.key"), words);
}

TEST_CASE("a signer sees which wheels were built outside of a sandbox, and signs none of them if told so") {
  Ceremony ceremony;
  const fs::path root = ceremony.root();
  TinyBundle tiny;
  tiny.items[0].build = bundle::WheelBuild::Unsandboxed;
  const MadeBundle made = make_bundle(ceremony.dir / "tiny-1", tiny);
  const std::string before = read_file(made.seal());
  SignOptions options = ceremony.by(made.folder, {"alice"}, {root});
  options.sandboxed_builds_only = true;
  CHECK_REFUSED(sign(options, ceremony.quiet), Conflict, "demo-1.0-py3-none-any.whl");
  CHECK(read_file(made.seal()) == before);
  options.sandboxed_builds_only = false;
  std::FILE* const said = std::fopen((ceremony.dir / "said").c_str(), "w");
  bundle::Progress progress(said);
  sign(options, progress);
  std::fclose(said);
  CHECK(read_file(ceremony.dir / "said").find("in a sandbox none; outside of one demo-1.0-py3-none-any.whl") !=
        std::string::npos);
}

TEST_CASE("a root is signed by holders of the role root, and only if it follows what they have pinned") {
  Ceremony ceremony;
  const fs::path one = ceremony.root();
  CHECK_REFUSED(ceremony.sign_first(one, {"desk"}), Usage, "this key may not sign roots");
  SUBCASE("not the first root of somebody else") {
    const bundle::PrivateKey stranger = bundle::PrivateKey::generate();
    write_file(ceremony.dir / "other.json", write_envelope(one_key_root(stranger)));
    CHECK_REFUSED(ceremony.sign_first(ceremony.dir / "other.json", {"alice"}), Signature,
                  "not the root that the signer");
  }
  const bundle::Root first = bundle::parse_root(read_roots({one})[0].payload, "1");
  const auto offered = [&](const bundle::Root& root) {
    const fs::path file = ceremony.dir / "offered.json";
    write_file(file, bundle::write_envelope({.payload_type = std::string(bundle::kRootPayloadType),
                                             .payload = write_root(root),
                                             .signatures = {}}));
    return file;
  };
  SUBCASE("not without the root before") {
    CHECK_REFUSED(ceremony.sign_first(offered(next_root(first)), {"alice"}), Usage, "--previous root.1.json");
  }
  SUBCASE("not one that skips a version") {
    CHECK_REFUSED(ceremony.sign_next(offered(next_root(next_root(first))), {"alice"}, {one}), Signature, "a gap");
  }
  SUBCASE("not one that takes a revocation back") {
    const bundle::Digest bad = bundle::sha256(bundle::as_bytes("bad"));
    const fs::path two = offered(next_root(
        first, [&](bundle::Root& root) { root.revoked_bundles[bad] = {.date = root.created, .reason = "bad"}; }));
    fs::rename(two, ceremony.dir / "root.2.json");
    ceremony.sign_next(ceremony.dir / "root.2.json", {"alice", "bob"}, {one});
    const fs::path three = offered(next_root(next_root(first)));
    CHECK_REFUSED(ceremony.sign_next(three, {"alice"}, {one, ceremony.dir / "root.2.json"}), Signature,
                  "takes a revocation back");
  }
  SUBCASE("and one that does is exported for a key elsewhere") {
    SignOptions out = ceremony.by(offered(next_root(first)), {}, {one});
    out.export_to = ceremony.dir / "to-sign";
    out.public_key = ceremony.dir / "desk.pub";
    CHECK_REFUSED(sign_root(out, ceremony.quiet), Usage, "this key may not sign roots");
    CHECK_FALSE(fs::exists(out.export_to));
    out.public_key = ceremony.dir / "alice.pub";
    sign_root(out, ceremony.quiet);
    CHECK(read_file(out.export_to).starts_with("DSSEv1 36 application/vnd.sealift.root.v1+json "));
  }
}

TEST_CASE("a root with a signature that does not hold, or in one file with others, gets no further signature") {
  Ceremony ceremony;
  const fs::path one = ceremony.root();
  bundle::Envelope envelope = read_roots({one})[0];
  write_file(one, write_envelope(envelope) + write_envelope(envelope));
  CHECK_REFUSED(ceremony.sign_first(one, {"carol"}), Usage, "several roots");
  envelope.signatures.begin()->second.bytes[0] ^= std::byte{1};
  write_file(one, write_envelope(envelope));
  CHECK_REFUSED(ceremony.sign_first(one, {"carol"}), Signature, "does not hold");
  CHECK(read_file(one) == write_envelope(envelope));
}

TEST_CASE("a key that is named twice signs once, and is one signer") {
  Ceremony ceremony;
  const std::vector<bundle::Envelope> roots = read_roots({ceremony.root()});
  const Signing signing = read_signing(roots, {ceremony.key("alice"), ceremony.key("bob"), ceremony.key("alice")}, "");
  const auto id = [&](const char* name) { return read_private_key(ceremony.key(name), "").public_key().id(); };
  CHECK(signing.signers() == std::vector{id("alice"), id("bob")});
}

TEST_CASE("a key has one role, unless the root job says that keys are shared") {
  Ceremony ceremony;
  std::string toml = Ceremony::toml();
  toml.erase(toml.find("shared_keys"), std::string("shared_keys = true\n").size());
  write_file(ceremony.dir / "root.toml", toml);
  CHECK_REFUSED(create_root({.job = ceremony.dir / "root.toml"}), Usage, "who steals it has both: release and root");
  CHECK_FALSE(fs::exists(ceremony.dir / "root.1.json"));
}

TEST_CASE("the next root is made only from one whose signatures hold") {
  Ceremony ceremony;
  const fs::path one = ceremony.root();
  bundle::Envelope envelope = read_roots({one})[0];
  envelope.signatures.clear();
  write_file(ceremony.dir / "unsigned.json", write_envelope(envelope));
  CHECK_REFUSED(create_root({.job = ceremony.dir / "root.toml", .previous = ceremony.dir / "unsigned.json"}), Signature,
                "0 of 2 root signatures");
}
