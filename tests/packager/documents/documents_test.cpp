// SPDX-License-Identifier: Apache-2.0
// The documents of tiny bundles, whose wheels are as hostile as the gate lets them be.
#include "packager/documents/documents.hpp"

#include <doctest/doctest.h>

#include "bundle/core/json.hpp"
#include "packager/documents/sbom.hpp"
#include "tests/support/refusal.hpp"
#include "tests/support/tiny_bundle.hpp"
#include "tests/support/tiny_rpm.hpp"

using namespace sealift;
using namespace sealift::packager;
using namespace sealift::test;
using bundle::Json;

namespace {

struct Site {
  TempDir dir;
  MadeBundle made;

  explicit Site(const std::vector<TinyWheel>& wheels, std::vector<TinyItem> items = {}) {
    for (const TinyWheel& wheel : wheels) items.push_back(wheel_item(wheel));
    made = make_bundle(dir / "tiny-1", {.volume_size = 8192, .imports = {"demo"}, .items = std::move(items)});
  }
  std::vector<std::filesystem::path> write(const std::string& name = "documents", const std::string& lock = "") const {
    bundle::Progress silent(nullptr);
    return write_documents({.bundle = made.folder,
                            .fingerprint = *made.trusted.state.pinned,
                            .lock = lock.empty() ? std::filesystem::path() : dir / lock,
                            .out = dir / name},
                           silent);
  }
  std::string text(const std::string& file) const { return read_file(dir / "documents" / file); }
  Json sbom() const { return Json::parse(text("tiny-1.cdx.json")); }
  Json component(const std::string& name) const {
    const Json whole = sbom();
    for (const Json& component : whole["components"])
      if (component["name"] == name) return component;
    return {};
  }
};

TinyWheel wheel(const std::string& name, const std::string& metadata = "") {
  return {.name = name, .files = {{name + ".py", "x = 1\n"}}, .extra_metadata = metadata};
}
TinyItem item(const std::string& path, const std::string& bytes) {
  return {.path = path, .bytes = bytes, .into = path};
}

bundle::HubRepositoryFile hub_file(const std::string& path, const TinyItem& item) {
  return {.path = bundle::SafePath::parse(path, ""),
          .entry = bundle::SafePath::parse(item.path, ""),
          .size = item.bytes.size(),
          .sha256 = bundle::sha256(bundle::as_bytes(item.bytes))};
}
TinyItem catalogue_item(bundle::HubCatalogue repositories) {
  return {.path = std::string(bundle::kHubCatalogueEntry),
          .bytes = write_hub_catalogue(std::move(repositories)),
          .into = std::string(bundle::kHubCataloguePlace)};
}

std::string digest(const std::string& bytes) {
  return bundle::sha256(bundle::as_bytes(bytes)).hex();
}

}  // namespace

TEST_CASE("a carried glibc is named inside the interpreter that it lies beside, with version and licence") {
  TempDir dir;
  const MadeBundle made =
      make_bundle(dir / "tiny-1", {.runtime = bundle::CarriedRuntime{.glibc = {2, 36}, .kernel = "3.2.0"},
                                   .items = {wheel_item({}),
                                             {.path = "python/cpython-3.11.2.tar",
                                              .kind = bundle::EntryKind::Tree,
                                              .bytes = make_tar({{tar_file("bin/python3", true), "p"}})}}});
  bundle::Progress silent(nullptr);
  write_documents(
      {.bundle = made.folder, .fingerprint = *made.trusted.state.pinned, .lock = {}, .out = dir / "documents"}, silent);
  for (const Json& component : Json::parse(read_file(dir / "documents/tiny-1.cdx.json"))["components"]) {
    if (component["name"] != "cpython") {
      CHECK_FALSE(component.contains("components"));
      continue;
    }
    const Json& glibc = component["components"].at(0);
    CHECK(glibc["purl"] == "pkg:generic/glibc@2.36");
    CHECK(glibc["licenses"] == Json::array({{{"expression", "LGPL-2.1-or-later"}}}));
  }
  CHECK(read_file(dir / "documents/review.txt").find("LGPL-2.1-or-later") != std::string::npos);
}

TEST_CASE("Debian packages are named as packages, by the stanza of the bundle's index that has their digest") {
  const auto stanza = [](const std::string& name, const std::string& more, const std::string& bytes) {
    return "Package: " + name + "\n" + more + "Description: one\n Package: not a field\nSHA256: " + digest(bytes) +
           "\n\n";
  };
  const Site site(
      {wheel("demo")},
      {item("files/apt/Packages", stanza("g++", "Version: 4:12.2.0-3\nArchitecture: amd64\n", "one") +
                                      stanza("tool", "Version: 1\nArchitecture: all?x=y\nOrigin: Ubuntu\n", "two") +
                                      stanza("evil\x1b[2J", "Version: 1\nOrigin: a/b\n", "four") +
                                      stanza("elsewhere", "Version: 1\nArchitecture: all\n", "not carried")),
       item("files/apt/g++_12.2.0-3_amd64.deb", "one"), item("files/apt/tool_1_all.deb", "two"),
       item("files/apt/unknown_1_all.deb", "three"), item("files/apt/evil_1_all.deb", "four")});
  site.write();
  const Json compiler = site.component("g++");
  CHECK(compiler["type"] == "library");
  CHECK(compiler["version"] == "4:12.2.0-3");
  CHECK(compiler["purl"] == "pkg:deb/debian/g%2B%2B@4%3A12.2.0-3?arch=amd64");
  CHECK(compiler["hashes"][0]["content"] == digest("one"));
  CHECK(site.component("tool")["purl"] == "pkg:deb/ubuntu/tool@1");
  CHECK_FALSE(site.component("files/apt/unknown_1_all.deb").contains("purl"));
  CHECK_FALSE(site.component("files/apt/Packages").contains("purl"));
  CHECK(site.component("elsewhere").is_null());
  CHECK(site.text("tiny-1.cdx.json").find("pkg:deb/debian/evil") != std::string::npos);
  for (const char* document : {"review.txt", "review.zh.txt", "review.html", "licences/licences.tsv"}) {
    CAPTURE(document);
    CHECK(site.text(document).find("4:12.2.0-3") != std::string::npos);
    CHECK(site.text(document).find('\x1b') == std::string::npos);
  }
  CHECK(site.text("licences/licences.tsv").find("usr/share/doc/g++/copyright in g++_12.2.0-3_amd64.deb: not opened") !=
        std::string::npos);
  CHECK(site.text("review.zh.txt").find("Debian 软件包") != std::string::npos);
}

TEST_CASE("rpm packages are named by their own headers, whose texts are made fit to be shown") {
  const Site site({wheel("demo")},
                  {item("files/rpm/tool-2.0-1.el9.noarch.rpm", tiny_rpm()),
                   item("files/rpm/evil-1-1.noarch.rpm", tiny_rpm("evil\x1b[2J")), item("files/rpm/keys.asc", "key")});
  site.write();
  const Json tool = site.component("tool");
  CHECK(tool["type"] == "library");
  CHECK(tool["version"] == "1:2.0-1.el9");
  CHECK(tool["purl"] == "pkg:rpm/tool@2.0-1.el9?arch=noarch&epoch=1");
  CHECK(tool["licenses"][0]["license"]["name"] == "MIT and Zlib");
  CHECK(site.text("tiny-1.cdx.json").find("pkg:rpm/evil") != std::string::npos);
  CHECK_FALSE(site.component("files/rpm/keys.asc").contains("purl"));
  for (const char* document : {"review.txt", "review.zh.txt", "review.html", "licences/licences.tsv"}) {
    CAPTURE(document);
    CHECK(site.text(document).find("1:2.0-1.el9") != std::string::npos);
    CHECK(site.text(document).find("MIT and Zlib") != std::string::npos);
    CHECK(site.text(document).find('\x1b') == std::string::npos);
  }
  CHECK(site.text("review.zh.txt").find("rpm 软件包") != std::string::npos);
  const Site broken({wheel("demo")}, {item("files/rpm/broken-1-1.noarch.rpm", "no package")});
  CHECK_REFUSED(broken.write(), Format, "broken-1-1.noarch.rpm");
}

TEST_CASE("an SBOM has a component for each entry, with purl, hash, licence and what it needs here") {
  const Site site(
      {wheel("Demo_A", "License-Expression: MIT\nRequires-Dist: demo.b[all]>=1\nRequires-Dist: elsewhere\n"),
       wheel("demo_b", "License: BSD\nRequires-Dist: bare; extra == 'all'\nRequires-Dist: demo-a; extra == 'no'\n"),
       wheel("bare")},
      {item("programs/bin/tool", "tool"),
       item("files/models/m/model.safetensors", "weights"),
       item("files/data/d/set.json", "{}"),
       item("files/README", "text"),
       {.path = "python/cpython-3.11.2.tar",
        .kind = bundle::EntryKind::Tree,
        .bytes = make_tar({{tar_file("bin/python3", true), "p"}})}});
  site.write();
  const Json sbom = site.sbom();
  CHECK(sbom["specVersion"] == "1.6");
  CHECK(sbom["components"].size() ==
        site.made.manifest.entries.size());  // the one model and the one data set: a file each
  CHECK(sbom["metadata"]["timestamp"] == site.made.manifest.created);
  const Json a = site.component("Demo_A");
  CHECK(a["type"] == "library");
  CHECK(a["purl"] == "pkg:pypi/demo-a@1.0");
  CHECK(a["licenses"] == Json::array({{{"expression", "MIT"}}}));
  CHECK(a["hashes"][0]["content"] == site.made.manifest.entries.at(5).sha256.hex());
  CHECK(site.component("demo_b")["licenses"] == Json::array({{{"license", {{"name", "BSD"}}}}}));
  CHECK_FALSE(site.component("bare").contains("licenses"));
  CHECK(site.component("cpython")["version"] == "3.11.2");
  CHECK(site.component("m")["type"] == "machine-learning-model");
  CHECK_FALSE(site.component("m").contains("purl"));
  CHECK(site.component("m")["components"][0]["name"] == "files/models/m/model.safetensors");
  CHECK(site.component("m")["components"][0]["type"] == "file");
  CHECK(site.component("d")["type"] == "data");
  CHECK(site.component("files/README")["type"] == "file");
  CHECK(site.component("programs/bin/tool")["hashes"][0]["content"] == digest("tool"));
  for (const Json& dependency : sbom["dependencies"]) {
    if (dependency["ref"] == "entry:wheels/Demo_A-1.0-py3-none-any.whl")
      CHECK(dependency["dependsOn"] == Json::array({"entry:wheels/demo_b-1.0-py3-none-any.whl"}));
    if (dependency["ref"] == "entry:wheels/demo_b-1.0-py3-none-any.whl")
      CHECK(dependency["dependsOn"] == Json::array({"entry:wheels/bare-1.0-py3-none-any.whl"}));
    if (dependency["ref"] == "entry:wheels/bare-1.0-py3-none-any.whl") CHECK_FALSE(dependency.contains("dependsOn"));
    if (dependency["ref"] == "bundle:tiny-1") CHECK(dependency["dependsOn"].size() == sbom["components"].size());
  }
}

TEST_CASE(
    "a model of a hub is one component with repository, commit and licence, and its licence texts are collected") {
  const std::string commit(40, 'c'), card = "---\nlicense: apache-2.0\n---\n# Tiny\n";
  const TinyItem readme = item("files/models/q/README.md", card), weights = item("files/models/q/w.safetensors", "w"),
                 text = item("files/models/q/LICENSE", "Apache License"),
                 twin = item("files/hub/models--org--tiny/snapshots/" + commit + "/w.safetensors", "w"),
                 set = item("files/data/s/train.jsonl", "{}"), scope = item("files/models/ms/config.json", "{}"),
                 scope_set = item("files/data/r/a.txt", "a"),
                 scope_twin = item("files/modelscope/datasets/org--rows/snapshots/master/a.txt", "a");
  const Site site({wheel("demo")},
                  {readme, weights, text, twin, set, scope, scope_set, scope_twin,
                   catalogue_item({{.name = {.id = "org/tiny"},
                                    .commit = commit,
                                    .revisions = {},
                                    .files = {hub_file("README.md", readme), hub_file("w.safetensors", weights),
                                              hub_file("LICENSE", text)}},
                                   {.name = {.kind = bundle::RepositoryKind::Dataset, .id = "org/set"},
                                    .commit = commit,
                                    .revisions = {},
                                    .files = {hub_file("train.jsonl", set)}},
                                   {.name = {.hub = bundle::HubKind::ModelScope, .id = "org/ms"},
                                    .commit = "v1/a",
                                    .revisions = {},
                                    .files = {hub_file("config.json", scope)}},
                                   {.name = {bundle::HubKind::ModelScope, bundle::RepositoryKind::Dataset, "org/rows"},
                                    .commit = "master",
                                    .revisions = {},
                                    .files = {hub_file("a.txt", scope_set)}}})});
  site.write();
  const Json model = site.component("org/tiny");
  CHECK(model["type"] == "machine-learning-model");
  CHECK(model["version"] == commit);
  CHECK(model["purl"] == "pkg:huggingface/org/tiny@" + commit);
  CHECK(model["licenses"] == Json::array({{{"expression", "Apache-2.0"}}}));
  CHECK(model["components"].size() == 4);  // the copy in the hub's cache is its file, too
  CHECK(site.component("org/set")["type"] == "data");
  CHECK(site.component("org/set")["purl"] == "pkg:huggingface/datasets/org/set@" + commit);
  CHECK_FALSE(site.component("org/set").contains("licenses"));
  CHECK(site.component("org/ms")["purl"] == "pkg:modelscope/org/ms@v1%2Fa");
  const Json whole = site.sbom();
  CHECK(site.component("org/rows")["purl"] == "pkg:modelscope/datasets/org/rows@master");
  CHECK(site.component("org/rows")["components"].size() == 2);
  CHECK(whole["components"].size() == 6);  // four of hubs, the wheel, the catalogue
  CHECK(whole["dependencies"].back()["dependsOn"].size() == 6);
  CHECK(read_file(site.dir / ("documents/licences/org_tiny-" + commit.substr(0, 12) + "/LICENSE.txt")) ==
        "Apache License");
  CHECK(site.text("licences/licences.tsv").find("org/tiny\t" + commit + "\tApache-2.0\torg_tiny-") !=
        std::string::npos);
  CHECK(site.text("review.txt").find("org/tiny") != std::string::npos);
  CHECK(site.text("tiny-1.provenance.json").find("pkg:huggingface/org/tiny@" + commit + "#w.safetensors") !=
        std::string::npos);
}

TEST_CASE("a model of a folder is the outermost folder with a configuration, and states what its README states") {
  const Site site({wheel("demo")},
                  {item("files/models/org/one/config.json", "{}"), item("files/models/org/one/vae/config.json", "{}"),
                   item("files/models/org/one/README.md", "---\nlicense: other\nlicense_name: own-terms\n---\n"),
                   item("files/models/org/one/USE_POLICY.md", "no harm"),
                   item("files/models/org/one/sub/LICENSE", "of something else"),
                   item("files/models/org/two/a.gguf", "g"), item("files/data/corpus/a/b.txt", "t")});
  site.write();
  const Json one = site.component("org/one");
  CHECK(one["components"].size() == 5);
  CHECK(one["licenses"] == Json::array({{{"license", {{"name", "own-terms"}}}}}));
  CHECK_FALSE(one.contains("version"));
  CHECK(one["bom-ref"] == "folder:models/org/one");
  CHECK(site.component("org/two")["components"].size() == 1);
  CHECK(site.component("corpus")["type"] == "data");
  CHECK(read_file(site.dir / "documents/licences/org_one/USE_POLICY.md.txt") == "no harm");
  CHECK(std::distance(std::filesystem::directory_iterator(site.dir / "documents/licences/org_one"), {}) == 1);
}

TEST_CASE("a README cannot write into the documents: large licence files are named, its text stays one line") {
  const Site site({wheel("demo")}, {item("files/models/m/config.json", "{}"),
                                    item("files/models/m/README.md", "---\nlicense: \"=x\x1b[2J\\t\"\n---\n"),
                                    item("files/models/m/LICENSE", std::string(kMaxLicenceFile + 1, 'x'))});
  site.write();
  CHECK(site.text("licences/licences.tsv").find("\nm\t\t'=x") != std::string::npos);
  CHECK(site.text("licences/licences.tsv").find("LICENSE: too large") != std::string::npos);
  for (const char* document : {"review.txt", "licences/licences.tsv", "review.html"})
    CHECK(site.text(document).find('\x1b') == std::string::npos);
}

TEST_CASE("a delta that leaves out a model's README does not know its licence") {
  TinyItem readme = item("files/models/m/README.md", "---\nlicense: mit\n---\n");
  readme.absent = true;
  const Site site({wheel("demo")}, {readme, item("files/models/m/config.json", "{}")});
  site.write();
  CHECK_FALSE(site.component("m").contains("licenses"));
  CHECK(site.text("licences/licences.tsv").find("m\t\tnot carried\t") != std::string::npos);
}

TEST_CASE("documents of a delta list what it does not carry, and say that they do not know its licence") {
  TinyItem absent = wheel_item(wheel("demo_b", "License: BSD\n"));
  absent.absent = true;
  const Site site({wheel("demo_a", "License: MIT\nRequires-Dist: demo-b\n")}, {absent});
  site.write();
  CHECK(site.component("demo_b")["purl"] == "pkg:pypi/demo-b@1.0");
  CHECK(site.component("demo_b")["hashes"][0]["content"] == digest(absent.bytes));
  CHECK(site.component("demo_b")["properties"].back()["name"] == "sealift:carried");
  CHECK_FALSE(site.component("demo_b").contains("licenses"));
  CHECK(site.component("demo_a")["properties"].size() == 2);
  for (const Json& dependency : site.sbom()["dependencies"])
    if (dependency["ref"] == "entry:wheels/demo_a-1.0-py3-none-any.whl")
      CHECK(dependency["dependsOn"] == Json::array({"entry:wheels/demo_b-1.0-py3-none-any.whl"}));
  CHECK(site.text("licences/licences.tsv").find("demo_b\t1.0\tnot carried\t") != std::string::npos);
  const std::string review = site.text("review.txt");
  CHECK(review.find("sha256:" + site.made.manifest.base->hex()) != std::string::npos);
  CHECK(review.find("Not carried, the target has it") != std::string::npos);
  CHECK(review.find("wheel, not carried") != std::string::npos);
  CHECK(site.text("review.zh.txt").find("未携带") != std::string::npos);
}

TEST_CASE("documents name the image of an environment with its root hash, in two languages") {
  const bundle::Digest root = bundle::sha256(bundle::as_bytes("its tree"));
  const Site site({wheel("demo", "License: MIT\n")}, {{.path = "environment/image.sqfs",
                                                       .kind = bundle::EntryKind::Squashfs,
                                                       .bytes = std::string(8192, 'i'),
                                                       .placed = false,
                                                       .verity = root}});
  site.write();
  const Json image = site.component("environment/image.sqfs");
  CHECK(image["type"] == "file");
  CHECK(image["properties"].back() == Json({{"name", "sealift:verity"}, {"value", root.hex()}}));
  CHECK(site.component("demo")["version"] == "1.0");
  CHECK(site.text("review.txt").find("squashfs") != std::string::npos);
  CHECK(site.text("review.zh.txt").find("环境映像") != std::string::npos);
}

TEST_CASE("documents of a bundle with its image alone list what the image was made of") {
  Site site({});
  const bundle::PrivateKey key = bundle::PrivateKey::generate();
  TinyBundle tiny{.items = {wheel_item(wheel("demo", "License: MIT\n"))}};
  tiny.items[0].absent = true;
  tiny.items.push_back({.path = "environment/image.sqfs",
                        .kind = bundle::EntryKind::Squashfs,
                        .bytes = std::string(8192, 'i'),
                        .placed = false});
  std::filesystem::remove_all(site.made.folder);
  site.made = make_bundle(site.made.folder, tiny, key);
  site.made.manifest.base.reset();
  reseal(site.made, {one_key_root(key)}, {&key});
  site.write();
  CHECK(site.component("demo")["purl"] == "pkg:pypi/demo@1.0");
  CHECK(site.component("demo")["properties"].back()["name"] == "sealift:carried");
  CHECK(site.component("environment/image.sqfs")["type"] == "file");
  const std::string review = site.text("review.txt");
  CHECK(review.find("Not carried, the image was made of it") != std::string::npos);
  CHECK(review.find("none: what is not carried is in the image") != std::string::npos);
  CHECK(review.find("the target has it") == std::string::npos);
}

TEST_CASE("the same bundle gives the same documents") {
  const Site site({wheel("demo", "License: MIT\n")});
  const auto first = site.write("documents"), second = site.write("again");
  REQUIRE(first.size() == second.size());
  CHECK(first.size() == 7);
  for (std::size_t i = 0; i < first.size(); ++i) CHECK(read_file(first[i]) == read_file(second[i]));
}

TEST_CASE("a serial number is a UUID of form 8 that the manifest decides") {
  const bundle::Digest digest = bundle::sha256(bundle::as_bytes("x"));  // 2d711642b726b04401627ca9fbac32f5...
  CHECK(serial_number(digest) == "urn:uuid:2d711642-b726-8044-8162-7ca9fbac32f5");
  CHECK(serial_number({}) == "urn:uuid:00000000-0000-8000-8000-000000000000");
  bundle::Digest ones;
  ones.bytes.fill(std::byte{0xff});
  CHECK(serial_number(ones) == "urn:uuid:ffffffff-ffff-8fff-bfff-ffffffffffff");
}

TEST_CASE("provenance names every file of the bundle with the digest that the file has") {
  const Site site({wheel("demo")}, {item("programs/noise", std::string(20'000, 'n'))});
  site.write();
  const Json statement = Json::parse(site.text("tiny-1.provenance.json"));
  CHECK(statement["_type"] == "https://in-toto.io/Statement/v1");
  CHECK(site.made.manifest.payload.volumes.size() > 2);
  CHECK(statement["subject"].size() == 3 + site.made.manifest.payload.volumes.size());
  for (const Json& subject : statement["subject"]) {
    const std::string name = subject["name"];
    if (!name.ends_with(".manifest")) CHECK(subject["digest"]["sha256"] == digest(read_file(site.made.folder / name)));
  }
  const Json& resolved = statement["predicate"]["buildDefinition"]["resolvedDependencies"];
  CHECK(resolved.size() == 2);
  CHECK(resolved[1]["uri"] == "pkg:pypi/demo@1.0");
}

TEST_CASE("with its lock, provenance says where bytes came from, and reviews what was warned of; another is refused") {
  const Site site({wheel("demo"), wheel("made")});
  const bundle::Manifest& manifest = site.made.manifest;
  Lock lock{.name = manifest.name, .version = 1, .channel = manifest.channel, .created = manifest.created};
  lock.target = manifest.target;
  lock.glibc_floor = manifest.glibc_floor;
  lock.python = "3.11";
  lock.imports = {"demo"};
  lock.interpreter = {.description = "CPython", .version = "3.11.2", .sha256 = bundle::sha256({}), .size = 1};
  for (const char* name : {"demo", "made"})
    lock.wheels.push_back({.name = name, .version = "1.0", .file_name = std::string(name) + "-1.0-py3-none-any.whl"});
  lock.wheels[0].url = "https://example.invalid/demo.whl";
  lock.wheels[0].sha256 = manifest.entries[0].sha256;
  lock.wheels[1].sha256 = manifest.entries[1].sha256;
  lock.wheels[1].built_from = LockedBuild{.kind = SourceKind::Git,
                                          .url = "https://example.invalid/made.git",
                                          .commit = std::string(40, 'a'),
                                          .sha256 = bundle::sha256({}),
                                          .python = "3.11.2",
                                          .tools = "uv"};
  lock.warnings = {"`demo==1.0` is yanked (reason: \"<b>bad</b>\")"};
  write_file(site.dir / "own.toml", write_lock(lock, site.dir.path()));
  site.write("documents", "own.toml");
  for (const char* page : {"review.txt", "review.zh.txt"})
    CHECK(site.text(page).find(lock.warnings[0]) != std::string::npos);
  for (const char* page : {"review.html", "review.zh.html"})
    CHECK(site.text(page).find("is yanked (reason: &quot;&lt;b&gt;bad") != std::string::npos);
  const Json resolved =
      Json::parse(site.text("tiny-1.provenance.json"))["predicate"]["buildDefinition"]["resolvedDependencies"];
  CHECK(resolved[0]["uri"] == "https://example.invalid/demo.whl");
  CHECK(resolved[1]["annotations"]["built_from"]["commit"] == std::string(40, 'a'));

  lock.wheels[0].sha256 = bundle::sha256({});
  write_file(site.dir / "other.toml", write_lock(lock, site.dir.path()));
  CHECK_REFUSED(site.write("other", "other.toml"), Conflict, "not made from this lock");
  CHECK_FALSE(std::filesystem::exists(site.dir / "other"));
}

TEST_CASE("review and provenance say by the signed manifest which wheels were built outside of a sandbox") {
  TinyItem held = wheel_item(wheel("held")), loose = wheel_item(wheel("loose"));
  held.build = bundle::WheelBuild::Sandboxed;
  loose.build = bundle::WheelBuild::Unsandboxed;
  const Site site({wheel("demo")}, {held, loose});
  site.write();
  const Json resolved =
      Json::parse(site.text("tiny-1.provenance.json"))["predicate"]["buildDefinition"]["resolvedDependencies"];
  CHECK_FALSE(resolved[0].contains("annotations"));
  CHECK(resolved[1]["annotations"]["built_from"]["sandboxed"] == true);
  CHECK(resolved[2]["annotations"]["built_from"]["sandboxed"] == false);
  const std::string text = site.text("review.txt"), chinese = site.text("review.zh.txt");
  const auto line_of = [](const std::string& page, const std::string& words) {
    const std::size_t at = page.find(words);
    return at == page.npos ? std::string() : page.substr(at, page.find('\n', page.find("whl", at)) - at);
  };
  CHECK(line_of(text, "Built from source, in a sandbox").find("held-1.0") != std::string::npos);
  CHECK(line_of(text, "Built outside of a sandbox").find("loose-1.0") != std::string::npos);
  CHECK(line_of(chinese, "在沙箱外构建").find("loose-1.0") != std::string::npos);
}

TEST_CASE("licences are collected under plain names, and what is not there is said") {
  TinyWheel demo = wheel("demo",
                         "License: MIT\nLicense-File: ../../etc/passwd\nLicense-File: terms.html\n"
                         "License-File: sub/EULA\n");
  const std::string info = "demo-1.0.dist-info/";
  demo.files[info + "licenses/LICENSE"] = "text";
  demo.files[info + "licenses/sub/EULA"] = "eula";
  demo.files[info + "terms.html"] = "<script>";
  demo.files[info + "NOTICE.txt"] = "notice";
  demo.files[info + "licenses/not_listed"] = "other";
  demo.files["demo/LICENSE"] = "not in the dist-info";
  demo.files[info + "COPYING"] = std::string(kMaxLicenceFile + 1, 'x');
  const Site site({demo});
  site.write();
  const std::filesystem::path folder = site.dir / "documents/licences/demo-1.0";
  CHECK(read_file(folder / "LICENSE.txt") == "text");
  CHECK(read_file(folder / "sub_EULA.txt") == "eula");
  CHECK(read_file(folder / "terms.html.txt") == "<script>");
  CHECK(read_file(folder / "NOTICE.txt") == "notice");
  CHECK(std::distance(std::filesystem::directory_iterator(folder), {}) == 4);
  const std::string table = site.text("licences/licences.tsv");
  INFO(table);
  CHECK(table.find("demo\t1.0\tMIT\tdemo-1.0/") != table.npos);
  CHECK(table.find("COPYING: too large") != table.npos);
  CHECK(table.find("../../etc/passwd: not in the wheel") != table.npos);
}

TEST_CASE("a spreadsheet that opens the table of licences finds no formula and no further column") {
  const Site site({wheel("demo", "License: =cmd|' /C calc'!A0\tx\n")});
  site.write();
  CHECK(site.text("licences/licences.tsv").ends_with("\ndemo\t1.0\t'=cmd|' /C calc'!A0\\u0009x\t\t\n"));
}

TEST_CASE("text of a bundle stays text on the review pages, which run nothing and load nothing") {
  const Site site({wheel("demo",
                         "License: <script>alert(1)</script>\"'&\xe2\x80\xae"
                         "x\nx\n")},
                  {item("programs/<img src=x onerror=alert(1)>", "x")});
  site.write();
  for (const char* name : {"review.html", "review.zh.html"}) {
    const std::string html = site.text(name);
    INFO(html);
    CHECK(html.find("<script") == html.npos);
    CHECK(html.find("<img") == html.npos);
    CHECK(html.find("\xe2\x80\xae") == html.npos);
    CHECK(html.find("http://") == html.npos);
    CHECK(html.find("https://") == html.npos);
    CHECK(html.find("default-src 'none'") != html.npos);
    CHECK(html.find("&lt;script&gt;alert(1)&lt;/script&gt;&quot;&#39;&amp;\\u202ex") != html.npos);
  }
}

TEST_CASE("the review says what, how big, whose, which licence and which hash, in two languages") {
  const Site site({wheel("demo", "License: BSD-3\n"), wheel("bare")});
  site.write();
  for (const char* name : {"review.txt", "review.zh.txt", "review.html", "review.zh.html"}) {
    const std::string text = site.text(name);
    INFO(text);
    CHECK(text.find("tiny-1") != text.npos);
    CHECK(text.find("sha256:" + site.made.fingerprint().substr(7)) != text.npos);
    CHECK(text.find("BSD-3") != text.npos);
    CHECK(text.find(digest(read_file(site.made.volume(0)))) != text.npos);
    CHECK(text.find(site.made.manifest.entries[0].sha256.hex()) != text.npos);
    CHECK(text.find("ed25519") != text.npos);
    const bool chinese = std::string(name).find(".zh.") != std::string::npos;
    CHECK(text.find(chinese ? "许可证" : "Licence") != text.npos);
    CHECK(text.find(chinese ? "未声明" : "none stated") != text.npos);
    CHECK(text.find(chinese ? "未知：未给出 lock" : "not known: no lock was named") != text.npos);
  }
}

TEST_CASE("what runs whenever Python starts stands on the review page, by the digest that the manifest allows") {
  const std::string line = "import sys; sys.flags\n";
  Site site({wheel("demo")});
  TinyBundle tiny{.items = {wheel_item({.files = {{"demo.pth", line}, {"demo/__init__.py", ""}}})}};
  tiny.startup_files = {bundle::sha256(bundle::as_bytes(line))};
  site.write();
  CHECK(site.text("review.txt").find(digest(line)) == std::string::npos);
  site.made = make_bundle(site.dir / "runs/tiny-1", tiny);
  std::filesystem::remove_all(site.dir / "documents");
  site.write();
  for (const char* name : {"review.txt", "review.zh.txt", "review.html", "review.zh.html"}) {
    const std::string text = site.text(name);
    const bool chinese = std::string(name).find(".zh.") != std::string::npos;
    const std::size_t row = text.find(chinese ? "每次启动都会运行的文件" : "Files that run whenever Python starts");
    INFO(text);
    CHECK(row < text.find("sha256:" + digest(line)));
  }
}

TEST_CASE("the review page names each wheel with files in a package of another one, and the folder") {
  Site site({wheel("demo")});
  TinyBundle tiny{.items = {wheel_item({.files = {{"demo/__init__.py", ""}}}),
                            wheel_item({.name = "guest", .files = {{"demo/plugins/extra.py", "x"}}})}};
  tiny.items[1].shared = {"demo/plugins"};
  site.write();
  CHECK(site.text("review.txt").find("demo/plugins") == std::string::npos);
  site.made = make_bundle(site.dir / "runs/tiny-1", tiny);
  std::filesystem::remove_all(site.dir / "documents");
  site.write();
  for (const char* name : {"review.txt", "review.zh.txt", "review.html", "review.zh.html"}) {
    const std::string text = site.text(name);
    const bool chinese = std::string(name).find(".zh.") != std::string::npos;
    const std::size_t row =
        text.find(chinese ? "在其他软件包目录内安装文件的软件包" : "Packages with files in another one");
    INFO(text);
    CHECK(row < text.find("guest-1.0-py3-none-any.whl: demo/plugins"));
    CHECK(text.find("guest-1.0-py3-none-any.whl: demo/plugins") != std::string::npos);
  }
}

TEST_CASE("no documents are made of a bundle that does not hold, under another root, or over a folder that exists") {
  const Site site({wheel("demo")});
  site.write();
  CHECK_REFUSED(site.write(), Conflict, "exists already");
  bundle::Progress silent(nullptr);
  CHECK_REFUSED(
      write_documents({.bundle = site.made.folder, .fingerprint = {}, .lock = {}, .out = site.dir / "x"}, silent),
      Signature, "");
  std::string bytes = read_file(site.made.volume(0));
  bytes[bytes.size() / 2] ^= 1;
  write_file(site.made.volume(0), bytes);
  CHECK_REFUSED(site.write("broken"), Digest, "differs from what was signed");
  CHECK_FALSE(std::filesystem::exists(site.dir / "broken"));
  CHECK_FALSE(std::filesystem::exists(site.dir / ".broken.partial"));
}
