// SPDX-License-Identifier: Apache-2.0
// From what a job asks for to files that are pinned: folders, hubs, patterns, copies in other formats.
#include "packager/models/lock_model.hpp"

#include <doctest/doctest.h>

#include "packager/files/known_chunks.hpp"
#include "packager/host/process.hpp"
#include "packager/models/model_files.hpp"
#include "packager/tables/model_toml.hpp"
#include "packager/tables/toml_file.hpp"
#include "tests/support/refusal.hpp"
#include "tests/support/tiny_hub.hpp"

using namespace sealift;
using namespace sealift::packager;
using test::read_file;
using test::TempDir;
using test::tiny_model;
using test::TinyHub;
using test::write_file;
namespace fs = std::filesystem;

namespace {

struct HubDesk {
  TempDir dir;
  TinyHub hub;
  Cache cache{dir / "cache"};
  JobModel job;

  HubDesk() { job.spec = {.folder = dir / "tiny", .into = "models/tiny"}; }
  void from_hub() {
    job.spec = {.hub = Hub::HfHub, .endpoint = hub.endpoint(), .repo = "org/tiny", .revision = "main"};
    job.spec.into = "models/tiny";
  }
  LockedModel lock(std::FILE* stream = nullptr) const {
    bundle::Progress progress(stream);
    std::vector<LockedModel> models =
        list_models({job}, cache, progress, {.jobs = 2, .attempts = 2, .first_pause = std::chrono::milliseconds(1)});
    hash_models(models, cache, progress);
    return models[0];
  }
};

std::vector<std::string> paths_of(const LockedModel& model) {
  std::vector<std::string> paths;
  for (const LockedFile& file : model.files) paths.push_back(file.path);
  return paths;
}

}  // namespace

TEST_CASE("a folder's files are pinned, without what clients left there, and through links to files") {
  HubDesk desk;
  test::write_model(desk.dir / "tiny", tiny_model());
  write_file(desk.dir / "tiny/.git/HEAD", "ref");
  write_file(desk.dir / "tiny/.cache/huggingface/x.lock", "");
  write_file(desk.dir / "tiny/sub/abc", "hello");
  write_file(desk.dir / "tiny/sub/deep.txt", "deep");
  fs::create_symlink("sub/abc", desk.dir / "tiny/linked.txt");
  const LockedModel model = desk.lock();
  CHECK(paths_of(model) == std::vector<std::string>{"config.json", "linked.txt", "model.safetensors", "sub/abc",
                                                    "sub/deep.txt", "tokenizer.json", "tokenizer_config.json"});
  CHECK(model.files[1].size == 5);
  CHECK(model.files[1].sha256 == bundle::sha256(bundle::as_bytes("hello")));
  CHECK(model.files[2].sha256 == bundle::sha256(bundle::as_bytes(tiny_model().at("model.safetensors"))));
}

TEST_CASE("a folder's large files are packed without another pass: their chunks are known since they were locked") {
  HubDesk desk;
  test::write_model(desk.dir / "tiny", tiny_model());
  write_file(desk.dir / "tiny/notes.txt", std::string(5'000'000, 'n'));
  const LockedModel model = desk.lock();
  for (const LockedFile& file : model.files)
    CHECK(KnownChunks(desk.cache).read(file.sha256, file.size, bundle::Payload{}));
}

TEST_CASE("files that cannot be carried are refused by their names") {
  HubDesk desk;
  test::write_model(desk.dir / "tiny", tiny_model());
  SUBCASE("a link to a folder") {
    fs::create_directory_symlink(desk.dir.path(), desk.dir / "tiny/up");
    CHECK_REFUSED(desk.lock(), Usage, "a link to a folder");
  }
  SUBCASE("a link to nothing") {
    fs::create_symlink("nowhere", desk.dir / "tiny/gone");
    CHECK_REFUSED(desk.lock(), Usage, "a link to nothing");
  }
  SUBCASE("a link to a file outside of it") {
    write_file(desk.dir / "secret", "root:$6$...");
    fs::create_symlink("../secret", desk.dir / "tiny/notes.txt");
    CHECK_REFUSED(desk.lock(), Usage, "notes.txt");
    CHECK_REFUSED(desk.lock(), Usage, "a link leads out of a model's folder");
  }
  SUBCASE("a link that leads out by way of another link") {
    write_file(desk.dir / "secret", "root:$6$...");
    fs::create_symlink("../secret", desk.dir / "tiny/a");
    fs::create_symlink("a", desk.dir / "tiny/b");
    CHECK_REFUSED(desk.lock(), Usage, "a link leads out of a model's folder");
  }
  SUBCASE("a link beside a folder whose name only begins alike") {
    write_file(desk.dir / "tiny-secrets/key", "k");
    fs::create_symlink("../tiny-secrets/key", desk.dir / "tiny/key");
    CHECK_REFUSED(desk.lock(), Usage, "a link leads out of a model's folder");
  }
  SUBCASE("no file at all") {
    desk.job.include = {"*.gguf"};
    CHECK_REFUSED(desk.lock(), Format, "it has no files");
  }
}

TEST_CASE("a snapshot of a hub's cache is packed through its own links, and through no other repository's") {
  HubDesk desk;
  const fs::path own = desk.dir / "hub/models--org--tiny", other = desk.dir / "hub/models--org--private";
  test::write_model(own / "snapshots/abc", tiny_model());
  write_file(own / "blobs/1", "hello");
  write_file(other / "blobs/2", "weights of somebody else");
  desk.job.spec.folder = own / "snapshots/abc";
  fs::create_symlink("../../blobs/1", desk.job.spec.folder / "linked.txt");
  CHECK(desk.lock().files[1].sha256 == bundle::sha256(bundle::as_bytes("hello")));
  fs::create_symlink(other / "blobs/2", desk.job.spec.folder / "more.txt");
  CHECK_REFUSED(desk.lock(), Usage, "more.txt");
}

TEST_CASE("patterns choose files, and what they chose is not thinned out further") {
  HubDesk desk;
  test::ModelFiles files = tiny_model();
  files["pytorch_model.bin"] = "weights";
  files["notes.md"] = "notes";
  test::write_model(desk.dir / "tiny", files);
  desk.job.exclude = {"*.md"};
  std::FILE* stream = std::fopen((desk.dir / "said").c_str(), "w");
  CHECK(paths_of(desk.lock(stream)) ==
        std::vector<std::string>{"config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"});
  std::fclose(stream);
  const std::string said = read_file(desk.dir / "said");
  CHECK(said.find("the safetensors files hold the same, so 7 B are left out: pytorch_model.bin") != std::string::npos);
  desk.job.include = {"*.json", "*.bin"};
  desk.job.spec.allow_pickle = true;
  CHECK(paths_of(desk.lock()) ==
        std::vector<std::string>{"config.json", "pytorch_model.bin", "tokenizer.json", "tokenizer_config.json"});
}

TEST_CASE("a hub's model is pinned without fetching what the hub knows the digest of") {
  HubDesk desk;
  desk.from_hub();
  desk.hub.publish("org/tiny", tiny_model());
  const LockedModel model = desk.lock();
  CHECK(model.commit == desk.hub.commit);
  for (const LockedFile& file : model.files) {
    const std::string bytes = tiny_model().at(file.path);
    CHECK(file.size == bytes.size());
    CHECK(file.sha256 == bundle::sha256(bundle::as_bytes(bytes)));
    CHECK(desk.cache.contains(file.sha256) == (file.path != "model.safetensors"));
  }
  CHECK(desk.hub.storage.requests().empty());
}

TEST_CASE("a hub that sends another file than it listed is not believed") {
  HubDesk desk;
  desk.from_hub();
  desk.hub.publish("org/tiny", tiny_model());
  desk.hub.put_file("org/tiny", "config.json", "{}");
  CHECK_REFUSED(desk.lock(), Digest, "another file than it listed");
}

TEST_CASE("a name in a folder that no bundle can have is to be changed there, since nobody else sent it") {
  HubDesk desk;
  write_file(desk.dir / "tiny/a\nb.md", "#");
  CHECK_REFUSED(desk.lock(), Format, "rename them there");
  desk.job.spec.data = true;
  write_file(desk.dir / "tiny/\xca\xfd\xbe\xdd.txt", "GBK");
  write_file(desk.dir / "tiny/a\\b.txt", "of Windows");
  const bundle::Error error = test::refusal([&] { desk.lock(); });
  INFO(error.what());
  for (const char* told : {"3 name(s)", "\\xca\\xfd\\xbe\\xdd.txt", "a\\b.txt", "-f gbk -t utf8"})
    CHECK_MESSAGE(test::mentions(error, told), told);
}

TEST_CASE("names that macOS decomposed are carried composed, from the files as the folder spells them") {
  HubDesk desk;
  test::write_model(desk.dir / "tiny", tiny_model());
  const std::string decomposed = "Re\xcc\x81sume\xcc\x81.md", composed = "R\xc3\xa9sum\xc3\xa9.md";
  write_file(desk.dir / "tiny" / decomposed, "# of a tiny model");
  const LockedModel model = desk.lock();
  const auto file =
      std::find_if(model.files.begin(), model.files.end(), [&](const LockedFile& one) { return one.path == composed; });
  REQUIRE(file != model.files.end());
  CHECK(file->sha256 == bundle::sha256(bundle::as_bytes(std::string_view("# of a tiny model"))));
  CHECK(local_file(model, *file, desk.cache) == desk.dir / "tiny" / decomposed);

  const std::string text = write_locked_models({model}, desk.dir.path());
  CHECK(text.find("spelled = \"" + decomposed + "\"") != std::string::npos);
  write_file(desk.dir / "m.toml", text);
  const TomlValue document = read_toml(desk.dir / "m.toml", bundle::ErrorCode::Format);
  TomlTable table(document, desk.dir / "m.toml", bundle::ErrorCode::Format);
  CHECK(read_locked_models(table, desk.dir.path()) == std::vector{model});

  write_file(desk.dir / "tiny" / composed, "# another one");
  CHECK_REFUSED(desk.lock(), Usage, "two files of a folder have the same name");
}

TEST_CASE("a lock's other spelling of a path is that path in another form of Unicode, and no other file") {
  const test::TempDir dir;
  write_file(dir / "m.toml",
             "[[model]]\nsource = \"m\"\ninto = \"models/m\"\nfiles = [{ path = \"a\", size = 1, sha256 = \"" +
                 std::string(64, '0') + "\", spelled = \"../../etc/shadow\" }]\n");
  const TomlValue document = read_toml(dir / "m.toml", bundle::ErrorCode::Format);
  TomlTable table(document, dir / "m.toml", bundle::ErrorCode::Format);
  CHECK_REFUSED(read_locked_models(table, dir.path()), Format, "not the path in another form of Unicode");
}

TEST_CASE("data whose names a bundle cannot have is carried whole by the command that the refusal prints") {
  HubDesk desk;
  desk.job.spec.data = true;
  write_file(desk.dir / "tiny/\xca\xfd\xbe\xdd.txt", "GBK");
  SUBCASE("names of another encoding") {}
  SUBCASE("names that differ in case alone") {
    fs::remove_all(desk.dir / "tiny");
    write_file(desk.dir / "tiny/a.txt", "1");
    write_file(desk.dir / "tiny/A.txt", "2");
  }
  const bundle::Error error = test::refusal([&] { desk.lock(); });
  INFO(error.what());
  CHECK_FALSE(test::mentions(error, "exclude"));
  const std::string next = error.facts().next;
  const std::size_t begin = next.find("mkdir "), end = next.find(", then source = \"");
  REQUIRE(begin < end);
  run_checked({"sh", "-c", next.substr(begin, end - begin)});
  desk.job.spec.folder = next.substr(end + 17, next.rfind('"') - end - 17);
  const LockedModel model = desk.lock();
  REQUIRE(model.files.size() == 1);
  CHECK(model.files[0].path == "tiny.tar");
}

TEST_CASE("folders without a file are named, and layout tree carries them") {
  HubDesk desk;
  desk.job.spec.data = true;
  write_file(desk.dir / "tiny/train/cat/1.jpg", "x");
  fs::create_directories(desk.dir / "tiny/train/dog");
  std::FILE* stream = std::fopen((desk.dir / "said").c_str(), "w");
  bundle::Progress progress(stream);
  list_models({desk.job}, desk.cache, progress);
  std::fclose(stream);
  CHECK(test::read_file(desk.dir / "said").find("1 folder(s) without a file are not carried") != std::string::npos);
  desk.job.spec.layout = ModelLayout::Tree;
  const LockedModel model = desk.lock();
  REQUIRE(model.tree);
  CHECK(model.empty_folders.empty());
  const std::string members = run_checked({"tar", "-tf", desk.cache.path(model.tree->sha256).string()});
  CHECK(members.find("train/dog/\n") != std::string::npos);
}

TEST_CASE("what speaks against a model is said before its large files are fetched or hashed") {
  HubDesk desk;
  desk.from_hub();
  test::ModelFiles files = tiny_model();
  files["sub/model.pt"] = std::string(100, 'x');
  files.erase("tokenizer.json");
  desk.hub.large.insert("sub/model.pt");
  desk.hub.publish("org/tiny", files);
  CHECK_REFUSED(desk.lock(), Format, "sub/model.pt: files that end in .pt are pickles");
  files.erase("config.json");
  desk.hub.publish("org/tiny", files);
  CHECK_REFUSED(desk.lock(), Format, "config.json is missing");
  CHECK(desk.hub.storage.requests().empty());
}

TEST_CASE("a locked model reads back as it was written, and no token is in it") {
  HubDesk desk;
  desk.from_hub();
  desk.hub.publish("org/tiny", tiny_model());
  desk.job.spec.layout = ModelLayout::Both;
  ::setenv("HF_TOKEN", "hf_secret", 1);
  LockedModel hub_model = desk.lock();
  test::write_model(desk.dir / "tiny", tiny_model());
  desk.job.spec = {.folder = desk.dir / "tiny", .into = "models/it's \"quoted\"", .allow_pickle = true};
  const std::vector<LockedModel> models = {hub_model, desk.lock()};
  ::unsetenv("HF_TOKEN");
  const std::string text = write_locked_models(models, desk.dir.path());
  CHECK(text.find("hf_secret") == std::string::npos);
  CHECK(text.find(desk.dir.path().string()) == std::string::npos);  // relative, so that a checkout can be moved
  const TomlValue document = parse_toml(text, "lock", bundle::ErrorCode::Format);
  TomlTable table(document, "lock", bundle::ErrorCode::Format);
  CHECK(read_locked_models(table, desk.dir.path()) == models);
  const auto read = [&](const std::string& from, const std::string& to) {
    std::string changed = text;
    REQUIRE(changed.find(from) != changed.npos);
    const TomlValue value =
        parse_toml(changed.replace(changed.find(from), from.size(), to), "lock", bundle::ErrorCode::Format);
    TomlTable edited(value, "lock", bundle::ErrorCode::Format);
    return read_locked_models(edited, desk.dir.path());
  };
  CHECK_REFUSED(read("path = \"config.json\"", "path = \"../config.json\""), Format, "not safe");
  CHECK_REFUSED(read("into = \"models/tiny\"", "into = \"/models\""), Format, "absolute");
  CHECK_REFUSED(read("sha256 = \"", "sha256 = \"x"), Format, "64 lower-case");
  CHECK_REFUSED(read(desk.hub.commit, "abc"), Format, "not a commit");
  CHECK_REFUSED(read("repo = \"org/tiny\"", "repo = \"../tiny\""), Format, "name of a repository");
}
