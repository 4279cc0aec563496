// SPDX-License-Identifier: Apache-2.0
// Bundles that come, go, rot, are withdrawn and disagree while a server runs: what is held, and what its views show.
// No sockets; program_test.cpp has the same through the real program.
#include "offline_repo/holdings/holdings.hpp"

#include <fstream>
#include <thread>

#include "offline_repo/catalogue/disagreements.hpp"
#include "offline_repo/holdings/gaps.hpp"
#include "offline_repo/holdings/scrub.hpp"
#include "offline_repo/views/access.hpp"
#include "offline_repo/views/views.hpp"
#include "sealift/bundle/trust/trust_folder.hpp"
#include "tests/offline_repo/live.hpp"
#include "tests/support/await.hpp"
#include "tests/support/refusal.hpp"
#include "tests/support/tiny_bundle.hpp"

using namespace sealift::bundle;
using namespace sealift::test;
using namespace sealift::offline_repo;
namespace fs = std::filesystem;

namespace {

TinyItem wheel_of(const std::string& name, const std::string& text) {
  return wheel_item({.name = name, .files = {{name + "/__init__.py", text}}});
}

// A site with one owner, a folder that is watched, and a trust folder.
struct FolderSite {
  FolderSite() {
    fs::create_directories(folder);
    fs::create_directories(trust);
    remember(1, root);
  }

  MadeBundle add(const std::string& name, std::uint64_t version, std::vector<TinyItem> items,
                 const std::string& channel = "prod") {
    return make_bundle(folder / (name + "-" + std::to_string(version)),
                       {.name = name, .channel = channel, .version = version, .items = std::move(items)}, key);
  }
  MadeBundle add(const std::string& name, std::uint64_t version) {
    return add(name, version, {wheel_of(name, std::to_string(version))});
  }
  // As sealift-install keeps it.
  void remember(std::uint64_t counter, const Root& newest) {
    const TrustState state{
        .pinned = one_key_root(key).digest(), .root = write_root(newest), .seen = {}, .time_floor = {}};
    fs::permissions(trust, fs::perms::owner_all);
    write_file(trust / kTrustCopies[0], write_trust_copy(state, counter));
    fs::permissions(trust / kTrustCopies[0], fs::perms::owner_read | fs::perms::owner_write);
  }
  Held look(bool at_once = true) {
    const std::optional<Held> held = holdings.look(at_once);
    REQUIRE(held.has_value());
    return *held;
  }

  TempDir dir;
  PrivateKey key = PrivateKey::generate();
  Root root = make_root({&key}, {&key});
  const fs::path folder = dir / "bundles", trust = dir / "trust";
  Holdings holdings{{.named = {}, .folder = folder, .trust = trust, .fingerprint = std::nullopt}};
};

const HeldBundle& find(const Held& held, const std::string& stem) {
  for (const HeldBundle& one : held)
    if (one.stem() == stem) return one;
  FAIL("not held: " << stem);
  return held.front();
}

std::string states(const Held& held) {
  std::string text;
  for (const HeldBundle& one : held) text += one.stem() + " " + std::string(name_of(one.state)) + "; ";
  return text;
}

Views views_of(const Held& held) {
  return ViewMaker().views_of(held, gaps_of(held));
}

}  // namespace

TEST_CASE("a new version becomes current, the old one is kept, and an operator switches back and forth") {
  FolderSite site;
  site.add("env", 1);
  CHECK(states(site.look()) == "env-1 current; ");
  CHECK_FALSE(site.holdings.look(true));
  site.add("env", 2);
  const Held both = site.look();
  CHECK(states(both) == "env-1 kept; env-2 current; ");
  CHECK(find(both, "env-1").why() == "env-2 is served");
  switch_bundle(site.folder, "env-1", false);
  CHECK(read_file(site.folder / "switched") == "prod/env 1\n");
  CHECK(states(site.look()) == "env-1 current; env-2 kept; ");
  site.add("env", 3);
  CHECK(states(site.look()) == "env-1 current; env-2 kept; env-3 kept; ");
  switch_bundle(site.folder, "env-1", true);
  CHECK(states(site.look()) == "env-1 kept; env-2 kept; env-3 current; ");
  CHECK_FALSE(site.holdings.look(true));
}

TEST_CASE("when the newest version goes, an older one is served only after an operator switches to it") {
  FolderSite site;
  site.add("env", 1);
  site.add("env", 2);
  site.look();
  fs::remove_all(site.folder / "env-2");
  const Held left = site.look();
  CHECK(states(left) == "env-1 kept; ");
  CHECK(find(left, "env-1").why().find("sealift-repo switch") != std::string::npos);
  switch_bundle(site.folder, "env-1", false);
  CHECK(states(site.look()) == "env-1 current; ");
  fs::rename(site.folder / "env-1", site.dir / "away");
  site.add("env", 4);
  const Held other = site.look();
  CHECK(states(other) == "env-4 kept; ");  // version 1 was asked for, and nothing else is guessed
  CHECK(find(other, "env-4").why().find("switched to version 1") != std::string::npos);
}

TEST_CASE("a stream without a current version is a gap that names what is kept and the command, whatever took it") {
  FolderSite site;
  const auto gaps = [&] { return gaps_of(site.look()); };
  for (const std::uint64_t version : {1, 2, 3}) site.add("env", version);
  site.add("lab", 1, {wheel_of("jupyter", "1")}, "dev");
  CHECK(gaps().empty());
  fs::rename(site.folder / "env-3", site.dir / "away");  // the newest is withdrawn
  const std::vector<Gap> withdrawn = gaps();
  REQUIRE(withdrawn.size() == 1);
  CHECK(withdrawn[0].stream.text() == "prod/env");
  CHECK(withdrawn[0].kept == std::vector<std::string>{"env-2", "env-1"});
  CHECK(withdrawn[0].next.english == "sealift-repo switch " + site.folder.string() + " env-2");
  switch_bundle(site.folder, "env-2", false);  // the command that it says
  CHECK(gaps().empty());
  fs::remove_all(site.folder / "env-2");  // a switch to what is gone
  const Held without = site.look();
  const std::vector<Gap> switched = gaps_of(without);
  REQUIRE(switched.size() == 1);
  CHECK(find(without, "env-1").reason.kind == Reason::Kind::Switched);
  CHECK(switched[0].what.english.find("switched to version 2, which is not here") != std::string::npos);
  CHECK(switched[0].next.english == "sealift-repo switch --newest " + site.folder.string() + " env-1");
  fs::rename(site.dir / "away", site.folder / "env-3");
  switch_bundle(site.folder, "env-3", true);
  CHECK(gaps().empty());
  const fs::path seal = site.folder / "env-3" / "env-3.seal";
  write_file(seal, read_file(seal) + "x");  // the newest is damaged
  CHECK(gaps().size() == 1);
}

TEST_CASE("a revoked newest version is a gap, and its page says so to those who see the stream alone") {
  FolderSite site;
  site.add("env", 1);
  const MadeBundle newest = site.add("env", 2);
  site.add("lab", 1, {wheel_of("jupyter", "1")}, "dev");
  site.look();
  const Root next = next_root(site.root, [&](Root& root) {
    root.revoked_bundles[verify(sealift::bundle::open(newest.folder), pinned(one_key_root(site.key)), kNow)
                             .identity()] = {.date = "2026-02-01T00:00:00Z", .reason = "a wrong model"};
  });
  const MadeBundle bringer = site.add("zebra", 1, {wheel_of("zebra", "1")}, "dev");
  reseal(bringer, {one_key_root(site.key), signed_root(next, {&site.key})}, {&site.key});
  const Held held = site.look();
  REQUIRE(gaps_of(held).size() == 1);
  const Views views = views_of(held);
  REQUIRE(views.merged->catalogue.around.gaps.size() == 1);
  const PageAddress address = page_address("repo", "", "/v2");  // each language's page says it in that language
  const std::string english = views.merged->pages.front(PageLanguage::English).text(address, ""),
                    chinese = views.merged->pages.front(PageLanguage::Chinese).text(address, "");
  for (const char* said : {"no version is current: ", "; next: sealift-repo switch "})
    CHECK(english.find(said) != std::string::npos);
  for (const char* said : {"prod/env：没有当前版本：比本站已接受过的版本旧；保留：env-1；下一步：sealift-repo switch ",
                           "<bdi>比本站已接受过的版本旧；sealift-repo switch 可将其设为当前版本</bdi>"})
    CHECK(chinese.find(said) != std::string::npos);
  CHECK(chinese.find("no version is current") == std::string::npos);
  CHECK(views.channels.at("prod")->catalogue.around.gaps.size() == 1);
  CHECK(views.channels.at("dev")->catalogue.around.gaps.empty());
  CHECK(views.channels.at("prod")->catalogue.around.kept.front().stem == "env-1");
}

TEST_CASE("who may see one version is told neither of others nor of gaps that are none") {
  FolderSite site;
  for (const std::uint64_t version : {2, 3}) site.add("env", version);
  const Held both = site.look();
  const auto token = [](const std::string& name, const std::string& grant) {
    return Token{.name = name, .sha256 = sha256(as_bytes(name)), .grants = {grant}};
  };
  const std::vector<Token> tokens = {token("old", "bundle:env-2"), token("all", "bundle:env")};
  const auto around = [&](const Access& access, const std::string& name) {
    return access.client("Bearer " + name, "")->views->merged->catalogue.around;
  };
  const Access served(both, tokens);
  CHECK(around(served, "old").gaps.empty());
  CHECK(around(served, "old").kept.front().why.english.empty());
  CHECK(around(served, "all").kept.front().why.english == "env-3 is served");
  fs::rename(site.folder / "env-3", site.dir / "away");
  site.add("env", 1);
  const Access gap(site.look(), tokens);  // env-2 and env-1 are kept
  CHECK(around(gap, "all").gaps.size() == 1);
  CHECK(around(gap, "old").gaps.empty());  // it names env-1
}

TEST_CASE("a delta without the version that it stands on is a gap, until a bundle carries its files") {
  FolderSite site;
  TinyItem absent = wheel_of("base", "b");
  absent.absent = true;
  site.add("env", 2, {absent, wheel_of("fresh", "f")});
  const std::vector<Gap> gaps = gaps_of(site.look());
  REQUIRE(gaps.size() == 1);
  CHECK(gaps[0].what.english.find(
            "env-2 is a delta, and no current bundle carries 1 of the files that it leaves out, such as "
            "wheels/base-1.0-py3-none-any.whl") == 0);
  CHECK(gaps[0].kept.empty());
  site.add("env", 1, {wheel_of("base", "b")});
  CHECK(gaps_of(site.look()).empty());
}

TEST_CASE("a folder that is being copied is taken up once it has come to rest, and at once when asked to") {
  FolderSite site;
  site.add("env", 1);
  site.look();
  const MadeBundle made =
      make_bundle(site.dir / "elsewhere", {.name = "env", .channel = "prod", .version = 2}, site.key);
  fs::create_directories(site.folder / "env-2");
  fs::copy_file(made.seal(), site.folder / "env-2" / made.seal().filename());
  CHECK_FALSE(site.holdings.look(false));
  for (const fs::path& file : {made.chunks(), made.volume(0)}) {
    fs::copy_file(file, site.folder / "env-2" / file.filename());
    CHECK_FALSE(site.holdings.look(false));
  }
  CHECK(states(site.look(false)) == "env-1 kept; env-2 current; ");
  fs::remove_all(site.folder / "env-2");
  CHECK(states(site.look(true)) == "env-1 kept; ");
}

TEST_CASE("a bad bundle takes out only itself, says why, and is good again once it is mended") {
  FolderSite site;
  site.add("env", 1);
  const MadeBundle bad = site.add("bad", 1);
  make_bundle(site.folder / "strange-1", {.name = "strange"});  // another owner's
  fs::create_directories(site.folder / "empty");
  fs::create_directories(site.folder / ".hidden");
  const std::string whole = read_file(bad.volume(0));
  fs::resize_file(bad.volume(0), whole.size() - 1);
  const Held held = site.look();
  CHECK(states(held) == "bad-1 left_out; empty left_out; env-1 current; strange-1 left_out; ");
  CHECK(find(held, "bad-1").why().find("bad-1.vol001") != std::string::npos);
  CHECK(find(held, "bad-1").why().find('\n') == std::string::npos);
  CHECK(find(held, "empty").why().find("there is no seal here") != std::string::npos);
  CHECK(views_of(held).bundles.size() == 1);
  write_file(bad.volume(0), whole);
  const Held mended = site.look();
  CHECK(find(mended, "bad-1").state == HeldState::Current);
  CHECK(find(mended, "env-1").contents == find(held, "env-1").contents);  // nothing of it was read again
  const std::vector<std::string> said = changes(held, mended);
  REQUIRE(said.size() == 1);
  CHECK(said[0].find("bad-1 in ") == 0);
}

TEST_CASE("a withdrawn bundle is taken out while the server runs, wherever the new root comes from") {
  for (const bool from_disk : {true, false}) {
    CAPTURE(from_disk);
    FolderSite site;
    site.add("env", 1);
    site.add("other", 1);
    const Held before = site.look();
    const Root next = next_root(site.root, [&](Root& root) {
      root.revoked_bundles[find(before, "env-1").contents->in->identity()] = {.date = "2026-02-01T00:00:00Z",
                                                                              .reason = "a wrong model"};
    });
    if (from_disk) {
      site.remember(2, next);
    } else {
      const MadeBundle bringer = site.add("zebra", 1);
      reseal(bringer, {one_key_root(site.key), signed_root(next, {&site.key})}, {&site.key});
    }
    const Held after = site.look();
    CHECK(find(after, "env-1").state == HeldState::LeftOut);
    CHECK(find(after, "env-1").why().find("withdrawn: a wrong model") != std::string::npos);
    CHECK(find(after, "other-1").state == HeldState::Current);
    CHECK_FALSE(views_of(after).bundles.contains("env-1"));
    CHECK(views_of(after).merged->catalogue.find_project("env") == nullptr);
    CHECK(views_of(before).merged->catalogue.artifacts.contains("bundles/env"));
    CHECK_FALSE(views_of(after).merged->catalogue.artifacts.contains("bundles/env"));
  }
}

TEST_CASE("a delta in the watched folder is served with the version that it stands on") {
  FolderSite site;
  site.add("env", 1, {wheel_of("base", "b"), wheel_of("old", "o")});
  TinyItem absent = wheel_of("base", "b");
  absent.absent = true;
  site.add("env", 2, {absent, wheel_of("fresh", "f")});
  CHECK(states(site.look()) == "env-1 current; env-2 current; ");
  site.add("env", 3, {wheel_of("base", "b3")});
  CHECK(states(site.look()) == "env-1 kept; env-2 kept; env-3 current; ");
}

TEST_CASE("channels and bundles have views of their own, and an address leads to one of them") {
  FolderSite site;
  site.add("env", 1, {wheel_of("torch", "1")}, "prod");
  site.add("lab", 1, {wheel_of("jupyter", "1")}, "dev");
  const Views views = views_of(site.look());
  CHECK(views.merged->catalogue.projects.size() == 2);
  REQUIRE(views.channels.size() == 2);
  CHECK(views.channels.at("prod")->catalogue.find_project("torch") != nullptr);
  CHECK(views.channels.at("prod")->catalogue.find_project("jupyter") == nullptr);
  CHECK(views.bundles.at("lab-1")->catalogue.projects.size() == 1);
  CHECK(views.channels.at("dev") == views.bundles.at("lab-1"));  // one set of bundles is one view
  const auto target = [&](const std::string& asked) {
    const Viewed viewed = find_view(views, asked);
    return viewed.name + "|" + viewed.target + (viewed.view == views.merged ? "|merged" : "");
  };
  CHECK(target("/c/prod/simple/?format=json") == "prod|/simple/?format=json");
  CHECK(target("/b/lab-1/") == "lab-1|/");
  CHECK(target("/c/prod") == "prod|");
  CHECK(target("/c/prod?x/y") == "prod|");
  CHECK(target("http://host/c/prod/simple/") == "prod|/simple/");
  for (const std::string other : {"/simple/", "/", "", "/c/", "/c/absent/simple/", "/b/prod/", "/c/lab-1/", "/C/prod/",
                                  "/b/lab-1x/", "//c/prod/", "/c//prod/", "/c/pro%64/"})
    CHECK(target(other) == "|" + other + "|merged");
}

TEST_CASE("bundles that disagree about a file leave only each other out, and keep their own addresses") {
  FolderSite site;
  site.add("one", 1, {wheel_of("shared", "1"), wheel_of("first", "1")}, "prod");
  site.add("two", 1, {wheel_of("shared", "2"), wheel_of("second", "1")}, "dev");
  site.add("three", 1, {wheel_of("third", "1")}, "prod");
  const Held held = site.look();
  const Views views = views_of(held);
  CHECK(views.merged->catalogue.bundles == std::vector<std::string>{"three-1"});
  REQUIRE(views.merged->catalogue.left_out.size() == 2);
  CHECK(views.merged->catalogue.left_out[0].english.find("one-1 is left out: it has other bytes than two-1 in ") == 0);
  CHECK(views.merged->catalogue.left_out[0].english.find("shared-1.0-py3-none-any.whl") != std::string::npos);
  CHECK(views.channels.at("prod")->catalogue.bundles == std::vector<std::string>{"one-1", "three-1"});
  CHECK(views.channels.at("dev")->catalogue.bundles == std::vector<std::string>{"two-1"});
  CHECK(views.bundles.at("one-1")->catalogue.find_project("shared") != nullptr);
}

TEST_CASE("of two versions of one bundle that disagree the newer one stays, and disagrees with nobody in its place") {
  FolderSite site;
  std::vector<Contents> all;
  for (const auto& [version, text] : {std::pair{1, "x"}, {2, "y"}})
    all.push_back(read_contents(std::make_shared<const VerifiedBundle>(verify(
        sealift::bundle::open(site.add("env", static_cast<std::uint64_t>(version), {wheel_of("a", text)}).folder),
        pinned(one_key_root(site.key)), kNow))));
  all.push_back(read_contents(std::make_shared<const VerifiedBundle>(verify(
      sealift::bundle::open(site.add("ally", 1, {wheel_of("a", "y")}).folder), pinned(one_key_root(site.key)), kNow))));
  const std::vector<Disagreement> out = disagreements_of(all);
  REQUIRE(out.size() == 1);  // version 1 disagrees with the ally too, but is out already
  CHECK(out[0].bundle == 0);
  CHECK(out[0].why.english.find("env-2") != std::string::npos);
  CHECK(catalogue_of({all[1], all[2]}).wheel_count() == 1);
  CHECK_REFUSED(catalogue_of(all), Conflict, "different bytes");
}

TEST_CASE("the folder's own verbs link, unlink and switch, and refuse what they would have to guess") {
  FolderSite site;
  const MadeBundle made =
      make_bundle(site.dir / "elsewhere", {.name = "env", .channel = "prod", .version = 7}, site.key);
  CHECK(add_bundle(site.folder, made.folder) == site.folder / "env-7");
  CHECK(fs::read_symlink(site.folder / "env-7") == fs::canonical(made.folder));
  CHECK(states(site.look()) == "env-7 current; ");
  CHECK_REFUSED(add_bundle(site.folder, made.seal()), Conflict, "env-7");
  CHECK_REFUSED(add_bundle(site.folder, site.dir / "none"), Missing, "none");
  CHECK_REFUSED(switch_bundle(site.folder, "env-8", false), Missing, "env-8.seal");
  CHECK_REFUSED(remove_bundle(site.folder, "../elsewhere/env-7"), Missing, "no such bundle");
  remove_bundle(site.folder, "env-7");
  CHECK(site.look().empty());
  CHECK(fs::exists(made.seal()));
  site.add("own", 1);
  CHECK_REFUSED(remove_bundle(site.folder, "own-1"), Conflict, "the bundle itself");
  site.look();
  write_file(site.folder / "switched", "prod/own 1\nprod/own 2\n");
  CHECK_REFUSED(site.holdings.look(true), Format, "switched:2");
  for (const char* line : {"prod/own", "own 1", "prod/own x", "prod/own 1 2", "prod/a/b 1", "/own 1", "prod/ 1",
                           "prod/own 99999999999999999999", " prod/own 1"}) {
    CAPTURE(line);
    CHECK_REFUSED(parse_switches(line, "f"), Format, "f:1");
  }
  CHECK(parse_switches("\nprod/own 3\n\ndev/own 4", "f").size() == 2);
  fs::remove(site.folder / "switched");
  fs::permissions(site.folder, fs::perms::others_write, fs::perm_options::add);
  CHECK_REFUSED(site.holdings.look(true), Usage, "chmod o-w");
}

TEST_CASE("what has rotted is taken out file by file, and another bundle's copy of it is served instead") {
  FolderSite site;
  const std::string big = noise(40'000);
  const MadeBundle made = site.add("env", 1, {wheel_of("apple", big), wheel_of("pear", "p"), wheel_of("zebra", "z")});
  RottenChunks rotten;
  Holdings holdings{{.named = {}, .folder = site.folder, .trust = site.trust, .fingerprint = {}, .rotten = &rotten}};
  const Held before = *holdings.look(true);
  const Contents contents = find(before, "env-1").contents;
  const Entry& apple = made.manifest.entries.front();
  REQUIRE(apple.path.text().find("apple") != std::string::npos);
  const std::uint64_t chunk = contents->in->payload().layout().at(apple.offset + 20'000);
  CHECK(rotten.add(contents->in, chunk));
  CHECK_FALSE(rotten.add(contents->in, chunk));
  const Held after = *holdings.look(false);
  const std::shared_ptr<const View> view = views_of(after).merged;
  CHECK(view->catalogue.find_project("apple") == nullptr);
  CHECK(view->catalogue.find_project("pear") != nullptr);
  CHECK(view->catalogue.find_project("zebra") != nullptr);
  REQUIRE(view->catalogue.left_out.size() == 1);
  CHECK(view->catalogue.left_out[0].english.find("env-1: wheels/apple-1.0-py3-none-any.whl is not served") == 0);
  CHECK_FALSE(holdings.look(false));
  site.add("ally", 1, {wheel_of("apple", big)});
  const std::shared_ptr<const View> both = views_of(*holdings.look(true)).merged;
  REQUIRE(both->catalogue.find_project("apple") != nullptr);
  CHECK(both->catalogue.find_project("apple")->wheels.begin()->second.in->manifest().stem() == "ally-1");
  rotten.remove(contents->in, chunk);
  CHECK(views_of(*holdings.look(false)).bundles.at("env-1")->catalogue.find_project("apple") != nullptr);
}

TEST_CASE("whenever a bundle is verified again, it was checked then, although nothing of it is read again") {
  FolderSite site;
  site.add("env", 1);
  const Contents contents = find(site.look(), "env-1").contents;
  contents->check->note_verified(kNow);
  CHECK_FALSE(site.holdings.look(true));  // nothing has changed: nothing is verified
  CHECK(contents->check->times().verified == write_time(kNow));
  site.add("ally", 1);
  CHECK(find(site.look(), "env-1").contents == contents);
  CHECK(contents->check->times().verified > write_time(kNow));
}

TEST_CASE("a scrub finds the chunk that has rotted, and that it is right again") {
  FolderSite site;
  const MadeBundle made = site.add("env", 1, {wheel_of("apple", noise(40'000))});
  const Held held = site.look();
  const auto in = find(held, "env-1").contents->in;
  const std::uint64_t offset = made.manifest.entries.front().offset + 20'000, chunk = in->payload().layout().at(offset);
  const std::string good = read_file(made.volume(0));
  const auto write_byte = [&](char byte) {
    std::fstream(made.volume(0), std::ios::in | std::ios::out | std::ios::binary)
        .seekp(static_cast<std::streamoff>(offset))
        .put(byte);
  };
  RottenChunks rotten;
  ScrubCounts counts;
  std::atomic<int> changes{0};
  Scrub scrub(rotten, counts, std::uint64_t{100} << 20, [&] { ++changes; });
  scrub.take(held);
  const auto rounds = [&](std::uint64_t more) {
    const std::uint64_t until = counts.rounds + more;
    std::jthread thread([&](const std::stop_token& stop) { scrub.run(stop); });
    await("a round of the scrub", [&] { return counts.rounds >= until; });
  };
  const std::shared_ptr<LastCheck> check = find(held, "env-1").contents->check;
  CHECK(check->times().read.empty());
  rounds(1);
  CHECK(counts.bytes.load() == good.size());
  CHECK(changes.load() == 0);
  CHECK_FALSE(check->times().read.empty());
  check->note_read(kNow);
  write_byte(static_cast<char>(good[offset] + 1));
  rounds(1);
  CHECK(rotten.of(in) == std::set<std::uint64_t>{chunk});
  CHECK(counts.failures.load() == 1);
  CHECK(check->times().read == write_time(kNow));  // a round that finds a fault is no check that it passed
  write_byte(good[offset]);
  rounds(1);
  CHECK(check->times().read > write_time(kNow));
  CHECK(rotten.of(in).empty());
  CHECK(changes.load() == 2);
}
