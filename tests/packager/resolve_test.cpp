// SPDX-License-Identifier: Apache-2.0
// What is asked of uv and what is made of its answer; uv itself is played by a script, but for one test.
#include "packager/resolve.hpp"

#include <doctest/doctest.h>

#include <cstdlib>

#include "packager/process.hpp"
#include "tests/support/refusal.hpp"
#include "tests/support/temp_dir.hpp"

using namespace sealift;
using namespace sealift::packager;
using sealift::test::read_file;
using sealift::test::TempDir;
using sealift::test::write_file;

namespace {

const bundle::Target kTarget{.arch = "x86_64", .glibc = {2, 36}};
const std::string kDigest(64, 'a');

std::string wheel(const std::string& file) {
  return "{ url = \"https://example.invalid/" + file + "\", hashes = { sha256 = \"" + kDigest + "\" } }";
}
std::string package(const std::string& name, const std::string& wheels) {
  return "[[packages]]\nname = \"" + name + "\"\nversion = \"1.0\"\n" + wheels + "\n";
}
std::string pylock(const std::string& packages) {
  return "lock-version = \"1.0\"\ncreated-by = \"uv\"\n" + packages;
}
std::vector<LockedWheel> choose(const std::string& packages) {
  return choose_wheels(pylock(packages), "/evidence", "3.11", kTarget);
}

void write_script(const std::filesystem::path& path, const std::string& text) {
  write_file(path, "#!/bin/sh\n" + text);
  std::filesystem::permissions(path, std::filesystem::perms(0755));
}

Job small_job() {
  Job job{.file = "job.toml", .name = "demo", .version = 1, .target = kTarget, .python = "3.11"};
  job.requirements = {"demo"};
  return job;
}

}  // namespace

TEST_CASE("the best of several wheels is locked, with name, url and digest") {
  const auto wheels =
      choose(package("Demo_Pkg", "wheels = [" + wheel("demo_pkg-1.0-py3-none-any.whl") + ", " +
                                     wheel("demo_pkg-1.0-cp311-cp311-manylinux_2_17_x86_64.whl") + ", " +
                                     wheel("demo_pkg-1.0-cp311-cp311-manylinux_2_34_x86_64.whl") + ", " +
                                     wheel("demo_pkg-1.0-cp311-cp311-manylinux_2_39_x86_64.whl") + "]"));
  REQUIRE(wheels.size() == 1);
  CHECK(wheels[0].name == "demo-pkg");
  CHECK(wheels[0].file_name == "demo_pkg-1.0-cp311-cp311-manylinux_2_34_x86_64.whl");
  CHECK(wheels[0].url == "https://example.invalid/demo_pkg-1.0-cp311-cp311-manylinux_2_34_x86_64.whl");
  CHECK(wheels[0].sha256.hex() == kDigest);
}

TEST_CASE("wheel names are read from urls with escapes and fragments, sizes where they are told") {
  const auto wheels = choose(package(
      "torch",
      "wheels = [{ url = \"https://example.invalid/torch-2.11.0%2Bcpu-cp311-cp311-linux_x86_64.whl#frag\", size = "
      "77, hashes = { sha256 = \"" +
          kDigest + "\" } }]"));
  REQUIRE(wheels.size() == 1);
  CHECK(wheels[0].file_name == "torch-2.11.0+cpu-cp311-cp311-linux_x86_64.whl");
  CHECK(wheels[0].size == 77);
}

TEST_CASE("a wheel given by path is fetched from there") {
  const auto wheels = choose(package("demo",
                                     "wheels = [{ path = \"../my wheels/demo-1.0-py3-none-any.whl\", hashes = { "
                                     "sha256 = \"" +
                                         kDigest + "\" } }]"));
  REQUIRE(wheels.size() == 1);
  CHECK(wheels[0].url == "file:///my%20wheels/demo-1.0-py3-none-any.whl");
  CHECK(wheels[0].file_name == "demo-1.0-py3-none-any.whl");
}

TEST_CASE("packages without any wheel are refused in one message that lists all of them") {
  const std::string sdist =
      "sdist = { url = \"https://example.invalid/x.tar.gz\", hashes = { sha256 = \"" + kDigest + "\" } }";
  const std::string packages = package("oss2", sdist) +
                               package("good", "wheels = [" + wheel("good-1.0-py3-none-any.whl") + "]") +
                               package("crcmod", sdist);
  CHECK_REFUSED(choose(packages), Platform, "oss2 1.0, crcmod 1.0");
}

TEST_CASE("packages whose wheels do not fit the target are refused by name") {
  CHECK_REFUSED(choose(package("demo", "wheels = [" + wheel("demo-1.0-cp311-cp311-win_amd64.whl") + "]")), Platform,
                "demo 1.0");
}

TEST_CASE("a pylock that this program cannot rely on is refused") {
  CHECK_REFUSED(choose_wheels("lock-version = \"2.0\"\n", "/", "3.11", kTarget), CannotCheck, "2.0");
  const std::string one = package("demo", "wheels = [" + wheel("demo-1.0-py3-none-any.whl") + "]");
  CHECK_REFUSED(choose(one + one), Conflict, "demo");
  CHECK_REFUSED(
      choose(package("demo",
                     "wheels = [{ url = \"https://example.invalid/demo-1.0-py3-none-any.whl\", hashes = { md5 "
                     "= \"00\" } }]")),
      Format, "sha256");
}

TEST_CASE("uv is asked for the target, with wheels only") {
  const TempDir dir;
  write_script(dir / "uv", "echo \"$@\" > " + (dir / "asked").string() +
                               "\nwhile [ \"$1\" != -o ]; do shift; done\necho answer > \"$2\"\n");
  Job job = small_job();
  CHECK(resolve(job, dir / "uv", "/python") == "answer\n");
  const std::string asked = read_file(dir / "asked");
  CHECK(asked.find("--python-platform x86_64-manylinux_2_36 --python-version 3.11") != asked.npos);
  CHECK(asked.find("--no-build") != asked.npos);

  SUBCASE("a level that uv does not know becomes the nearest older one") {
    job.target.glibc = {2, 30};
    resolve(job, dir / "uv", "/python");
    CHECK(read_file(dir / "asked").find("x86_64-manylinux_2_28 ") != std::string::npos);
    job.target.glibc = {2, 41};
    resolve(job, dir / "uv", "/python");
    CHECK(read_file(dir / "asked").find("x86_64-manylinux_2_40 ") != std::string::npos);
  }
}

TEST_CASE("every package without a wheel is listed, though uv names one at a time") {
  const TempDir dir;
  // Complains about the first of two names that is not among the excluded ones.
  write_script(dir / "uv", R"(
excludes=/dev/null
while [ $# -gt 0 ]; do
  case "$1" in --excludes) excludes=$2; shift;; -o) out=$2; shift;; esac
  shift
done
for name in oss2 crcmod; do
  if ! grep -qx $name $excludes; then
    echo "hint: Wheels are required for \`$name\` because building from source is disabled" >&2
    exit 1
  fi
done
echo 'lock-version = "1.0"' > $out
)");
  CHECK_REFUSED(resolve(small_job(), dir / "uv", "/python"), Platform, "oss2, crcmod");
}

TEST_CASE("uv's own words are shown when it finds no solution") {
  const TempDir dir;
  write_script(dir / "uv", "echo 'no version of demo' >&2; exit 1\n");
  CHECK_REFUSED(resolve(small_job(), dir / "uv", "/python"), Network, "no version of demo");
}

TEST_CASE("uv is named, or found, or missed with advice") {
  CHECK_REFUSED(find_uv("/no/such/uv"), Missing, "--uv");
}

TEST_CASE("network: the real uv resolves a small package for an older target") {
  if (std::getenv("SEALIFT_TEST_NETWORK") == nullptr) return;  // set by the test that is labelled `network`
  const std::filesystem::path uv =
      std::getenv("SEALIFT_UV") != nullptr ? std::getenv("SEALIFT_UV") : find_program("uv");
  const std::filesystem::path python = find_program("python3");
  REQUIRE_MESSAGE(std::filesystem::exists(uv), "needs uv: cmake/prerequisites.sh, or SEALIFT_UV");
  REQUIRE(!python.empty());
  Job job = small_job();
  job.target.glibc = {2, 28};
  job.requirements = {"markupsafe==3.0.2"};
  const auto wheels = choose_wheels(resolve(job, uv, python), "/", "3.11", job.target);
  REQUIRE(wheels.size() == 1);
  CHECK(wheels[0].name == "markupsafe");
  CHECK(wheels[0].file_name.find("cp311-cp311-manylinux") != std::string::npos);
}

TEST_CASE("a folder of PATH that cannot be looked into does not end the search") {
  const std::string before = std::getenv("PATH");
  // Longer than any name may be: looking there fails for every user, root too.
  ::setenv("PATH", ("/" + std::string(300, 'x') + ":" + before).c_str(), 1);
  const std::filesystem::path shell = find_program("sh");
  ::setenv("PATH", before.c_str(), 1);
  CHECK(shell.filename() == "sh");
}
