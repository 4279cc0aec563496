// SPDX-License-Identifier: Apache-2.0
// What becomes of transfers that are under way while the bundles below them change: each ends with the bytes that it
// began with, or the client sees that it was cut. And what becomes of a client that asks in several requests.
#include <atomic>
#include <thread>

#include "bundle/core/json.hpp"
#include "tests/offline_repo/hub_bundle.hpp"
#include "tests/offline_repo/hub_pythons.hpp"
#include "tests/offline_repo/watched_site.hpp"
#include "tests/support/await.hpp"
#include "tests/support/noise.hpp"
#include "tests/support/tiny_rpm.hpp"

using namespace sealift::bundle;
using namespace sealift::test;
namespace fs = std::filesystem;

namespace {

constexpr std::size_t kLarge = 6'000'000;  // more than the sockets between hold
constexpr int kLittleRoom = 64 << 10;      // in the client's socket
const std::string kLargeDeb = "tool_1.0_all.deb";

// As large as any other, and different everywhere.
std::string bytes_of(char version, const char* what) {
  static const std::string all = noise(kLarge);
  const std::size_t turned = static_cast<std::size_t>(version) * 1001;
  return what + all.substr(turned) + all.substr(0, turned);
}

std::string commit_of(char version) {
  return std::string(40, version);
}

// One of each kind that is served, their bytes told by `content`: '1' to '9'.
std::vector<TinyItem> all_kinds(char content) {
  const std::string deb = bytes_of(content, "deb");
  std::vector<TinyItem> items = hub_items(
      {{.name = {.id = "org/tiny"}, .commit = commit_of(content), .files = {{"w", bytes_of(content, "hub")}}}});
  items.push_back(wheel_item({.name = "big", .files = {{"big/__init__.py", ""}, {"big/d", bytes_of(content, "whl")}}}));
  items.push_back({.path = "files/data/rows", .bytes = bytes_of(content, "row"), .into = "data/rows"});
  items.push_back({.path = "files/apt/Packages",
                   .bytes = "Package: tool\nVersion: 1.0\nArchitecture: all\nMaintainer: nobody\nDescription: a tool\n"
                            "Filename: ./" +
                            kLargeDeb + "\nSize: " + std::to_string(deb.size()) +
                            "\nSHA256: " + sha256(as_bytes(deb)).hex() + "\n\n",
                   .into = "apt/Packages"});
  items.push_back({.path = "files/apt/" + kLargeDeb, .bytes = deb, .into = "apt/" + kLargeDeb});
  return items;
}

struct ChangingSite : WatchedSite {
  MadeBundle make_all(const std::string& folder, std::uint64_t version, char content,
                      const std::string& channel = "prod") {
    return make_bundle(dir / folder,
                       {.name = "env",
                        .channel = channel,
                        .version = version,
                        .created = "2026-01-0" + std::to_string(version) + "T00:00:00Z",
                        .chunk_size = 1 << 18,
                        .items = all_kinds(content)},
                       key);
  }
  void point_to(const MadeBundle& made, const std::string& name = "env-1") {
    fs::remove(folder / name);
    fs::create_symlink(made.folder, folder / name);
    child->send(SIGHUP);
  }
  void withdraw(const MadeBundle& made) {
    Root root = next_root(make_root({&key}, {&key}));
    root.revoked_bundles[verify(open(made.folder), made.trusted, kNow).identity()] = {.date = "2026-02-01T00:00:00Z",
                                                                                      .reason = "a wrong model"};
    const MadeBundle bringer = make("zebra", 1, "prod", "z");
    reseal(bringer, {one_key_root(key), signed_root(root, {&key})}, {&key});
    verb({"add", folder, bringer.folder});
  }
  std::string log() const { return read_file(dir / "log"); }
};

// The address of each kind in a bundle of make_all, and what is there.
std::map<std::string, std::string> addresses(const MadeBundle& made, const std::string& view, char content) {
  std::map<std::string, std::string> all = {
      {view + "/org/tiny/resolve/" + commit_of(content) + "/w", bytes_of(content, "hub")},
      {view + "/entries/env/files/data/rows", bytes_of(content, "row")},
      {view + "/apt/env/./" + kLargeDeb, bytes_of(content, "deb")}};
  for (const Entry& entry : made.manifest.entries)
    if (entry.kind == EntryKind::Wheel)
      all[view + "/files/" + entry.sha256.hex() + "/" + entry.path.text().substr(entry.path.text().rfind('/') + 1)] =
          make_wheel({.name = "big", .files = {{"big/__init__.py", ""}, {"big/d", bytes_of(content, "whl")}}});
  return all;
}

// A registry's blob: the first volume.
std::pair<std::string, std::string> blob_address(const WatchedSite& site, const MadeBundle& made,
                                                 const std::string& view) {
  const std::string volume = read_file(made.volume(0)), registry = "/v2" + view + "/bundles/env";
  await("volumes that were read", [&] { return fetch(site.port, registry + "/manifests/1").status != 429; });
  return {registry + "/blobs/sha256:" + sha256(as_bytes(volume)).hex(), volume};
}

// A client that has begun to receive, whole or from `first` on, and takes no more until it is told to.
struct UnderWay {
  UnderWay(std::uint16_t port, std::string address, std::string all, std::size_t from)
      : target(std::move(address)), truth(all.substr(from)), client(std::make_unique<RawClient>(port, 0, kLittleRoom)) {
    client->send(request_text(target, from == 0 ? "" : "Range: bytes=" + std::to_string(from) + "-\r\n"));
    client->await_answer();
  }
  // Whether all of it came; what came is right.
  bool ends_well() {
    const RawResponse got = client->receive();
    CAPTURE(target);
    CHECK((got.status == 200 || got.status == 206));
    CHECK(truth.starts_with(got.body));
    CHECK(got.complete == (got.body.size() == truth.size()));
    return got.complete;
  }

  std::string target, truth;
  std::unique_ptr<RawClient> client;
};

std::vector<UnderWay> begin(const WatchedSite& site, const MadeBundle& made, char content,
                            const std::string& view = "") {
  std::map<std::string, std::string> all = addresses(made, view, content);
  all.insert(blob_address(site, made, view));
  std::vector<UnderWay> begun;
  for (const auto& [target, bytes] : all)
    for (const std::size_t from : {std::size_t{0}, std::size_t{300'001}})
      begun.emplace_back(site.port, target, bytes, from);
  return begun;
}

// None of them was answered to its end so far.
bool all_wait(const ChangingSite& site, const std::vector<UnderWay>& begun) {
  const std::string log = site.log();
  return std::none_of(begun.begin(), begun.end(),
                      [&](const UnderWay& one) { return log.find("GET " + one.target + " 20") != log.npos; });
}

}  // namespace

TEST_CASE("transfers under way end with their own bytes when their bundle goes, is replaced or withdrawn") {
  using Change = std::function<void(ChangingSite&, const MadeBundle&, const MadeBundle&)>;
  const std::map<std::string, Change> changes = {
      {"the link is taken away",
       [](ChangingSite& site, const MadeBundle&, const MadeBundle&) {
         site.verb({"remove", site.folder, "env-1"});
         site.await_no_status("env-1\t");
       }},
      {"all its files are deleted",
       [](ChangingSite& site, const MadeBundle& made, const MadeBundle&) {
         fs::remove_all(made.folder);
         site.child->send(SIGHUP);
         site.await_no_status("current\tprod\tenv-1\t");
       }},
      {"the link leads to another bundle of its name and version",
       [](ChangingSite& site, const MadeBundle&, const MadeBundle& other) {
         site.point_to(other);
         site.await_status("left_out\t-\tenv-1\t");  // two bundles of one name and version: one of them is a lie
       }},
      {"it is withdrawn by a new root", [](ChangingSite& site, const MadeBundle& made, const MadeBundle&) {
         site.withdraw(made);
         site.await_no_status("current\tprod\tenv-1\t");
       }}};
  for (const auto& [what, change] : changes) {
    CAPTURE(what);
    ChangingSite site;
    const MadeBundle made = site.make_all("one", 1, '1'), other = site.make_all("other", 1, '2');
    site.point_to(made);
    site.await_status("current\tprod\tenv-1\t");
    std::vector<UnderWay> begun = begin(site, made, '1');
    change(site, made, other);
    REQUIRE(all_wait(site, begun));
    for (UnderWay& one : begun) CHECK(one.ends_well());
    for (const UnderWay& one : begun) {  // also for who would go on with what it has, and of a registry's blob
      CAPTURE(one.target);
      CHECK(fetch(site.port, one.target).status == 404);
      CHECK(fetch(site.port, one.target, "Range: bytes=300001-\r\n").status == 404);
    }
  }
}

TEST_CASE("transfers from files that are overwritten where they lie are cut, and never get a byte of the others") {
  ChangingSite site;
  const MadeBundle made = site.make_all("one", 1, '1'), other = site.make_all("other", 1, '2');
  site.point_to(made);
  site.await_status("current\tprod\tenv-1\t");
  std::vector<UnderWay> begun = begin(site, made, '1');
  for (const fs::directory_entry& file : fs::directory_iterator(other.folder))
    fs::copy_file(file.path(), made.folder / file.path().filename(), fs::copy_options::overwrite_existing);
  site.child->send(SIGHUP);
  REQUIRE(all_wait(site, begun));
  for (UnderWay& one : begun) one.ends_well();  // answers whose chunks all clients share may end well
  site.await_no_status("current\tprod\tenv-1\t");
  for (const auto& [target, bytes] : addresses(made, "", '1')) CHECK(fetch(site.port, target).status == 404);
}

TEST_CASE("while two channels swap their versions and their places, every answer is what its headers say") {
  ChangingSite site;
  std::map<std::string, MadeBundle> all;
  for (const std::string channel : {"prod", "dev"})
    for (const std::uint64_t version : {1, 2}) {
      const std::string name = channel + std::to_string(version);
      const char content = static_cast<char>((channel == "prod" ? '0' : '4') + version);
      all.emplace(name, site.make_all(name, version, content, channel));
      fs::create_symlink(all.at(name).folder, site.folder / name);
    }
  const auto switch_to = [&](const std::string& prod, const std::string& dev) {
    write_file(site.folder / ".fresh", "prod/env " + prod + "\ndev/env " + dev + "\n");
    fs::rename(site.folder / ".fresh", site.folder / "switched");
    site.child->send(SIGHUP);
  };
  switch_to("1", "2");
  site.await_status("current\tprod\tenv-1\t");
  std::vector<UnderWay> begun = begin(site, all.at("prod1"), '1', "/c/prod");
  std::erase_if(begun, [](const UnderWay& one) { return one.target.ends_with("/rows"); });  // which others ask for
  std::atomic<bool> stop = false;
  std::atomic<int> answers = 0, wrong = 0;
  const auto ask = [&](const std::string& channel, const std::string& contents) {
    const std::string target = "/c/" + channel + "/entries/env/files/data/rows";
    std::map<std::string, std::string> known;  // by ETag
    for (const char content : contents) {
      const std::string bytes = bytes_of(content, "row");
      known["\"" + sha256(as_bytes(bytes)).hex() + "\""] = bytes;
    }
    while (!stop) {
      RawResponse head = fetch(site.port, target, "Range: bytes=0-9\r\n");
      const std::string etag = head.headers["etag"];
      RawResponse rest = fetch(site.port, target, "Range: bytes=10-\r\nIf-Range: " + etag + "\r\n");
      const auto whole = known.find(rest.headers["etag"]);
      const bool right = known.contains(etag) && whole != known.end() && rest.complete &&
                         rest.body == (rest.status == 206 ? whole->second.substr(10) : whole->second) &&
                         (rest.status == 206) == (rest.headers["etag"] == etag);
      ++answers, wrong += right ? 0 : 1;
    }
  };
  {
    std::jthread prod(ask, "prod", "12"), dev(ask, "dev", "56");
    for (int i = 0; i < 6; ++i) {
      switch_to(i % 2 == 0 ? "2" : "1", i % 2 == 0 ? "1" : "2");
      site.await_status("current\tprod\tenv-" + std::string(i % 2 == 0 ? "2" : "1") + "\t");
      fs::rename(site.folder / "prod1", site.folder / ".place");
      fs::rename(site.folder / "dev1", site.folder / "prod1");
      fs::rename(site.folder / ".place", site.folder / "dev1");
      site.child->send(SIGHUP);
    }
    stop = true;
  }
  CHECK(answers > 6);
  CHECK(wrong == 0);
  REQUIRE(all_wait(site, begun));
  for (UnderWay& one : begun) CHECK(one.ends_well());
}

TEST_CASE("a client of a hub gets the file whose commit it was told, also when the branch moves between its requests") {
  ChangingSite site;
  const MadeBundle first = site.make_all("one", 1, '1'), second = site.make_all("two", 2, '2');
  const std::string branch = "/c/prod/org/tiny/resolve/main/w", truth = bytes_of('1', "hub");
  site.verb({"add", site.folder, first.folder});
  site.await_status("current\tprod\tenv-1\t");
  RawResponse told = fetch(site.port, branch, "", "HEAD");
  CHECK(told.status == 307);
  CHECK(told.headers["x-repo-commit"] == commit_of('1'));
  CHECK(told.headers["location"] == "/c/prod/org/tiny/resolve/" + commit_of('1') + "/w");
  site.verb({"add", site.folder, second.folder});
  site.await_status("current\tprod\tenv-2\t");
  const RawResponse kept = fetch(site.port, told.headers["location"], "Range: bytes=100-\r\n");
  CHECK(kept.status == 206);
  CHECK(kept.body == truth.substr(100));
  CHECK(fetch(site.port, "/c/prod/api/models/org/tiny/tree/" + commit_of('1')).status == 200);
  CHECK(fetch(site.port, "/c/prod/api/models/org/tiny/revision/" + commit_of('3')).status == 404);
  CHECK(fetch(site.port, "/c/prod/org/tiny/resolve/" + commit_of('2') + "/absent").headers["x-error-code"] ==
        "EntryNotFound");
  CHECK(fetch(site.port, branch).headers["location"] == "/c/prod/org/tiny/resolve/" + commit_of('2') + "/w");
  site.verb({"remove", site.folder, "env-1"});
  site.await_no_status("kept\t");
  CHECK(fetch(site.port, told.headers["location"], "Range: bytes=100-\r\n").status == 404);
}

TEST_CASE(
    "each version of the hub's client stores the file whose commit it was told, though the branch moves meanwhile") {
  for (const ClientPython& python : with_older(hub_python(), "huggingface_hub", {"0.20.3", "0.36.0"})) {
    CAPTURE(python.program);
    ChangingSite site;
    const MadeBundle first = site.make_all("one", 1, '1'), second = site.make_all("two", 2, '2');
    site.verb({"add", site.folder, first.folder});
    site.await_status("current\tprod\tenv-1\t");
    write_file(site.dir / "files" / "first", bytes_of('1', "hub"));
    write_file(site.dir / "move", "#!/bin/sh\n'" SEALIFT_REPO_PROGRAM "' add '" + site.folder.string() + "' '" +
                                      second.folder.string() + "' && kill -HUP " + std::to_string(site.child->pid()) +
                                      "\n");
    fs::permissions(site.dir / "move", fs::perms::owner_all);
    const Ran ran =
        run({"timeout", "60", "env", "HF_ENDPOINT=http://127.0.0.1:" + std::to_string(site.port) + "/c/prod",
             "HF_HOME=" + (site.dir / "home").string(), "HF_HUB_DISABLE_TELEMETRY=1", "PYTHONPATH=" + python.modules,
             python.program, SEALIFT_HUB_CLIENT, "moved", (site.dir / "files").string(), (site.dir / "move").string()});
    INFO(ran.output << ran.errors << site.log());
    CHECK(ran.output.ends_with("good\n"));
    CHECK(site.status().output.find("current\tprod\tenv-2\t") != std::string::npos);
  }
}

TEST_CASE("packages that dnf read of before a switch are found in the bundle that is kept") {
  ChangingSite site;
  const auto make_rpms = [&](std::uint64_t version, const std::string& name) {
    return make_bundle(
        site.dir / name,
        {.name = "env",
         .channel = "prod",
         .version = version,
         .items = {{.path = "files/rpm/repodata/repomd.xml", .bytes = name, .into = "rpm/repodata/repomd.xml"},
                   {.path = "files/rpm/repodata/" + std::string(64, version == 1 ? 'a' : 'b') + "-primary.xml.gz",
                    .bytes = name,
                    .into = "rpm/repodata/p"},
                   {.path = "files/rpm/" + name + ".rpm", .bytes = tiny_rpm(), .into = "rpm/" + name + ".rpm"}}},
        site.key);
  };
  const MadeBundle first = make_rpms(1, "one"), second = make_rpms(2, "two");
  site.verb({"add", site.folder, first.folder});
  site.await_status("current\tprod\tenv-1\t");
  site.verb({"add", site.folder, second.folder});
  site.await_status("current\tprod\tenv-2\t");
  CHECK(fetch(site.port, "/rpm/env/two.rpm").status == 200);
  CHECK(fetch(site.port, "/rpm/env/one.rpm").body == tiny_rpm());
  CHECK(fetch(site.port, "/rpm/env/repodata/" + std::string(64, 'a') + "-primary.xml.gz").body == "one");
  CHECK(fetch(site.port, "/rpm/env/repodata/repomd.xml").body == "two");
  CHECK(fetch(site.port, "/rpm/env/three.rpm").status == 404);
  CHECK(fetch(site.port, "/rpm/env/repodata/absent").status == 404);
}
