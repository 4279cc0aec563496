// SPDX-License-Identifier: Apache-2.0
// From bundles with a catalogue of hubs to what is served of them: what is united, what is newer, what is refused.
#include "offline_repo/catalogue/hub_repositories.hpp"

#include "offline_repo/catalogue/catalogue.hpp"
#include "tests/offline_repo/hub_bundle.hpp"
#include "tests/support/refusal.hpp"

using namespace sealift::bundle;
using namespace sealift::test;
using namespace sealift::offline_repo;

namespace {

const std::string kOld(40, 'a'), kNew(40, 'b');

struct Site {
  TempDir dir;
  int count = 0;

  VerifiedBundle bundle(std::vector<TinyItem> items, const std::string& created = "2026-01-01T00:00:00Z") {
    const std::string name = "b" + std::to_string(++count);
    items.push_back(wheel_item({.name = name}));
    const MadeBundle made = make_bundle(dir / name, {.name = name, .created = created, .items = std::move(items)});
    return verify(open(made.folder), made.trusted, kNow);
  }
  static Catalogue serve(VerifiedBundle one) {
    std::vector<VerifiedBundle> all;
    all.push_back(std::move(one));
    return make_catalogue(std::move(all));
  }
  static Catalogue serve(VerifiedBundle one, VerifiedBundle two) {
    std::vector<VerifiedBundle> all;
    all.push_back(std::move(one));
    all.push_back(std::move(two));
    return make_catalogue(std::move(all));
  }
};

const ServedRepository& tiny(const Catalogue& catalogue) {
  return catalogue.repositories.at({.id = "org/tiny"});
}

TinyRepository tiny_at(const std::string& commit, std::map<std::string, std::string> files,
                       std::vector<std::string> revisions = {"main"}) {
  return {.name = {.id = "org/tiny"}, .commit = commit, .revisions = std::move(revisions), .files = std::move(files)};
}

}  // namespace

TEST_CASE("a bundle's repositories are served with the digests of their entries, and a bundle without any has none") {
  Site site;
  const Catalogue catalogue = Site::serve(
      site.bundle(hub_items({tiny_at(kOld, {{"config.json", "{}"}, {"sub/w.bin", "weights"}}),
                             {.name = {.kind = RepositoryKind::Dataset, .id = "org/tiny"}, .files = {{"a", "1"}}}})));
  REQUIRE(catalogue.repositories.size() == 2);
  const HubCommit* commit = tiny(catalogue).find("main");
  REQUIRE(commit != nullptr);
  CHECK(commit == tiny(catalogue).find(kOld));
  CHECK(tiny(catalogue).find("v2") == nullptr);
  CHECK(commit->files.at("sub/w.bin").sha256 == sha256(as_bytes("weights")));
  CHECK(commit->files.at("sub/w.bin").size == 7);
  CHECK(commit->files.at("sub/w.bin").entry->path.text() == "files/models/0/sub/w.bin");
  CHECK(Site::serve(site.bundle({})).repositories.empty());
}

TEST_CASE("a branch is the newest bundle's commit, in whatever order bundles are given, and old commits stay") {
  for (const bool turned : {false, true}) {
    Site site;
    VerifiedBundle old = site.bundle(hub_items({tiny_at(kOld, {{"a", "1"}}, {"main", "v1"})}));
    VerifiedBundle fresh = site.bundle(hub_items({tiny_at(kNew, {{"a", "2"}})}), "2026-02-01T00:00:00Z");
    const Catalogue catalogue =
        turned ? Site::serve(std::move(fresh), std::move(old)) : Site::serve(std::move(old), std::move(fresh));
    CHECK(tiny(catalogue).find("main")->id == kNew);
    CHECK(tiny(catalogue).find("v1")->id == kOld);
    CHECK(tiny(catalogue).find(kOld)->files.at("a").sha256 == sha256(as_bytes("1")));
  }
}

TEST_CASE("whoever asks for no revision gets what was carried, though it was asked for by another name") {
  Site site;
  const Catalogue catalogue = Site::serve(site.bundle(hub_items({tiny_at(kOld, {{"a", "1"}}, {"v1"})})));
  REQUIRE(tiny(catalogue).find("main") != nullptr);
  CHECK(tiny(catalogue).find("main")->id == kOld);
  CHECK(tiny(catalogue).find("master") == nullptr);
}

TEST_CASE("two bundles with parts of one commit serve both parts, and refuse to disagree about a file") {
  Site site;
  const Catalogue catalogue = Site::serve(site.bundle(hub_items({tiny_at(kOld, {{"a", "1"}, {"b", "2"}})})),
                                          site.bundle(hub_items({tiny_at(kOld, {{"b", "2"}, {"c", "3"}})})));
  CHECK(tiny(catalogue).find(kOld)->files.size() == 3);
  const Error error = refusal([&] {
    Site::serve(site.bundle(hub_items({tiny_at(kOld, {{"a", "1"}})})),
                site.bundle(hub_items({tiny_at(kOld, {{"a", "2"}})})));
  });
  CHECK(error.code() == ErrorCode::Conflict);
  CHECK(mentions(error, "org/tiny/a at " + kOld));
}

TEST_CASE("a branch of ModelScope is the newest bundle's whole") {
  const HubName name{.hub = HubKind::ModelScope, .id = "org/tiny"};
  const auto at = [&](std::map<std::string, std::string> files) {
    return hub_items({{.name = name, .commit = "master", .revisions = {}, .files = std::move(files)}});
  };
  for (const bool turned : {false, true}) {
    Site site;
    VerifiedBundle old = site.bundle(at({{"a", "1"}, {"gone", "1"}}));
    VerifiedBundle fresh = site.bundle(at({{"a", "2"}}), "2026-02-01T00:00:00Z");
    const Catalogue catalogue =
        turned ? Site::serve(std::move(fresh), std::move(old)) : Site::serve(std::move(old), std::move(fresh));
    const HubCommit* commit = catalogue.repositories.at(name).find("master");
    REQUIRE(commit != nullptr);
    CHECK(commit->files.size() == 1);
    CHECK(commit->files.at("a").sha256 == sha256(as_bytes("2")));
  }
}

TEST_CASE("a commit that a delta carries in part is served once another bundle has the rest, and not before") {
  Site site;
  TinyRepository part = tiny_at(kOld, {{"a", "1"}, {"b", "2"}});
  part.absent = {"a"};
  const Catalogue alone = Site::serve(site.bundle(hub_items({part})));
  CHECK(alone.repositories.empty());
  REQUIRE(alone.left_out.size() == 1);
  CHECK(alone.left_out[0].english.find("org/tiny at " + kOld + " is not served: 1 of its files, such as a,") == 0);
  const Catalogue both =
      Site::serve(site.bundle(hub_items({part})), site.bundle(hub_items({tiny_at(kOld, {{"a", "1"}, {"b", "2"}})})));
  CHECK(tiny(both).find("main")->files.size() == 2);
  CHECK(both.left_out.empty());
}

TEST_CASE("a catalogue of hubs that is none, and a file that is stored compressed, are refused by name") {
  Site site;
  CHECK_REFUSED(Site::serve(site.bundle({catalogue_item("{}")})), Format, "b1-1:catalogue/hubs.json");
  std::vector<TinyItem> items = hub_items({tiny_at(kOld, {{"a", "1"}})});
  items[0].encoding = Encoding::Zstd;
  CHECK_REFUSED(Site::serve(site.bundle(items)), CannotCheck, "b2-1:files/models/0/a");
  items = hub_items({tiny_at(kOld, {{"a", "1"}})});
  items[0].bytes = "2";  // the list promises other bytes
  CHECK_REFUSED(Site::serve(site.bundle(items)), Format, "the manifest has no file");
}
