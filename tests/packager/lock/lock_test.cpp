// SPDX-License-Identifier: Apache-2.0
// The lock as a file: what is written is what is read, and nothing else is accepted.
#include "packager/lock/lock.hpp"

#include <doctest/doctest.h>

#include "tests/support/refusal.hpp"
#include "tests/support/temp_dir.hpp"

using namespace sealift;
using namespace sealift::packager;
using sealift::test::TempDir;
using sealift::test::write_file;

namespace {

Lock sample(const std::filesystem::path& folder) {
  const auto digest = [](const char* text) { return bundle::sha256(bundle::as_bytes(text)); };
  Lock lock{.name = "demo", .version = 2, .channel = "stable", .created = "2026-01-02T03:04:05Z"};
  lock.payload_digest = bundle::DigestAlgorithm::Sm3;
  lock.target = {.arch = "x86_64", .glibc = {2, 36}};
  lock.system = folder / "arm";
  lock.glibc_floor = {2, 35};
  lock.python = "3.11";
  lock.imports = {"demo"};
  lock.warnings = {"`x==1` is yanked (reason: \"bad\")", "y 1.0 is of 2020-01-31"};
  lock.interpreter = {.description = "CPython 3.11.2",
                      .version = "3.11.2",
                      .sha256 = digest("i"),
                      .size = 10240,
                      .libraries = {"libz.so.1"}};
  lock.programs = {{.source = folder / "bin/it's \"quoted\"",
                    .sha256 = digest("p"),
                    .size = 5,
                    .into = "bin/run",
                    .executable = true,
                    .from_wheels = {"libdemo.so"}}};
  lock.wheels = {
      {.name = "a",
       .version = "1",
       .file_name = "a-1-py3-none-any.whl",
       .url = "https://example.invalid/a",
       .sha256 = digest("a"),
       .size = 7},
      {.name = "b",
       .version = "2",
       .file_name = "b-2-py3-none-any.whl",
       .url = "https://example.invalid/b",
       .sha256 = digest("b")},
      {.name = "c", .version = "3", .file_name = "c-3-py3-none-any.whl", .url = {}, .sha256 = digest("c"), .size = 9}};
  lock.wheels[2].built_from = LockedBuild{.kind = SourceKind::Git,
                                          .url = "https://example.invalid/c",
                                          .commit = std::string(40, 'c'),
                                          .subdirectory = "python",
                                          .sha256 = digest("source"),
                                          .requirements = {"setuptools==80.9.0 --hash=sha256:00"},
                                          .python = "3.11.2",
                                          .tools = "uv 1; cc 2",
                                          .sandboxed = false};
  lock.wheels[2].built_from->variables = {{"MAX_JOBS", "2"}, {"Z", "${BUILD}/z"}};
  lock.indexes = {.default_index = "https://example.invalid/simple",
                  .others = {"ours=https://ours.invalid/simple"},
                  .strategy = "first-index",
                  .in_files = {"--extra-index-url https://more.invalid/simple"}};
  lock.variables = {{"NLTK_DATA", "${PREFIX}/it's \"data\""}, {"WANDB_MODE", "offline"}};
  return lock;
}

std::string replaced(std::string text, const std::string& old_text, const std::string& new_text) {
  REQUIRE(text.find(old_text) != text.npos);
  return text.replace(text.find(old_text), old_text.size(), new_text);
}

}  // namespace

TEST_CASE("a lock reads back as it was written") {
  const TempDir dir;
  const Lock lock = sample(dir.path());
  write_file(dir / "demo.lock.toml", write_lock(lock, dir.path()));
  CHECK(read_lock(dir / "demo.lock.toml") == lock);
}

TEST_CASE("a lock says which glibc is carried, if one is") {
  const TempDir dir;
  Lock lock = sample(dir.path());
  CHECK(write_lock(lock, dir.path()).find("[runtime]") == std::string::npos);
  lock.runtime = {.glibc = {2, 36}, .kernel = "3.2.0"};
  write_file(dir / "demo.lock.toml", write_lock(lock, dir.path()));
  CHECK(read_lock(dir / "demo.lock.toml") == lock);
  write_file(dir / "bad.lock.toml", replaced(write_lock(lock, dir.path()), "kernel =", "kernels ="));
  CHECK_REFUSED(read_lock(dir / "bad.lock.toml"), Format, "kernel");
}

TEST_CASE("a lock pins the C++ core and says that a compiler is carried, if they are") {
  const TempDir dir;
  Lock lock = sample(dir.path());
  CHECK(write_lock(lock, dir.path()).find("[sdk]") == std::string::npos);
  CHECK(write_lock(lock, dir.path()).find("[toolchain]") == std::string::npos);
  lock.toolchain = {.c = true, .cxx = true};
  lock.sdk = {.version = "0.1.0", .sha256 = bundle::sha256(bundle::as_bytes("sdk")), .size = 12};
  write_file(dir / "demo.lock.toml", write_lock(lock, dir.path()));
  CHECK(read_lock(dir / "demo.lock.toml") == lock);
  write_file(dir / "bad.lock.toml", replaced(write_lock(lock, dir.path()), "\"0.1.0\"", "\"../0\""));
  CHECK_REFUSED(read_lock(dir / "bad.lock.toml"), Format, "version");
}

TEST_CASE("a lock names programs relative to itself, so that a checkout can be moved") {
  const TempDir dir;
  CHECK(write_lock(sample(dir.path()), dir.path()).find(dir.path().string()) == std::string::npos);
}

TEST_CASE("a lock that was edited into something else is refused with line and key") {
  const TempDir dir;
  const std::string good = write_lock(sample(dir.path()), dir.path());
  const auto read = [&](const std::string& text) {
    write_file(dir / "x.lock.toml", text);
    return read_lock(dir / "x.lock.toml");
  };
  CHECK_REFUSED(read(replaced(good, "format = 1", "format = 2")), CannotCheck, "of a format");
  CHECK_REFUSED(read(replaced(good, "channel =", "chanel =")), Format, "channel");
  CHECK_REFUSED(read(replaced(good, "\"sm3\"", "\"md5\"")), Format, "sha256 or sm3");
  CHECK_REFUSED(read(replaced(good, "WANDB_MODE =", "LD_PRELOAD =")), Format, "the loader's");
  CHECK_REFUSED(read(replaced(good, "channel =", "x = 1\nchannel =")), Format, "key 'x'");
  CHECK_REFUSED(read(replaced(good, "glibc_floor = \"2.35\"", "glibc_floor = \"?\"")), Format, "glibc");
  CHECK_REFUSED(read(replaced(good, "into = \"bin/run\"", "into = \"../run\"")), Format, "not safe");
  CHECK_REFUSED(read(replaced(good, "file = \"a-1-py3", "file = \"x/a-1-py3")), Format, "file name of a wheel");
  CHECK_REFUSED(read(replaced(good, "sha256 = \"", "sha256 = \"z")), Format, "64 lower-case");
  CHECK_REFUSED(read(replaced(good, "kind = \"git\"", "kind = \"svn\"")), Format, "archive, git or folder");
  CHECK_REFUSED(read(replaced(good, "\"setuptools==80.9.0 --hash", "\"--index-url=https://evil.invalid --hash")),
                Format, "is not pinned");
  CHECK_REFUSED(read(replaced(good, " --hash=sha256:00", "")), Format, "is not pinned");
  CHECK_REFUSED(read(replaced(good, "subdirectory = \"python\"", "subdirectory = \"../x\"")), Format, "not safe");
  CHECK_REFUSED(read(replaced(good, "url = \"https://example.invalid/b\"\n", "")), Format, "url or built_from");
  CHECK_REFUSED(read(replaced(good, "MAX_JOBS =", "LD_PRELOAD =")), Format, "the loader's");
  CHECK_REFUSED(read(replaced(good, "[wheel.built_from]", "url = \"https://x.invalid\"\n[wheel.built_from]")), Format,
                "url or built_from");
}

TEST_CASE("a job file in the place of its lock is told apart, with the command that makes the lock") {
  const TempDir dir;
  write_file(dir / "job.toml", "name = \"a\"\nversion = 1\n[target]\nprofile = \"debian-12\"\n[python]\n");
  CHECK_REFUSED(read_lock(dir / "job.toml"), Usage, "this is a job file");
  CHECK_REFUSED(read_lock(dir / "job.toml"), Usage, "sealift-pack lock '");
}
