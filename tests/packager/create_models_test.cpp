// SPDX-License-Identifier: Apache-2.0
// Models on their whole way: locked, fetched, checked, packed; and what is said when something changed in between.
#include <doctest/doctest.h>

#include <cstdlib>

#include "packager/create.hpp"
#include "packager/files/tree.hpp"
#include "packager/lock/lock.hpp"
#include "packager/models/lock_model.hpp"
#include "sealift/bundle/archive/tar.hpp"
#include "sealift/bundle/manifest/hub_catalogue.hpp"
#include "sealift/bundle/payload/payload_writer.hpp"
#include "sealift/bundle/verified_bundle.hpp"
#include "tests/support/clients.hpp"
#include "tests/support/refusal.hpp"
#include "tests/support/tiny_hub.hpp"
#include "tests/support/tiny_root.hpp"

using namespace sealift;
using namespace sealift::packager;
using test::read_file;
using test::TempDir;
using test::tiny_model;
using test::TinyHub;
using test::write_file;
namespace fs = std::filesystem;

namespace {

// What `create` needs beside models, as small as it can be.
struct Workshop {
  TempDir dir;
  std::unique_ptr<TinyHub> hub = std::make_unique<TinyHub>();
  bundle::PrivateKey key = bundle::PrivateKey::generate();
  bundle::Progress progress{nullptr};
  Cache cache{dir / "cache"};
  FetchOptions fetching{.jobs = 2, .attempts = 3, .first_pause = std::chrono::milliseconds(1)};
  Lock lock;

  Workshop() {
    lock = {.name = "demo", .version = 1, .channel = "test", .created = "2026-01-01T00:00:00Z"};
    lock.target = {.arch = "x86_64", .glibc = {2, 28}};
    lock.glibc_floor = {2, 17};
    lock.python = "3.11";
    Tree tree;
    tree["bin/python3.11"] = {.text = "python", .executable = true};
    const TreeTar tar = write_tree_tar(tree, dir / "interpreter.tar");
    lock.interpreter = {.description = "none", .version = "3.11.2", .sha256 = tar.sha256, .size = tar.size};
    cache.adopt(dir / "interpreter.tar", tar.sha256);
    bundle::write_text(dir / "release.key", key.pem(), 0600);
    write_file(dir / "root.1.json", write_envelope(test::one_key_root(key)));
    write_file(dir / "sealift-install", "#!/bin/sh\n");
    write_file(dir / "audit.sh", "#!/bin/sh\n");
  }
  JobModel folder_job() {
    test::write_model(dir / "weights", tiny_model());
    return {.spec = {.folder = dir / "weights", .into = "models/local"}, .include = {}, .exclude = {}};
  }
  JobModel hub_job(ModelLayout layout = ModelLayout::Folder) {
    hub->publish("org/tiny", tiny_model());
    return {.spec = {.hub = Hub::HfHub,
                     .folder = {},
                     .endpoint = hub->endpoint(),
                     .repo = "org/tiny",
                     .revision = "main",
                     .into = "models/tiny",
                     .layout = layout},
            .include = {},
            .exclude = {}};
  }
  void lock_all(const std::vector<JobModel>& jobs) {
    lock.models = list_models(jobs, cache, progress, fetching);
    hash_models(lock.models, cache, progress);
  }
  CreateResult pack(const std::string& out = "out") {
    write_file(dir / "demo.lock.toml", write_lock(lock, dir.path()));
    return create({.lock = dir / "demo.lock.toml",
                   .roots = {dir / "root.1.json"},
                   .keys = {dir / "release.key"},
                   .out = dir / out,
                   .cache = cache.root(),
                   .installer = dir / "sealift-install",
                   .fetch = fetching},
                  progress);
  }
};

std::map<std::string, const bundle::Entry*> files_by_place(const bundle::Manifest& manifest) {
  std::map<std::string, const bundle::Entry*> files;
  for (const auto& placement : manifest.environment.placements)
    if (!placement.into.empty()) files[placement.into] = manifest.find(placement.entry);
  return files;
}

}  // namespace

TEST_CASE("models become files of the bundle, stored as they are, and verify") {
  Workshop workshop;
  workshop.lock_all({workshop.folder_job(), workshop.hub_job()});
  const CreateResult result = workshop.pack();
  const bundle::VerifiedBundle verified = bundle::verify(
      bundle::open(result.folder), test::pinned(test::one_key_root(workshop.key)), bundle::system_time());
  CHECK(bundle::check_every_chunk(verified, 2).empty());
  const auto files = files_by_place(verified.manifest());
  CHECK(files.size() == 2 * tiny_model().size() + 1);
  for (const auto& [path, bytes] : tiny_model())
    for (const std::string folder : {"models/local/", "models/tiny/"}) {
      REQUIRE(files.contains(folder + path));
      const bundle::Entry& entry = *files.at(folder + path);
      CHECK(entry.encoding == bundle::Encoding::Identity);
      CHECK(entry.kind == bundle::EntryKind::File);
      std::string read;
      verified.stream(entry, [&](bundle::ByteView piece) { read += bundle::as_text(piece); });
      CHECK(read == bytes);
    }
}

TEST_CASE("a folder in the layout tree is one entry that lists the digest of each file, as it was when it was locked") {
  Workshop workshop;
  write_file(workshop.dir / "texts/a.txt", "a text\n");
  write_file(workshop.dir / "texts/more/b.bin", std::string(5000, 'b'));
  const JobModel job{
      .spec = {.data = true, .folder = workshop.dir / "texts", .into = "data/texts", .layout = ModelLayout::Tree},
      .include = {},
      .exclude = {}};
  workshop.lock_all({job});
  REQUIRE(workshop.lock.models[0].tree);
  CHECK(workshop.lock.models[0].files.empty());
  CHECK(workshop.lock.models[0].tree->files == 2);
  write_file(workshop.dir / "again.lock.toml", write_lock(workshop.lock, workshop.dir.path()));
  const Lock again = read_lock(workshop.dir / "again.lock.toml");
  CHECK(again.models == workshop.lock.models);

  write_file(workshop.dir / "texts/a.txt", "another text\n");  // too late
  const CreateResult result = workshop.pack();
  const bundle::Entry* entry = result.manifest.find(bundle::SafePath::parse("trees/data/texts.tar", ""));
  REQUIRE(entry != nullptr);
  CHECK(entry->kind == bundle::EntryKind::Tree);
  CHECK(entry->installed_files == 5);  // two of them, and three folders
  const bundle::VerifiedBundle verified = bundle::verify(
      bundle::open(result.folder), test::pinned(test::one_key_root(workshop.key)), bundle::system_time());
  std::string tar;
  verified.stream(*entry, [&](bundle::ByteView piece) { tar += bundle::as_text(piece); });
  for (const std::string& text : {std::string("a text\n"), std::string(5000, 'b')}) {
    CHECK(tar.find(text) != tar.npos);
    CHECK(tar.find(bundle::digest_comment(bundle::sha256(bundle::as_bytes(text)))) != tar.npos);
  }

  fs::remove(workshop.cache.path(workshop.lock.models[0].tree->sha256));
  CHECK_REFUSED(workshop.pack("lost"), Missing, (workshop.dir / "texts").string());
  write_file(workshop.dir / "texts/bad.pkl", "\x80\x04.");
  CHECK_REFUSED(workshop.lock_all({job}), Format, "bad.pkl");
}

TEST_CASE("a model in both layouts is carried once, and its cache names the commit") {
  Workshop workshop;
  workshop.lock_all({workshop.hub_job(ModelLayout::Both)});
  const CreateResult result = workshop.pack();
  const auto files = files_by_place(result.manifest);
  const std::string cache = "hub/models--org--tiny/";
  CHECK(files.size() == 2 * tiny_model().size() + 2);
  for (const auto& [path, bytes] : tiny_model()) {
    const auto snapshot = files.find(cache + "snapshots/" + workshop.hub->commit + "/" + path);
    REQUIRE(snapshot != files.end());
    CHECK(snapshot->second->offset == files.at("models/tiny/" + path)->offset);
  }
  CHECK(files.at(cache + "refs/main")->sha256 == bundle::sha256(bundle::as_bytes(workshop.hub->commit)));
}

TEST_CASE("a bundle says by repository, commit and path where each file of a hub lies in it, and nothing of folders") {
  Workshop workshop;
  const auto catalogue_of = [&](const CreateResult& result) {
    const bundle::VerifiedBundle verified = bundle::verify(
        bundle::open(result.folder), test::pinned(test::one_key_root(workshop.key)), bundle::system_time());
    std::string text;
    verified.stream(*files_by_place(verified.manifest()).at(std::string(bundle::kHubCataloguePlace)),
                    [&](bundle::ByteView piece) { text += bundle::as_text(piece); });
    return bundle::parse_hub_catalogue(text, verified.manifest(), "catalogue");
  };
  std::string folder = "files/models/tiny/";
  JobModel job = workshop.hub_job();
  SUBCASE("as a folder") {}
  SUBCASE("as a cache") {
    job.spec.layout = ModelLayout::HfCache;
    folder = "files/hub/models--org--tiny/snapshots/" + workshop.hub->commit + "/";
  }
  SUBCASE("as both") {
    job.spec.layout = ModelLayout::Both;
  }
  workshop.lock_all({workshop.folder_job(), job});
  const bundle::HubCatalogue catalogue = catalogue_of(workshop.pack("both"));
  REQUIRE(catalogue.size() == 1);
  CHECK(catalogue[0].name == bundle::HubName{.id = "org/tiny"});
  CHECK(catalogue[0].commit == workshop.hub->commit);
  CHECK(catalogue[0].revisions == std::vector<std::string>{"main"});
  REQUIRE(catalogue[0].files.size() == tiny_model().size());
  for (const bundle::HubRepositoryFile& file : catalogue[0].files) {
    CHECK(file.sha256 == bundle::sha256(bundle::as_bytes(tiny_model().at(file.path.text()))));
    CHECK(file.entry.text() == folder + file.path.text());
  }
  workshop.lock_all({workshop.folder_job()});
  CHECK_FALSE(files_by_place(workshop.pack("none").manifest).contains(std::string(bundle::kHubCataloguePlace)));
}

namespace {

// A model and a data set of ModelScope, whose hub tells the digest of each file.
struct ScopeHub {
  TinyHub hub;
  std::map<std::string, std::string> rows = {{"data/train.jsonl", "{\"text\": \"hello\"}\n"},
                                             {"README.md", "# Rows\n"}};

  explicit ScopeHub(const std::string& revision) {
    publish("models/Org/Tiny.v1/repo/files?Revision=" + revision + "&Recursive=true", "models/Org/Tiny.v1", revision,
            tiny_model());
    publish("datasets/Org/Rows/repo/tree?Revision=" + revision + "&Recursive=True&PageNumber=1&PageSize=200",
            "datasets/Org/Rows", revision, rows);
  }
  void publish(const std::string& list, const std::string& repository, const std::string& revision,
               const std::map<std::string, std::string>& files) {
    bundle::Json items = bundle::Json::array();
    for (const auto& [path, bytes] : files) {
      items.push_back({{"Type", "blob"},
                       {"Path", path},
                       {"Size", bytes.size()},
                       {"Sha256", bundle::sha256(bundle::as_bytes(bytes)).hex()}});
      std::string quoted = path;
      if (const std::size_t slash = path.find('/'); slash != path.npos) quoted.replace(slash, 1, "%2F");
      hub.put("/api/v1/" + repository + "/repo?Revision=" + revision + "&FilePath=" + quoted, {.body = bytes});
    }
    hub.put("/api/v1/" + list, {.body = bundle::write_json({{"Code", 200}, {"Data", {{"Files", items}}}})});
  }
  JobModel job(bool data, ModelLayout layout, const std::string& revision) const {
    return {.spec = {.data = data,
                     .hub = Hub::ModelScope,
                     .folder = {},
                     .endpoint = hub.endpoint(),
                     .repo = data ? "Org/Rows" : "Org/Tiny.v1",
                     .revision = revision,
                     .into = data ? "data/rows" : "models/tiny",
                     .layout = layout},
            .include = {},
            .exclude = {}};
  }
};

}  // namespace

TEST_CASE("a model and a data set of ModelScope are carried in the layout of its client's cache, and listed") {
  Workshop workshop;
  const std::string revision = "v1.0";
  const ScopeHub scope(revision);
  ModelLayout layout = ModelLayout::ModelScopeCache;
  SUBCASE("as a cache") {}
  SUBCASE("as both") {
    layout = ModelLayout::Both;
  }
  workshop.lock_all({scope.job(false, layout, revision), scope.job(true, layout, revision)});
  write_file(workshop.dir / "again.lock.toml", write_lock(workshop.lock, workshop.dir.path()));
  CHECK(read_lock(workshop.dir / "again.lock.toml").models == workshop.lock.models);
  const CreateResult result = workshop.pack();
  const auto files = files_by_place(result.manifest);
  const bool both = layout == ModelLayout::Both;
  CHECK(files.size() == (both ? 2 : 1) * (tiny_model().size() + scope.rows.size()) + 1);
  const bundle::VerifiedBundle verified = bundle::verify(
      bundle::open(result.folder), test::pinned(test::one_key_root(workshop.key)), bundle::system_time());
  const auto text_of = [&](const bundle::Entry& entry) {
    std::string text;
    verified.stream(entry, [&](bundle::ByteView piece) { text += bundle::as_text(piece); });
    return text;
  };
  for (const auto& [place, bytes] : {std::pair("modelscope/models/Org--Tiny.v1/snapshots/v1.0/", tiny_model()),
                                     std::pair("modelscope/datasets/Org--Rows/snapshots/v1.0/", scope.rows)})
    for (const auto& [path, text] : bytes) {
      REQUIRE(files.contains(place + path));
      CHECK(text_of(*files.at(place + path)) == text);
      if (both)
        CHECK(files.at((bytes == scope.rows ? "data/rows/" : "models/tiny/") + path)->offset ==
              files.at(place + path)->offset);
    }
  const bundle::HubCatalogue catalogue =
      bundle::parse_hub_catalogue(text_of(*files.at(std::string(bundle::kHubCataloguePlace))), verified.manifest(), "");
  REQUIRE(catalogue.size() == 2);
  CHECK(catalogue[0].name == bundle::HubName{.hub = bundle::HubKind::ModelScope, .id = "Org/Tiny.v1"});
  CHECK(catalogue[1].name == bundle::HubName{bundle::HubKind::ModelScope, bundle::RepositoryKind::Dataset, "Org/Rows"});
  CHECK(catalogue[1].commit == revision);
  REQUIRE(catalogue[1].files.size() == 2);
  CHECK(catalogue[1].files[1].path.text() == "data/train.jsonl");
  CHECK(catalogue[1].files[1].entry.text() ==
        (both ? "files/data/rows/data/train.jsonl"
              : "files/modelscope/datasets/Org--Rows/snapshots/v1.0/data/train.jsonl"));
  if (const std::string python = test::modelscope_python(); !python.empty()) {
    for (const auto& [place, entry] : files)
      if (place.starts_with("modelscope/")) write_file(workshop.dir / "site" / place, text_of(*entry));
    const std::string log = (workshop.dir / "client.log").string();
    const int status = std::system(("MODELSCOPE_CACHE='" + (workshop.dir / "site/modelscope").string() +
                                    "' MODELSCOPE_ENDPOINT=http://127.0.0.1:9 '" + python +
                                    "' " SEALIFT_SCOPE_CACHE_CLIENT " " + revision + " > '" + log + "' 2>&1")
                                       .c_str());
    INFO(read_file(log));
    CHECK(status == 0);
  }
}

TEST_CASE("a download that was cut is continued where it stopped, behind the hub's redirect") {
  Workshop workshop;
  const JobModel job = workshop.hub_job();
  const std::string weights = tiny_model().at("model.safetensors");
  workshop.hub->storage.put("/blob/model.safetensors", {.body = weights, .cut_after = 40, .cuts = 1});
  workshop.lock_all({job});
  workshop.pack();
  const auto requests = workshop.hub->storage.requests();
  REQUIRE(requests.size() == 2);
  CHECK(requests[1].range == "bytes=40-");
  CHECK(workshop.hub->storage.sent() == weights.size());
}

TEST_CASE("the same lock and cache give the same bytes when the hub is gone") {
  Workshop workshop;
  workshop.lock_all({workshop.hub_job(ModelLayout::Both)});
  const fs::path first = workshop.pack("first").folder;
  workshop.hub.reset();
  const fs::path second = workshop.pack("second").folder;
  for (const char* file : {"demo-1.seal", "demo-1.chunks", "demo-1.vol001"})
    CHECK_MESSAGE(read_file(first / file) == read_file(second / file), file);
}

TEST_CASE("a model's file that is damaged in the cache is fetched again, and the bundle is the same") {
  Workshop workshop;
  workshop.lock_all({workshop.hub_job(ModelLayout::Both)});
  const fs::path first = workshop.pack("first").folder;
  const std::string good = tiny_model().at("model.safetensors");
  const fs::path file = workshop.cache.path(bundle::sha256(bundle::as_bytes(good)));
  const std::size_t before = workshop.hub->storage.requests().size();
  std::string damaged = good;
  SUBCASE("where it is looked into") {
    damaged.front() = 'x';
  }
  SUBCASE("where it is written") {
    damaged.back() ^= 1;
  }
  SUBCASE("nowhere, so that nothing is fetched") {}
  write_file(file, damaged);
  const fs::path second = workshop.pack("second").folder;
  CHECK(workshop.hub->storage.requests().size() == before + (damaged == good ? 0 : 1));
  for (const char* name : {"demo-1.seal", "demo-1.chunks", "demo-1.vol001"})
    CHECK_MESSAGE(read_file(first / name) == read_file(second / name), name);
}

TEST_CASE("a file that changed on the hub under the lock is one clear message, and nothing is left behind") {
  Workshop workshop;
  workshop.lock_all({workshop.hub_job()});
  std::string other = tiny_model().at("model.safetensors");
  other.back() = 'x';
  workshop.hub->put_file("org/tiny", "model.safetensors", other);
  CHECK_REFUSED(workshop.pack(), Digest, "a download is not the file that was locked: org/tiny/model.safetensors");
  CHECK_FALSE(fs::exists(workshop.dir / "out/demo-1"));
}

TEST_CASE("a folder that changed after it was locked is refused by the file's name") {
  Workshop workshop;
  workshop.lock_all({workshop.folder_job()});
  const fs::path file = workshop.dir / "weights/tokenizer.json";
  SUBCASE("with the same size, while it is copied") {
    write_file(file, "[]");
    CHECK_REFUSED(workshop.pack(), Digest, file.string());
  }
  SUBCASE("with another size, before anything is written") {
    write_file(file, "[1]");
    CHECK_REFUSED(workshop.pack(), Missing, file.string() + ": 3 bytes, not 2");
  }
  SUBCASE("gone") {
    fs::remove(file);
    CHECK_REFUSED(workshop.pack(), Missing, file.string());
  }
  CHECK_FALSE(fs::exists(workshop.dir / "out/demo-1"));
}

TEST_CASE("faults that only the bytes tell are found before a bundle is written") {
  Workshop workshop;
  test::ModelFiles files = tiny_model();
  const JobModel job = workshop.hub_job();
  files["model.safetensors"] = "this is no safetensors file";
  workshop.hub->publish("org/tiny", files);
  workshop.lock_all({job});  // the hub knows its digest, so nobody has looked yet
  CHECK_REFUSED(workshop.pack(), Format, "org/tiny: model.safetensors: ");
  CHECK_FALSE(fs::exists(workshop.dir / "out"));
}

TEST_CASE("a model's file and a program cannot have one path") {
  Workshop workshop;
  workshop.lock_all({workshop.folder_job()});
  write_file(workshop.dir / "run", "run");
  workshop.lock.programs.push_back({.source = workshop.dir / "run",
                                    .sha256 = bundle::sha256(bundle::as_bytes("run")),
                                    .size = 3,
                                    .into = "models/local/config.json"});
  CHECK_REFUSED(workshop.pack(), Conflict, "models/local/config.json");
}
