// SPDX-License-Identifier: Apache-2.0
// What a build sees and leaves: nothing of the packer's, no network.
#include "packager/builds/built_wheels.hpp"

#include <doctest/doctest.h>

#include <unistd.h>

#include <cstdlib>
#include <optional>
#include <string>

#include "packager/host/process.hpp"
#include "packager/lock/lock.hpp"
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

namespace {

// The packer's home, until the end of a test.
class OtherHome {
 public:
  explicit OtherHome(const fs::path& home) {
    if (const char* before = std::getenv("HOME")) before_ = before;
    ::setenv("HOME", home.c_str(), 1);
  }
  OtherHome(const OtherHome&) = delete;
  OtherHome& operator=(const OtherHome&) = delete;
  ~OtherHome() { before_ ? ::setenv("HOME", before_->c_str(), 1) : ::unsetenv("HOME"); }

 private:
  std::optional<std::string> before_;
};

}  // namespace

TEST_CASE("a build sees no key, variable, cache, home, process or network of the packer's, and writes none of it") {
  if (no_tools()) return;
  Yard yard;
  const fs::path key = yard.dir / "keys/release.key", wheel = yard.cache.root() / "sha256/00";
  write_file(key, "secret");
  write_file(wheel, "a wheel of somebody else");
  for (const char* name : {"SEALIFT_PASSPHRASE", "HF_TOKEN", "UV_INDEX_MINE_PASSWORD"}) ::setenv(name, "secret", 1);
  const OtherHome without_rust(yard.dir / "packer");
  const std::string outside =
      "OUTSIDE = [" + (("\"" + key.string()) + "\", \"" + wheel.string() + "\", \"/root\", \"/home\", \"/run\", ") +
      "\"/etc/shadow\", \"/sys\", \"" + (yard.dir / "job.toml").string() +
      "\"]\nPACKER = " + std::to_string(::getpid()) + "\n";
  write_file(yard.dir / "job.toml", "the job");
  const auto source = [&](const char* code) { return yard.sdist(outside + code); };
  const BuiltWheels built = yard.build({source(R"(
import glob, os
assert not [name for name in os.environ if "secret" in os.environ[name] or name.startswith(("SEALIFT", "UV_"))]
assert os.environ["SOURCE_DATE_EPOCH"] == "315532800"
assert os.environ["HOME"].endswith("/home") and "/builds/" in os.environ["HOME"]
assert [path for path in OUTSIDE if os.path.exists(path)] == []
place = os.path.dirname(os.environ["HOME"])
assert os.listdir(os.path.dirname(place)) == [os.path.basename(place)]  # of the cache, its own folder
assert sorted(os.listdir(place)) == ["environment", "home", "source", "tmp", "wheel"]
for path in (os.environ["VIRTUAL_ENV"] + "/x", "/usr/x", "/usr/lib/x", "/etc/x-passwd"):
    try:
        open(path, "w").close()
    except OSError:
        continue
    assert path.startswith("/etc/"), path  # a folder of its own that is gone with it
assert all(int(pid) < 100 for pid in os.listdir("/proc") if pid.isdigit()), "other processes"
try:
    os.setuid(0) or os.chroot("/")
    raise SystemExit("a capability is left")
except PermissionError:
    pass
with open("/proc/net/dev", "rb") as devices:
    FILES["demo/net.txt"] = b"".join(line.split(b":")[0].strip() for line in devices.readlines()[2:])
)")});
  for (const char* name : {"SEALIFT_PASSPHRASE", "HF_TOKEN", "UV_INDEX_MINE_PASSWORD"}) ::unsetenv(name);
  REQUIRE(built.wheels.size() == 1);
  CHECK(built.wheels[0].built_from->sandboxed);
  CHECK(read_file(yard.cache.path(built.wheels[0].sha256)).find("demo/net.txtlo") != std::string::npos);
  CHECK(read_file(key) == "secret");
  CHECK(read_file(wheel) == "a wheel of somebody else");
}

TEST_CASE("a build finds the cargo that rustup has put into a home, and nothing else of that home") {
  if (no_tools()) return;
  Yard yard;
  const fs::path home = yard.dir / "packer";
  write_file(home / ".cargo/bin/cargo", "#!/bin/sh\ncat \"$RUSTUP_HOME/toolchains/it\"\n");
  fs::permissions(home / ".cargo/bin/cargo", fs::perms(0755));
  write_file(home / ".cargo/credentials.toml", "secret");
  write_file(home / ".rustup/toolchains/it", "cargo of a home");
  write_file(home / "notes", "secret");
  const OtherHome of_packer(home);
  const BuiltWheels built = yard.build({yard.sdist("HOME = '" + home.string() + "'\n" + R"(
import os, subprocess
FILES["demo/cargo.txt"] = subprocess.run(["cargo"], check=True, capture_output=True).stdout
assert sorted(os.listdir(HOME)) == [".cargo", ".rustup"] and os.listdir(HOME + "/.cargo") == ["bin"]
try:
    open(HOME + "/.cargo/bin/cargo", "a").close()
    raise SystemExit("it can be written")
except OSError:
    pass
)")});
  REQUIRE(built.wheels.size() == 1);
  CHECK(read_file(yard.cache.path(built.wheels[0].sha256)).find("cargo of a home") != std::string::npos);
}

TEST_CASE("where the sandbox would leave a network nothing is built, but for who says --unsandboxed-builds") {
  if (no_tools() || find_program("patchelf").empty()) return;
  const Yard yard;
  const fs::path marker = yard.dir / "was-run", bwrap = yard.dir / "bin/bwrap";
  write_file(bwrap,
             "#!/bin/sh\nwhile [ \"$1\" != -- ]; do shift; done\nshift\ncase $1 in\n"
             "cat) printf '    lo: 0\\n  eth0: 0\\n' ;;\n*) exec \"$@\" ;;\nesac\n");  // one that holds nothing
  fs::permissions(bwrap, fs::perms(0755));
  yard.folder("mine", "open('" + marker.string() + "', 'w').close()\n");
  fs::create_directory(yard.dir / "simple");
  write_file(yard.dir / "job.toml",
             "name = \"demo\"\nversion = 1\n[target]\narch = \"x86_64\"\nglibc = \"2.36\"\n[python]\nversion = "
             "\"3.11\"\ninterpreter = \"" +
                 kPython.string() + "\"\nrequirements = [\"-e ./mine\"]\ndefault_index = \"file://" +
                 (yard.dir / "simple").string() + "\"\n");
  std::vector<std::string> lock = {SEALIFT_PACK,           "lock",    yard.dir / "job.toml",     "--uv",
                                   yard.tools.uv.string(), "--cache", yard.cache.root().string()};
  const std::map<std::string, std::string> environment = {
      {"PATH", (yard.dir / "bin").string() + ":/usr/local/bin:/usr/bin:/bin"}, {"HOME", yard.dir.path().string()}};
  const ProcessResult held = run_in(lock, environment);
  INFO(held.err);
  CHECK(held.exit_code != 0);
  CHECK(held.err.find("network devices: lo, eth0") != std::string::npos);
  CHECK(held.err.find("--unsandboxed-builds") != std::string::npos);
  CHECK_FALSE(fs::exists(marker));
  CHECK_FALSE(fs::exists(yard.dir / "demo.lock.toml"));
  lock.push_back("--unsandboxed-builds");
  const ProcessResult asked = run_in(lock, environment);
  CHECK_MESSAGE(asked.exit_code == 0, asked.err);
  CHECK(fs::exists(marker));
  const Lock made = read_lock(yard.dir / "demo.lock.toml");
  REQUIRE(made.wheels.size() == 1);
  CHECK_FALSE(made.wheels[0].built_from->sandboxed);
}

TEST_CASE("outside of a sandbox a build runs only where that was asked for, and its record says so") {
  if (no_tools()) return;
  Yard yard;
  yard.tools.isolation = Isolation::None;
  const LockedWheel wheel = yard.build({yard.sdist()}).wheels.at(0);
  CHECK_FALSE(wheel.built_from->sandboxed);
}

TEST_CASE("a source whose links lead out of it is refused before anything behind them is read") {
  if (no_tools()) return;
  Yard yard;
  write_file(yard.dir / "secret/pyproject.toml", "secret = not toml\n");
  const auto archive_of = [&](const std::string& name) {
    const std::string file = (yard.dir / (name + ".tar.gz")).string();
    run_checked({"tar", "-C", (yard.dir / name).string(), "-czf", file, "."});
    SourcePackage package{.name = "demo", .version = "1.0"};
    package.url = "file://" + file;
    package.sha256 = digest_of_file(file);
    return package;
  };
  fs::create_directories(yard.dir / "a/demo-1.0");
  fs::create_symlink(yard.dir / "secret/pyproject.toml", yard.dir / "a/demo-1.0/pyproject.toml");
  const bundle::Error file = test::refusal([&] { yard.build({archive_of("a")}); });
  CHECK(test::mentions(file, "not a plain file"));
  CHECK_FALSE(test::mentions(file, "secret ="));
  fs::create_directories(yard.dir / "b");
  fs::create_directory_symlink(yard.dir / "secret", yard.dir / "b/demo-1.0");
  CHECK_REFUSED(yard.build({archive_of("b")}), Platform, "the project's folder is a link out of its source");
}

TEST_CASE("what a build hands over is a file of its own, and no link to somebody else's") {
  if (no_tools()) return;
  Yard yard;
  write_file(yard.dir / "key", "secret-1.0\n");
  // As the build ends, what it wrote is swapped.
  const auto swapping = [&](const char* name) {
    return "import atexit, os\ndef swap():\n    path = os.path.join(os.path.dirname(os.environ['HOME']), 'wheel', '" +
           std::string(name) + "')\n    if os.path.exists(path):\n        os.remove(path)\n        os.symlink('" +
           (yard.dir / "key").string() + "', path)\natexit.register(swap)\n";
  };
  const bundle::Error link = test::refusal([&] { yard.build({yard.sdist(swapping("requires.txt"))}); });
  CHECK(test::mentions(link, "not a plain file"));
  CHECK_FALSE(test::mentions(link, "secret-1.0"));
  CHECK_REFUSED(yard.build({yard.folder("link", swapping("demo-1.0-py3-none-any.whl"))}), Platform,
                "the build did not make one wheel");
}

TEST_CASE("what a build requires is a package, and no option, file or folder of the packer's") {
  if (no_tools()) return;
  Yard yard;
  for (const char* wanted : {"--index-url=https://evil.invalid/simple", "-r /etc/shadow", "-e /root", "./source",
                             "x @ file:///root/x-1.0-py3-none-any.whl", "file:///root", "keys/x",
                             "x-1.0-py3-none-any.whl", "x\\n--extra-index-url=http://e"}) {
    INFO(wanted);
    CHECK_REFUSED(yard.build({yard.folder("hook", "BUILD_REQUIRES = [\"" + std::string(wanted) + "\"]\n")}), Platform,
                  "what the build requires");
    SourcePackage table = yard.folder("table");
    write_file(table.folder / "pyproject.toml", "[build-system]\nrequires = [\"" + std::string(wanted) +
                                                    "\"]\nbuild-backend = \"backend\"\n"
                                                    "backend-path = [\".\"]\n");
    CHECK_REFUSED(yard.build({table}), Platform, "is not the requirement of a package");
  }
}

TEST_CASE("startup files of what a build requires run in the sandbox only, not when uv asks about its environment") {
  if (no_tools()) return;
  Yard yard;
  const fs::path marker = yard.dir / "was-run";
  const std::string wheel =
      test::make_wheel({.name = "evil", .files = {{"evil.pth", "import os; open('" + marker.string() + "', 'w')\n"}}});
  const fs::path file = yard.dir / "simple/evil/evil-1.0-py3-none-any.whl";
  write_file(file, wheel);
  write_file(yard.dir / "simple/evil/index.html",
             "<a href=\"evil-1.0-py3-none-any.whl#sha256=" + digest_of_file(file).hex() +
                 "\">evil-1.0-py3-none-any.whl</a>\n");
  yard.tools.index_words = {"--default-index", "file://" + (yard.dir / "simple").string()};
  SourcePackage source = yard.folder("needs", "BUILD_REQUIRES = ['evil==1.0']\n");
  std::string project = kProject;
  project.replace(project.find("requires = []"), 13, "requires = ['evil']");
  write_file(source.folder / "pyproject.toml", project);
  CHECK(yard.build({source}).wheels.at(0).built_from->requirements.size() == 1);
  CHECK_FALSE(fs::exists(marker));
}
