// SPDX-License-Identifier: Apache-2.0
// The one list of what goes into a bundle: every kind is in it, with where its bytes come from; and those bytes
// brought.
#include "packager/pack/contents.hpp"

#include <doctest/doctest.h>

#include "packager/pack/content_supply.hpp"
#include "packager/pack/create_space.hpp"
#include "tests/support/refusal.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/support/unreliable_server.hpp"

using namespace sealift;
using namespace sealift::packager;
using sealift::test::read_file;
using sealift::test::TempDir;
using sealift::test::UnreliableServer;
using sealift::test::write_file;
namespace fs = std::filesystem;

namespace {

bundle::Digest digest_of(const std::string& text) {
  return bundle::sha256(bundle::as_bytes(text));
}

// One of each kind.
Lock lock_of_everything() {
  Lock lock;
  lock.python = "3.11";
  lock.interpreter = {.version = "3.11.2", .sha256 = digest_of("python"), .size = 1000};
  lock.wheels = {
      {.file_name = "a-1-py3-none-any.whl", .url = "https://index.invalid/a", .sha256 = digest_of("a"), .size = 10},
      {.file_name = "b-1-py3-none-any.whl", .sha256 = digest_of("b"), .size = 20, .built_from = LockedBuild{}}};
  lock.programs = {{.source = "/opt/run", .sha256 = digest_of("run"), .size = 30, .into = "bin/run"}};
  lock.toolchain = {.c = true, .cxx = true};
  lock.sdk = {.version = "0.1.0", .sha256 = digest_of("sdk"), .size = 35};
  lock.models = {{.spec = {.hub = Hub::HfHub,
                           .endpoint = "https://hub.invalid",
                           .repo = "org/tiny",
                           .revision = "main",
                           .into = "models/tiny",
                           .layout = ModelLayout::Both},
                  .commit = std::string(40, 'c'),
                  .files = {{.path = "w.safetensors", .size = 40, .sha256 = digest_of("w")}}},
                 {.spec = {.data = true, .folder = "/data", .into = "data"},
                  .files = {{.path = "rows", .size = 50, .sha256 = digest_of("rows")}}}};
  lock.apt = {.index_size = 5,
              .index_sha256 = digest_of("index"),
              .debs = {{.file = "g.deb", .url = "https://apt.invalid/g.deb", .size = 60, .sha256 = digest_of("g")}}};
  lock.rpm = {
      .release = "9",
      .packages = {"g"},
      .unsigned_repositories = {},
      .index = {{.file = "repodata/repomd.xml", .size = 6, .sha256 = digest_of("repomd")}},
      .rpms = {
          {.file = "g-1-1.noarch.rpm", .url = "https://rpm.invalid/g.rpm", .size = 70, .sha256 = digest_of("rpm")}}};
  return lock;
}

}  // namespace

TEST_CASE("every kind of a lock is in the list, with its owner, its paths and where its bytes come from") {
  const std::vector<Content> contents = contents_of(lock_of_everything());
  std::vector<std::string> lines;
  for (const Content& content : contents)
    lines.push_back(content.owner + " | " + content.entry + " | " + content.into + " | " +
                    std::to_string(content.origin.index()));
  const std::string commit(40, 'c'), cache = "hub/models--org--tiny/";
  CHECK(lines ==
        std::vector<std::string>{"the interpreter | python/cpython-3.11.2.tar |  | 0",
                                 "a-1-py3-none-any.whl | wheels/a-1-py3-none-any.whl |  | 1",
                                 "b-1-py3-none-any.whl | wheels/b-1-py3-none-any.whl |  | 2",
                                 "the program bin/run | programs/bin/run | bin/run | 3",
                                 "the job's [toolchain] | programs/libexec/sealift/cc | libexec/sealift/cc | 4",
                                 "the job's [toolchain] | programs/libexec/sealift/c++ | libexec/sealift/c++ | 4",
                                 "the job's [toolchain] | programs/libexec/sealift/include/omp.h | "
                                 "libexec/sealift/include/omp.h | 4",
                                 "the job's [toolchain] | programs/libexec/sealift/openmp.cpp | "
                                 "libexec/sealift/openmp.cpp | 4",
                                 "the job's [toolchain] | programs/bin/openssl | bin/openssl | 4",
                                 "the C++ core ([sdk]) | sdk/sealift-0.1.0.tar |  | 0",
                                 "org/tiny | files/models/tiny/w.safetensors | models/tiny/w.safetensors | 1",
                                 "org/tiny | files/" + cache + "snapshots/" + commit + "/w.safetensors | " + cache +
                                     "snapshots/" + commit + "/w.safetensors | 1",
                                 "org/tiny | files/" + cache + "refs/main | " + cache + "refs/main | 4",
                                 "/data | files/data/rows | data/rows | 3",
                                 "the list of the job's repositories | catalogue/hubs.json | "
                                 "share/sealift/catalogue.json | 4",
                                 "the Debian packages | files/apt/Packages | apt/Packages | 0",
                                 "the Debian packages | files/apt/g.deb | apt/g.deb | 1",
                                 "the rpm packages | files/rpm/repodata/repomd.xml | rpm/repodata/repomd.xml | 0",
                                 "the rpm packages | files/rpm/g-1-1.noarch.rpm | rpm/g-1-1.noarch.rpm | 1"});
  std::set<std::string> urls;
  for (const Download& download : downloads_of(contents)) urls.insert(download.url);
  CHECK(urls == std::set<std::string>{"https://index.invalid/a", "https://apt.invalid/g.deb",
                                      "https://rpm.invalid/g.rpm",
                                      "https://hub.invalid/org/tiny/resolve/" + commit + "/w.safetensors"});
}

TEST_CASE("files that only the cache or this machine has are asked for before anything is fetched") {
  const TempDir dir;
  const Cache cache(dir / "cache");
  Lock lock = lock_of_everything();
  CHECK_REFUSED(require_inputs(contents_of(lock), cache), Missing, "the interpreter that was locked");
  write_file(cache.path(lock.interpreter.sha256), "python");
  CHECK_REFUSED(require_inputs(contents_of(lock), cache), Missing, "the C++ core that was locked");
  write_file(cache.path(lock.sdk->sha256), "sdk");
  CHECK_REFUSED(require_inputs(contents_of(lock), cache), Missing, "the index of the Debian packages");
  write_file(cache.path(lock.apt.index_sha256), "index");
  CHECK_REFUSED(require_inputs(contents_of(lock), cache), Missing, "repomd.xml of the rpm packages");
  write_file(cache.path(lock.rpm.index[0].sha256), "repomd");
  lock.programs[0].source = dir / "run";
  lock.models[1].spec.folder = dir.path();
  const bundle::Error error = test::refusal([&] { require_inputs(contents_of(lock), cache); });
  CHECK(error.code() == bundle::ErrorCode::Missing);
  CHECK(test::mentions(error, (dir / "run").string() + ": No such file"));
  CHECK(test::mentions(error, (dir / "rows").string() + ": No such file"));
  write_file(dir / "run", "run");
  write_file(dir / "rows", "rows");
  CHECK_REFUSED(require_inputs(contents_of(lock), cache), Missing, "rows: 4 bytes, not 50");
  lock.models[1].files[0].size = 4;
  require_inputs(contents_of(lock), cache);
}

TEST_CASE("what is missing is brought, what is cached is not read for it, and what is damaged is brought once more") {
  const TempDir dir;
  UnreliableServer server;
  server.put("/a", {.body = "a"});
  const Cache cache(dir / "cache");
  bundle::Progress progress(nullptr);
  const ContentSupply supply(cache, progress, {.jobs = 1, .attempts = 1}, {.python_version = "3.11.2"});
  const Content fetched{
      .name = "a", .size = 1, .sha256 = digest_of("a"), .origin = FromServer{.url = server.url("/a")}};
  const Content made{.name = "ref", .size = 3, .sha256 = digest_of("ref"), .origin = FromText{"ref"}};
  supply.bring({fetched, made});
  CHECK(read_file(file_of(fetched, cache)) == "a");
  CHECK(read_file(file_of(made, cache)) == "ref");
  CHECK_FALSE(supply.repair(fetched));
  write_file(file_of(fetched, cache), "b");
  write_file(file_of(made, cache), "def");
  supply.bring({fetched, made});
  CHECK(server.requests().size() == 1);
  CHECK(read_file(file_of(fetched, cache)) == "b");

  const Repair repair = [&](const Content& content) { return supply.repair(content); };
  int reads = 0;
  const auto read = [&](const Content& content) {
    return read_repaired(content, repair, [&] {
      ++reads;
      const std::string text = read_file(file_of(content, cache));
      if (digest_of(text) != content.sha256) throw bundle::Error(bundle::ErrorCode::Digest, {.what = "damaged"});
      return text;
    });
  };
  CHECK(read(fetched) == "a");
  CHECK(read(made) == "ref");
  CHECK(reads == 4);
  CHECK(server.requests().size() == 2);
}

TEST_CASE("an error about a file that is as it was locked stands, and nobody brings a file of this machine again") {
  const TempDir dir;
  const Cache cache(dir / "cache");
  bundle::Progress progress(nullptr);
  const ContentSupply supply(cache, progress, {}, {.python_version = "3.11.2"});
  const Repair repair = [&](const Content& content) { return supply.repair(content); };
  write_file(dir / "run", "other");
  write_file(cache.path(digest_of("w")), "w");
  const Content program{.name = "run", .sha256 = digest_of("run"), .origin = FromDisk{dir / "run"}};
  const Content wheel{.name = "w", .sha256 = digest_of("w"), .origin = FromServer{.url = "https://index.invalid/w"}};
  for (const Content& content : {program, wheel}) {
    int reads = 0;
    const auto read = [&] {
      ++reads;
      throw bundle::Error(bundle::ErrorCode::Format, {.what = "no wheel"});
    };
    CHECK_REFUSED(read_repaired(content, repair, read), Format, "no wheel");
    CHECK(reads == 1);
  }
}

TEST_CASE("equal files count once for the room that a bundle takes, and sizes that nobody has said count for nothing") {
  const TempDir dir;
  const Cache cache(dir / "cache");
  const auto content = [&](const std::string& bytes, std::uint64_t size) {
    return Content{.size = size, .sha256 = digest_of(bytes), .origin = FromDisk{}};
  };
  const std::uint64_t most = fs::space(dir.path()).available / 2 + 1;
  require_space({content("a", most), content("a", most), content("b", 0)}, cache, dir / "out/deep");
  CHECK_REFUSED(require_space({content("a", most), content("b", most)}, cache, dir / "out/deep"), Space,
                "for the bundle");
}
