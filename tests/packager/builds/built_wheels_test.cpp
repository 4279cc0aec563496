// SPDX-License-Identifier: Apache-2.0
// Sources built by the real uv and this machine's Python, without any index: the build backend lies in the source.
#include "packager/builds/built_wheels.hpp"

#include <doctest/doctest.h>

#include <cstdlib>

#include "packager/lock_job.hpp"
#include "tests/packager/builds/yard.hpp"
#include "tests/support/refusal.hpp"
#include "tests/support/temp_dir.hpp"

using namespace sealift;
using namespace sealift::packager;
using sealift::test::kProject;
using sealift::test::kPython;
using sealift::test::no_tools;
using sealift::test::read_file;
using sealift::test::write_file;
using sealift::test::Yard;
namespace fs = std::filesystem;

TEST_CASE("an sdist becomes a wheel in the cache, with a record of how it was built") {
  if (no_tools()) return;
  Yard yard;
  const BuiltWheels built = yard.build({yard.sdist()});
  REQUIRE(built.wheels.size() == 1);
  const LockedWheel& wheel = built.wheels[0];
  CHECK(wheel.file_name == "demo-1.0-py3-none-any.whl");
  CHECK(wheel.version == "1.0");
  CHECK(wheel.url.empty());
  CHECK(digest_of_file(yard.cache.path(wheel.sha256)) == wheel.sha256);
  REQUIRE(wheel.built_from);
  CHECK(wheel.built_from->sha256 == digest_of_file(yard.dir / "demo-1.0.tar.gz"));
  CHECK(wheel.built_from->python == Yard::version());
  CHECK(wheel.built_from->tools.find("uv ") == 0);
  CHECK(yard.cache.contains(wheel.built_from->sha256));
  for (const fs::directory_entry& left : fs::directory_iterator(yard.cache.root() / "builds"))
    CHECK(left.path().extension() == ".lock");
}

TEST_CASE("a built wheel that the cache lost is built again from the same source, to the same bytes") {
  if (no_tools()) return;
  Yard yard;
  const LockedWheel wheel = yard.build({yard.sdist()}).wheels.at(0);
  fs::remove(yard.cache.path(wheel.sha256));
  yard.rebuild(wheel);
  CHECK(digest_of_file(yard.cache.path(wheel.sha256)) == wheel.sha256);
  write_file(yard.cache.path(wheel.sha256), "damaged");
  yard.rebuild(wheel);
  CHECK(digest_of_file(yard.cache.path(wheel.sha256)) == wheel.sha256);

  SUBCASE("with the source gone from its server too") {
    fs::remove(yard.cache.path(wheel.sha256));
    fs::remove(yard.dir / "demo-1.0.tar.gz");
    yard.rebuild(wheel);
    CHECK(yard.cache.contains(wheel.sha256));
  }
  SUBCASE("but not with another Python than it was locked with") {
    fs::remove(yard.cache.path(wheel.sha256));
    LockedWheel other = wheel;
    other.built_from->python = "3.11.99";
    CHECK_REFUSED(yard.rebuild(other), Missing, "CPython 3.11.99");
  }
}

TEST_CASE("a wheel that comes out differently when it is built again is one clear refusal") {
  if (no_tools()) return;
  Yard yard;
  const LockedWheel wheel =
      yard.build({yard.sdist("import os\nFILES['demo/when.txt'] = os.urandom(8)\n")}).wheels.at(0);
  fs::remove(yard.cache.path(wheel.sha256));
  CHECK_REFUSED(yard.rebuild(wheel), Digest, "demo-1.0-py3-none-any.whl (locked with uv ");
  CHECK_FALSE(yard.cache.contains(wheel.sha256));
}

TEST_CASE("what was built before is taken from the cache, until something that decides it is another") {
  if (no_tools()) return;
  Yard yard;
  const SourcePackage source = yard.sdist("import os\nFILES['demo/when.txt'] = os.urandom(8)\n");
  const LockedWheel first = yard.build({source}).wheels.at(0);
  CHECK(yard.build({source}).wheels.at(0) == first);
  SUBCASE("a variable of the job") {
    yard.tools.extras["demo"].variables["MODE"] = "fast";
    const LockedWheel other = yard.build({source}).wheels.at(0);
    CHECK(other.sha256 != first.sha256);
    CHECK(other.built_from->variables.at("MODE") == "fast");
    CHECK(yard.build({source}).wheels.at(0) == other);
  }
  SUBCASE("a constraint") {
    yard.tools.build_constraints = {"setuptools<80"};
    CHECK(yard.build({source}).wheels.at(0).sha256 != first.sha256);
  }
  SUBCASE("the wheel, which is damaged") {
    write_file(yard.cache.path(first.sha256), "damaged");
    CHECK(yard.build({source}).wheels.at(0).sha256 != first.sha256);
  }
  SUBCASE("the note of it, which is damaged") {
    for (const fs::directory_entry& note : fs::directory_iterator(yard.cache.root() / "built"))
      write_file(note.path(), "file = \"../x\"\nsha256 = \"" + first.sha256.hex() + "\"\nrequirements = []\n");
    CHECK(yard.build({source}).wheels.at(0).sha256 != first.sha256);
  }
}

TEST_CASE("a build that makes something else than was asked for is refused") {
  if (no_tools()) return;
  Yard yard;
  CHECK_REFUSED(yard.build({yard.sdist("VERSION = '2.0'\n")}), Platform, "a wheel of another package");
  CHECK_REFUSED(yard.build({yard.folder("name", "NAME = 'other'\n")}), Platform, "other-1.0-py3-none-any.whl");
  CHECK_REFUSED(yard.build({yard.folder("tag", "TAG = 'cp39-cp39-win32'\n")}), Platform, "does not run on the target");
  CHECK_REFUSED(yard.build({yard.folder("zip", "FILES['demo/../../evil.py'] = b''\n")}), Platform, "evil.py");
}

TEST_CASE("the glibc that compiled files need is read from them, since their tag does not tell") {
  if (no_tools() || find_program("cc").empty()) return;
  Yard yard;
  write_file(yard.dir / "new.c", "#include <unistd.h>\nint answer(void) { return (int)_Fork(); }\n");  // of glibc 2.34
  run_checked({"cc", "-shared", "-fPIC", "-o", (yard.dir / "new.so").string(), (yard.dir / "new.c").string()});
  const SourcePackage source =
      yard.folder("native", "TAG = 'cp311-cp311-linux_x86_64'\nFILES['demo/new.so'] = open('new.so', 'rb').read()\n");
  fs::copy_file(yard.dir / "new.so", source.folder / "new.so");
  const BuiltWheels built = yard.build({source});
  CHECK(built.wheels.at(0).file_name == "demo-1.0-cp311-cp311-linux_x86_64.whl");
  CHECK(built.needs.at(0).glibc == bundle::GlibcVersion{2, 34});
  yard.target.glibc = {2, 28};
  CHECK_REFUSED(yard.build({source}), Platform, "needs a newer glibc");
}

TEST_CASE("a job with an sdist of an index and a folder beside it is locked and says so") {
  if (no_tools() || find_program("patchelf").empty()) return;
  Yard yard;
  const SourcePackage sdist = yard.sdist();
  write_file(yard.dir / "simple/demo/index.html",
             "<a href=\"" + sdist.url + "#sha256=" + sdist.sha256->hex() + "\">demo-1.0.tar.gz</a>\n");
  yard.folder("mine", "NAME = 'mine'\n");
  write_file(yard.dir / "mine/pyproject.toml",
             "[project]\nname = \"mine\"\ndynamic = [\"version\", \"dependencies\"]\n" +
                 std::string(kProject).substr(std::string(kProject).find("[build")));
  // Only the wheel tells what it needs, and building it far enough to know is running its code.
  const fs::path marker = yard.dir / "was-run";
  const std::string needs =
      "REQUIRES = [\"demo; sys_platform == 'linux'\", \"nowhere; sys_platform == 'win32'\"]\n"
      "try:\n    open('" +
      marker.string() + "', 'w').close()\nexcept OSError:\n    pass\n";
  write_file(yard.dir / "mine/source.py", "NAME, FILES = 'mine', {'demo/__init__.py': b'other = 1'}\n" + needs);
  const auto job = [&](const std::string& more) {
    write_file(yard.dir / "job.toml",
               "name = \"demo\"\nversion = 1\n[target]\narch = \"x86_64\"\nglibc = \"2.36\"\n"
               "[python]\nversion = \"3.11\"\ninterpreter = \"" +
                   kPython.string() + "\"\nrequirements = [\"-e ./mine\"]\ndefault_index = \"file://" +
                   (yard.dir / "simple").string() + "\"\n" + more);
    return lock_job({.job = yard.dir / "job.toml",
                     .out = yard.dir / "out/demo.lock.toml",
                     .cache = yard.cache.root(),
                     .uv = yard.tools.uv},
                    yard.progress);
  };
  CHECK_REFUSED(job(""), Conflict, "demo/__init__.py: demo-1.0-py3-none-any.whl and mine-1.0");  // both are here
  write_file(yard.dir / "mine/source.py", "NAME, FILES = 'mine', {'mine.py': b''}\n" + needs);
  const LockResult result = job("");
  REQUIRE(result.lock.wheels.size() == 2);
  CHECK(result.lock.wheels[0].file_name == "demo-1.0-py3-none-any.whl");
  CHECK(result.lock.wheels[0].built_from->kind == SourceKind::Archive);
  CHECK(result.lock.wheels[1].file_name == "mine-1.0-py3-none-any.whl");
  CHECK(result.lock.wheels[1].built_from->kind == SourceKind::Folder);
  CHECK(read_lock(result.file) == result.lock);
  CHECK(result.lock.indexes.default_index == "file://" + (yard.dir / "simple").string());
  CHECK_FALSE(fs::exists(marker));
  CHECK(read_file(yard.dir / "out/pylock.demo.toml").find("path = \"../mine\"") != std::string::npos);
  CHECK_REFUSED(job("build = false\n"), Platform, "build = false");

  // What lies beside the job, or in a variable, names another index; nobody asked for it.
  write_file(yard.dir / "uv.toml", "[[index]]\nurl = \"file:///nowhere/simple\"\ndefault = true\n");
  ::setenv("UV_INDEX", "file:///nowhere/simple", 1);
  CHECK(job("").lock.wheels == result.lock.wheels);
  ::unsetenv("UV_INDEX");
}
