// SPDX-License-Identifier: Apache-2.0
// Trust over a prefix's life: pinned once, rotated, revoked; what was installed stays usable; a lost copy costs
// nothing.
#include "installer/prefix/prefix_lock.hpp"
#include "installer/prefix/trust_store.hpp"
#include "installer/upkeep/root_trial.hpp"
#include "installer/upkeep/switch.hpp"
#include "tests/installer/site.hpp"

using namespace sealift;
using namespace sealift::installer;
using namespace sealift::test;

namespace {

TinyBundle version(std::uint64_t number) {
  return {.version = number, .items = {file_item("files/a", "version " + std::to_string(number), "share/a")}};
}

// The site's root, and the next ones in files beside.
struct Roots {
  explicit Roots(const Site& site) : owner(site.key), root(make_root({&owner}, {&owner})) { write(site); }

  void next(const Site& site, const std::function<void(bundle::Root&)>& change) {
    root = next_root(root, change);
    write(site);
  }
  void write(const Site& site) {
    chain.push_back(signed_root(root, {&owner}));
    files.push_back(site.dir / ("root." + std::to_string(root.version) + ".json"));
    write_file(files.back(), write_envelope(chain.back()));
  }

  const bundle::PrivateKey& owner;
  bundle::Root root;
  std::vector<bundle::Envelope> chain;
  std::vector<fs::path> files;
};

bundle::TrustState state_of(const Site& site) {
  return bundle::trust_for_run(site.prefix().trust(), std::nullopt);
}

}  // namespace

TEST_CASE("a root is pinned once, from a root file or a bundle, in two whole copies") {
  const Site site;
  Disk disk;
  Roots roots(site);
  const bundle::Digest fingerprint = roots.chain[0].digest();
  const bundle::Digest other = bundle::sha256({});
  CHECK_REFUSED(pin_root(site.prefix(), disk, {roots.files[0]}, other), Signature, fingerprint.hex());
  CHECK(!fs::exists(site.prefix().folder()));
  CHECK(pin_root(site.prefix(), disk, {roots.files[0]}, fingerprint).changed);
  CHECK(read_file(site.prefix().trust() / "state.a") == read_file(site.prefix().trust() / "state.b"));
  CHECK_FALSE(pin_root(site.prefix(), disk, {site.make(version(1)).folder}, fingerprint).changed);
  const MadeBundle stranger = make_bundle(site.dir / "stranger");
  CHECK_REFUSED(pin_root(site.prefix(), disk, {stranger.folder}, *stranger.trusted.state.pinned), Conflict,
                "trust update");
  CHECK(state_of(site).pinned == fingerprint);
}

TEST_CASE("the first apply with a fingerprint pins its root, and later ones need none") {
  Site site;
  site.apply(site.make(version(1)));
  MadeBundle next = site.make(version(2), "v2");
  next.trusted = {};
  CHECK(site.apply(next).generation == 2);
  const MadeBundle stranger = make_bundle(site.dir / "stranger", version(3));
  CHECK_REFUSED(site.apply(stranger), Conflict, "another root is pinned");
  MadeBundle quiet = stranger;
  quiet.trusted = {};
  CHECK_REFUSED(site.apply(quiet), Signature, "not those of the owner");
}

TEST_CASE("an older bundle is refused, allowed on request, and switch needs no permission") {
  const Site site;
  Disk disk;
  const MadeBundle one = site.make(version(1)), two = site.make(version(2), "v2");
  site.apply(one);
  site.apply(two);
  CHECK_REFUSED(site.apply(one), Rollback, "switch N");
  CHECK(fs::read_symlink(site.current()) == "generations/0002");
  CHECK(switch_to(site.prefix(), 1, disk).version == 1);
  CHECK(switch_to(site.prefix(), 2, disk).version == 2);
  CHECK(site.apply(one, disk, false, true).action == InstallPlan::Action::SwitchTo);
  const MadeBundle twin = site.make({.version = 2, .items = {file_item("files/a", "twin", "share/a")}}, "twin");
  CHECK_REFUSED(site.apply(twin, disk, false, true), Equivocation, "accepted before");
}

TEST_CASE("a rotation and a revocation are taken in without a bundle, and what is installed keeps working") {
  const Site site;
  Disk disk;
  Roots roots(site);
  const MadeBundle one = site.make(version(1));
  site.apply(one);
  const bundle::PrivateKey fresh = bundle::PrivateKey::generate();
  roots.next(site, [&](bundle::Root& root) {
    root.roles.erase("release");
    add_key(root, "release", fresh.public_key());
    root.revoked_bundles[bundle::sha256(bundle::as_bytes(write_manifest(one.manifest)))] = {
        .date = "2026-05-01T00:00:00Z", .reason = "a hole"};
  });
  roots.next(site, {});
  CHECK_REFUSED(update_root(site.prefix(), disk, {roots.files[2]}), Signature, "gap");
  CHECK(update_root(site.prefix(), disk, {roots.files[1], roots.files[2]}).changed);
  CHECK_FALSE(update_root(site.prefix(), disk, {roots.files[1]}).changed);
  CHECK_REFUSED(site.apply(one), Revoked, "a hole");
  CHECK(read_file(site.current() / "share/a") == "version 1");
  CHECK(switch_to(site.prefix(), 1, disk).version == 1);
  const MadeBundle two = site.make(version(2), "v2");
  CHECK_REFUSED(site.apply(two), Signature, "0 of 1 release signatures");
  reseal(two, roots.chain, {&fresh});
  CHECK(site.apply(two).generation == 2);
}

TEST_CASE("a newer root counts from the moment it was seen, even when its bundle is refused") {
  const Site site;
  Roots roots(site);
  site.apply(site.make(version(2)));
  roots.next(site, {});
  const MadeBundle old = site.make(version(1), "v1");
  reseal(old, roots.chain, {&site.key});
  CHECK_REFUSED(site.apply(old, true), Rollback, "");
  CHECK(bundle::parse_root(state_of(site).root, "").version == 1);  // a dry run changes nothing
  CHECK_REFUSED(site.apply(old), Rollback, "");
  CHECK(bundle::parse_root(state_of(site).root, "").version == 2);
}

TEST_CASE("a trust folder from an old backup learns again what is installed, though nothing is unpacked for it") {
  const Site site;
  Disk disk;
  const MadeBundle one = site.make(version(1)), two = site.make(version(2), "v2");
  const fs::path trust = site.prefix().trust(), backup = site.dir / "backup";
  site.apply(one);
  fs::copy(trust, backup);
  site.apply(two);
  const auto restore = [&] {
    fs::remove_all(trust);
    fs::copy(backup, trust);
  };
  restore();
  CHECK(site.apply(two).action == InstallPlan::Action::Nothing);
  CHECK_REFUSED(site.apply(one), Rollback, "");
  switch_to(site.prefix(), 1, disk);
  restore();
  CHECK(site.apply(two).action == InstallPlan::Action::SwitchTo);
  CHECK_REFUSED(site.apply(one), Rollback, "");
}

TEST_CASE("either copy of the trust state may be torn or lost; both bad is said, and nothing is installed") {
  const Site site;
  site.apply(site.make(version(1)));
  const bundle::TrustState before = state_of(site);
  for (const char* copy : bundle::kTrustCopies) {
    write_file(site.prefix().trust() / copy, "torn");
    CHECK(state_of(site) == before);
    fs::remove(site.prefix().trust() / copy);
    CHECK(state_of(site) == before);
    Disk disk;
    bundle::TrustState after = before;
    after.time_floor += std::chrono::hours(1);
    CHECK(save_trust(site.prefix(), disk, after));
    CHECK(save_trust(site.prefix(), disk, before));  // whole again, both
    CHECK_FALSE(save_trust(site.prefix(), disk, before));
  }
  for (const char* copy : bundle::kTrustCopies) write_file(site.prefix().trust() / copy, "torn");
  CHECK_REFUSED(site.apply(site.make(version(2), "v2")), Format, "so is its second copy");
  CHECK(fs::read_symlink(site.current()) == "generations/0001");
}

TEST_CASE("a disk that fills up while trust is kept leaves a whole state") {
  const Site site;
  site.apply(site.make(version(1)));
  const bundle::TrustState before = state_of(site);
  bundle::TrustState after = before;
  after.time_floor += std::chrono::hours(1);
  for (std::uint64_t bytes = 0;; bytes += 300) {
    FullDisk full(bytes);
    bool saved = false;
    try {
      saved = save_trust(site.prefix(), full, after);
    } catch (const bundle::Error& error) {
      CHECK(error.code() == bundle::ErrorCode::Space);
    }
    const bundle::TrustState now = state_of(site);
    CHECK((now == before || now == after));
    if (saved) break;
    Disk disk;
    save_trust(site.prefix(), disk, before);
  }
  CHECK(state_of(site) == after);
}

TEST_CASE("a trust folder that others may write stops everything that would rely on it") {
  const Site site;
  Disk disk;
  Roots roots(site);
  site.apply(site.make(version(1)));
  fs::permissions(site.prefix().trust(), fs::perms::others_write, fs::perm_options::add);
  CHECK_REFUSED(site.apply(site.make(version(2), "v2")), Usage, "chmod go-w");
  CHECK_REFUSED(update_root(site.prefix(), disk, {roots.files[0]}), Usage, "others may change");
}

TEST_CASE("trust commands respect the prefix's lock") {
  const Site site;
  Disk disk;
  Roots roots(site);
  const PrefixLock lock(site.prefix(), disk, "apply");
  CHECK_REFUSED(pin_root(site.prefix(), disk, {roots.files[0]}, roots.chain[0].digest()), Conflict, "somebody else");
}

TEST_CASE("a dry run of trust update says what the root would refuse, and changes nothing") {
  const Site site;
  Disk disk;
  Roots roots(site);
  const MadeBundle one = site.make(version(1)), two = site.make(version(2), "v2");
  site.apply(one);
  site.apply(two);
  fs::create_directories(site.dir / "served");
  for (const MadeBundle* made : {&one, &two})
    fs::create_directory_symlink(made->folder, site.dir / "served" / made->folder.filename());
  const auto refused = [&](const std::function<void(bundle::Root&)>& change) {
    Roots other(site);
    other.next(site, change);
    const std::vector<bundle::Envelope> chain = load_roots({other.files.back()});
    const bundle::TrustState before = state_of(site), next = follow_roots(before, chain, "");
    std::string text;
    for (const RootVerdict& verdict :
         try_root(next, chain, {site.prefix().folder(), two.folder, site.dir / "served"}, kNow)) {
      if (!verdict.refusal.empty()) text += verdict.name + ": " + verdict.refusal + "\n";
    }
    CHECK(state_of(site) == before);
    fs::remove(other.files.back());
    return text;
  };
  CHECK(refused([](bundle::Root&) {}).empty());
  const bundle::Digest identity = bundle::open(one.folder).seal.manifest.digest();
  const std::string withdrawn = refused([&](bundle::Root& root) {
    root.revoked_bundles[identity] = {.date = "2026-02-01T00:00:00Z", .reason = "a wrong model"};
  });
  CHECK(withdrawn.find("(generation 1): this bundle was withdrawn: a wrong model\n") != std::string::npos);
  CHECK(withdrawn.find("(generation 2)") == std::string::npos);
  CHECK(std::count(withdrawn.begin(), withdrawn.end(), '\n') == 2);  // the generation and the bundle that is served
  const std::string floor = refused(
      [&](bundle::Root& root) { root.floors[{.channel = one.manifest.channel, .name = one.manifest.name}] = 2; });
  CHECK(floor.find("(generation 1): the root refuses versions below 2") != std::string::npos);
  const bundle::PrivateKey fresh = bundle::PrivateKey::generate();
  const std::string key = refused([&](bundle::Root& root) {
    root.roles.erase("release");
    add_key(root, "release", fresh.public_key());
  });
  CHECK(key.find("(generation 1): 0 of 1 signatures of the role release are left") != std::string::npos);
  CHECK(std::count(key.begin(), key.end(), '\n') == 5);  // two generations, one bundle, two in the folder
  CHECK_REFUSED(try_root(state_of(site), {}, {site.dir / "nothing"}, kNow), Missing, "a folder of bundles");
}
