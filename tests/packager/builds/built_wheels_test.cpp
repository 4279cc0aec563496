// SPDX-License-Identifier: Apache-2.0
// Sources built by the real uv and this machine's Python, without any index: the build backend lies in the source.
// Above 600 lines because all cases make their sources and jobs with the same helpers, which nobody else needs.
#include "packager/builds/built_wheels.hpp"

#include <doctest/doctest.h>

#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "packager/builds/build_remedy.hpp"
#include "packager/builds/build_step.hpp"
#include "packager/builds/source_tree.hpp"
#include "packager/host/process.hpp"
#include "packager/host/url.hpp"
#include "packager/lock_job.hpp"
#include "packager/resolve/resolve.hpp"
#include "sealift/bundle/wheel/wheel.hpp"
#include "tests/support/refusal.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/support/tiny_wheel.hpp"

using namespace sealift;
using namespace sealift::packager;
using sealift::test::read_file;
using sealift::test::TempDir;
using sealift::test::write_file;
namespace fs = std::filesystem;

namespace {

const fs::path kPython = "/usr/bin/python3.11";

fs::path uv_program() {
  const char* named = std::getenv("SEALIFT_UV");
  return named != nullptr ? named : SEALIFT_UV_BESIDE;
}

bool no_tools() {
  if (fs::exists(kPython) && fs::exists(uv_program())) return false;
  MESSAGE("left out: needs ", kPython.string(), " and uv (cmake/prerequisites.sh, or SEALIFT_UV)");
  return true;
}

// A build backend of thirty lines. What the wheel holds, tests write into source.py as a dictionary FILES.
constexpr const char* kBackend = R"(
import base64, hashlib, os, zipfile
NAME, VERSION, TAG, FILES = "demo", "1.0", "py3-none-any", {"demo/__init__.py": b"ANSWER = 42\n"}
REQUIRES, BUILD_REQUIRES = [], []
if os.path.exists("source.py"):
    exec(open("source.py").read())
def prepare_metadata_for_build_wheel(folder, settings=None):
    info = "%s-%s.dist-info" % (NAME, VERSION)
    os.makedirs(os.path.join(folder, info))
    with open(os.path.join(folder, info, "METADATA"), "w") as file:
        file.write("Metadata-Version: 2.1\nName: %s\nVersion: %s\n" % (NAME, VERSION))
    return info
def get_requires_for_build_wheel(settings=None):
    return BUILD_REQUIRES
def build_wheel(folder, settings=None, metadata=None):
    info = "%s-%s.dist-info/" % (NAME, VERSION)
    files = dict(FILES)
    files[info + "METADATA"] = ("Metadata-Version: 2.1\nName: %s\nVersion: %s\n" % (NAME, VERSION) + "".join(
        "Requires-Dist: %s\n" % line for line in REQUIRES)).encode()
    files[info + "WHEEL"] = b"Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\nTag: %s\n" % TAG.encode()
    record = ""
    name = "%s-%s-%s.whl" % (NAME, VERSION, TAG)
    with zipfile.ZipFile(os.path.join(folder, name), "w") as zip:
        for path, data in sorted(files.items()):
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            record += "%s,sha256=%s,%d\n" % (path, digest, len(data))
            zip.writestr(zipfile.ZipInfo(path), data)
        zip.writestr(zipfile.ZipInfo(info + "RECORD"), record + info + "RECORD,,\n")
    return name
)";
constexpr const char* kProject =
    "[project]\nname = \"demo\"\nversion = \"1.0\"\n[build-system]\nrequires = []\nbuild-backend = \"backend\"\n"
    "backend-path = [\".\"]\n";

struct Yard {
  TempDir dir;
  Cache cache{dir / "cache"};
  bundle::Progress progress{nullptr};
  bundle::Target target{.arch = "x86_64", .glibc = {2, 36}};
  BuildTools tools{
      .uv = uv_program(), .python = kPython, .python_version = version(), .build_constraints = {}, .index_words = {}};

  static std::string version() {
    const std::string said = run_checked({kPython.string(), "-c", "import platform; print(platform.python_version())"});
    return said.substr(0, said.size() - 1);
  }
  // A project in a folder; `source` is Python that changes what its backend does.
  SourcePackage folder(const std::string& name, const std::string& source = {}) const {
    write_file(dir / (name + "/pyproject.toml"), kProject);
    write_file(dir / (name + "/backend.py"), kBackend);
    if (!source.empty()) write_file(dir / (name + "/source.py"), source);
    SourcePackage package{.name = "demo"};
    package.kind = SourceKind::Folder;
    package.folder = dir / name;
    return package;
  }
  // The same as an sdist that a server would have.
  SourcePackage sdist(const std::string& source = {}) const {
    folder("demo-1.0", source);
    const std::string file = (dir / "demo-1.0.tar.gz").string();
    run_checked({"tar", "-C", dir.path().string(), "-czf", file, "demo-1.0"});
    SourcePackage package{.name = "demo", .version = "1.0"};
    package.url = "file://" + file;
    package.sha256 = digest_of_file(file);
    return package;
  }
  BuiltWheels build(const std::vector<SourcePackage>& sources, const std::vector<StartupRule>& startup_files = {}) {
    const auto needs = [] { return std::map<std::string, std::string>{{"demo", "app, tool"}}; };
    return build_sources(sources, tools, target, cache, progress, needs, startup_files);
  }
  // A package of an index of its own, which the build of demo gets.
  void give(const std::string& name, std::map<std::string, std::string> files, const std::string& version = "1.0") {
    const std::string folder = "index/" + name + "/";
    std::string module = name;
    std::replace(module.begin(), module.end(), '-', '_');
    const test::TinyWheel wheel{.name = module, .version = version, .files = std::move(files)};
    write_file(dir / (folder + wheel.file_name()), test::make_wheel(wheel));
    std::string page = fs::exists(dir / (folder + "index.html")) ? read_file(dir / (folder + "index.html")) : "";
    write_file(dir / (folder + "index.html"),
               page + "<a href=\"" + wheel.file_name() + "\">" + wheel.file_name() + "</a>");
    tools.index_words = {"--default-index", "file://" + (dir / "index").string()};
    tools.extras["demo"].requirements.push_back(name);
  }
  std::string text_of(const LockedWheel& wheel, const std::string& path) const {
    bundle::FileSource bytes(cache.path(wheel.sha256));
    bundle::Wheel opened(bytes, wheel.file_name);
    std::string text;
    for (const bundle::WheelFile& file : opened.files())
      if (file.path == path) opened.extract(file, [&](bundle::ByteView piece) { text += bundle::as_text(piece); });
    return text;
  }
  void rebuild(const LockedWheel& wheel) {
    rebuild_missing({wheel}, [&] { return tools; }, cache, progress, {});
  }
};

}  // namespace

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

TEST_CASE("a build sees no key, variable, cache, home, process or network of the packer's, and writes none of it") {
  if (no_tools()) return;
  Yard yard;
  const fs::path key = yard.dir / "keys/release.key", wheel = yard.cache.root() / "sha256/00";
  write_file(key, "secret");
  write_file(wheel, "a wheel of somebody else");
  for (const char* name : {"SEALIFT_PASSPHRASE", "HF_TOKEN", "UV_INDEX_MINE_PASSWORD"}) ::setenv(name, "secret", 1);
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

TEST_CASE("folders and git commits are built from a tar that stays in the cache") {
  if (no_tools()) return;
  Yard yard;
  SourcePackage source = yard.folder("mine");
  write_file(source.folder / "venv/pyvenv.cfg", "");
  write_file(source.folder / "venv/large", "x");
  SUBCASE("a folder") {}
  SUBCASE("a commit") {
    const auto git = [&](std::vector<std::string> words) {
      words.insert(words.begin(),
                   {"git", "-C", source.folder.string(), "-c", "user.name=t", "-c", "user.email=t@t.invalid"});
      return run_checked(words);
    };
    git({"init", "--quiet"});
    git({"add", "pyproject.toml", "backend.py"});
    git({"commit", "--quiet", "-m", "one"});
    source.kind = SourceKind::Git;
    source.url = "file://" + source.folder.string();
    source.commit = git({"rev-parse", "HEAD"}).substr(0, 40);
    source.version = "1.0";
  }
  const LockedWheel wheel = yard.build({source}).wheels.at(0);
  CHECK(wheel.version == "1.0");
  CHECK(wheel.built_from->kind == source.kind);
  CHECK(run_checked({"tar", "-tf", yard.cache.path(wheel.built_from->sha256).string()}) ==
        "backend.py\npyproject.toml\n");
  CHECK(store_source(source, yard.cache, yard.dir.path()) == wheel.built_from->sha256);
  fs::remove_all(source.folder);
  fs::remove(yard.cache.path(wheel.sha256));
  yard.rebuild(wheel);
  CHECK(yard.cache.contains(wheel.sha256));
  fs::remove(yard.cache.path(wheel.sha256));
  fs::remove(yard.cache.path(wheel.built_from->sha256));
  CHECK_REFUSED(yard.rebuild(wheel), Missing, "got:      demo");
}

TEST_CASE("a commit whose version only its tags tell is built with it, and sees no address of its repository") {
  if (no_tools()) return;
  Yard yard;
  SourcePackage source = yard.folder("mine", R"(
import os, subprocess
VERSION = os.environ.get("SETUPTOOLS_SCM_PRETEND_VERSION")
if VERSION is None:
    VERSION = subprocess.check_output(["git", "describe", "--tags"], text=True).strip()[1:]
    assert "url" not in open(".git/config").read() and not os.path.exists(".git/logs")
)");
  const auto git = [&](std::vector<std::string> words) {
    words.insert(words.begin(),
                 {"git", "-C", source.folder.string(), "-c", "user.name=t", "-c", "user.email=t@t.invalid"});
    return run_checked(words);
  };
  git({"init", "--quiet"});
  git({"add", "."});
  git({"commit", "--quiet", "-m", "one"});
  git({"tag", "v3.2"});
  source.kind = SourceKind::Git;
  source.url = "file://" + source.folder.string();
  source.commit = git({"rev-parse", "HEAD"}).substr(0, 40);
  const LockedWheel wheel = yard.build({source}).wheels.at(0);
  CHECK(wheel.version == "3.2");
  fs::remove(yard.cache.path(wheel.sha256));
  yard.rebuild(wheel);
  CHECK(yard.cache.contains(wheel.sha256));
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

TEST_CASE("a build gets the packages and variables that the job gives it, and NVIDIA's compiler where they bring it") {
  if (no_tools()) return;
  Yard yard;
  const SourcePackage source = yard.sdist(
      "import os, tool\nFILES['demo/said.txt'] = '|'.join([tool.WORD, os.environ['MODE'], "
      "os.environ['HERE'], os.environ['CUDA_HOME'], os.environ['PATH']]).encode()\n");
  CHECK_REFUSED(yard.build({source}), Platform, "[python.extra_build_dependencies]\n            demo = [\"tool\"]");
  const test::TinyWheel tool{.name = "tool",
                             .files = {{"tool.py", "WORD = 'made'\n"}, {"nvidia/cu13/bin/nvcc", "#!/bin/sh\n"}}};
  write_file(yard.dir / ("index/tool/" + tool.file_name()), test::make_wheel(tool));
  write_file(yard.dir / "index/tool/index.html", "<a href=\"" + tool.file_name() + "\">" + tool.file_name() + "</a>");
  yard.tools.index_words = {"--default-index", "file://" + (yard.dir / "index").string()};
  yard.tools.extras["demo"] = {.requirements = {"tool"}, .variables = {{"MODE", "fast"}, {"HERE", "${BUILD}/tool.py"}}};
  const LockedWheel wheel = yard.build({source}).wheels.at(0);
  REQUIRE(wheel.built_from->requirements.size() == 1);
  CHECK(wheel.built_from->requirements[0].starts_with("tool==1.0 --hash=sha256:"));
  bundle::FileSource bytes(yard.cache.path(wheel.sha256));
  bundle::Wheel opened(bytes, wheel.file_name);
  std::string said;
  for (const bundle::WheelFile& file : opened.files())
    if (file.path == "demo/said.txt")
      opened.extract(file, [&](bundle::ByteView piece) { said += bundle::as_text(piece); });
  INFO(said);
  CHECK(said.starts_with("made|fast|" + yard.cache.root().string()));
  CHECK(said.find("/site-packages/tool.py|") != said.npos);
  CHECK(said.find("/site-packages/nvidia/cu13|") != said.npos);
  CHECK(said.find("/site-packages/nvidia/cu13/bin:") != said.npos);
  fs::remove(yard.cache.path(wheel.sha256));
  yard.rebuild(wheel);  // with the same variables, from the lock
  CHECK(yard.cache.contains(wheel.sha256));
}

TEST_CASE("a build that looks for a library of NVIDIA's toolkit by its plain name finds it, in lib and in lib64") {
  if (no_tools()) return;
  Yard yard;
  const SourcePackage source = yard.sdist(
      "import os\nhome = os.environ['CUDA_HOME']\nFILES['demo/said.txt'] = "
      "'|'.join(open(home + '/' + name).read() for name in ('lib/libcudart.so', 'lib64/libcudart.so')).encode()\n");
  yard.give("tool", {{"nvidia/cu13/bin/nvcc", "#!/bin/sh\n"}, {"nvidia/cu13/lib/libcudart.so.13", "cudart"}});
  const LockedWheel wheel = yard.build({source}).wheels.at(0);
  CHECK(yard.text_of(wheel, "demo/said.txt") == "cudart|cudart");
}

TEST_CASE("a build with a compiler of NVIDIA's that is newer than its assembler is refused before it is fetched") {
  if (no_tools()) return;
  Yard yard;
  const SourcePackage source = yard.sdist();
  yard.give("nvidia-cuda-nvcc", {{"nvidia/cu13/bin/nvcc", "#!/bin/sh\n"}}, "13.0.88");
  yard.give("nvidia-nvvm", {{"nvidia/cu13/nvvm/bin/cicc", "#!/bin/sh\n"}}, "13.5.37");
  CHECK_REFUSED(yard.build({source}), Platform, "\"nvidia-nvvm==13.0.*\"");
  yard.give("nvidia-nvvm", {{"nvidia/cu13/nvvm/bin/cicc", "#!/bin/sh\n"}}, "13.0.9");
  yard.tools.extras["demo"].requirements = {"nvidia-cuda-nvcc", "nvidia-nvvm==13.0.*"};
  CHECK(yard.build({source}).wheels.size() == 1);
}

TEST_CASE("what a compiler said is shown, however long the traceback is behind it") {
  std::string log = "cc x.c\nx.c:1:2: error: 'y' undeclared\nptxas x.ptx, line 9; fatal   : Unsupported .version 9.5\n";
  for (int i = 0; i < 40; ++i) log += "  File \"setuptools.py\", line " + std::to_string(i) + "\n";
  log += "RuntimeError: Error compiling objects for extension\n";
  const std::string end = end_of_log(log);
  CHECK(
      end.starts_with("x.c:1:2: error: 'y' undeclared\nptxas x.ptx, line 9; fatal   : Unsupported .version 9.5\n…\n"));
  CHECK(end.ends_with("RuntimeError: Error compiling objects for extension"));
  CHECK(end.find("line 20") == end.npos);
  CHECK(end_of_log("x.c:1:2: error: 'y' undeclared\n") == "x.c:1:2: error: 'y' undeclared");  // said once
  CHECK(build_remedy("demo", end).find("demo = [\"nvidia-nvvm==13.0.*\"]") != std::string::npos);
}

TEST_CASE("what to do about a failed build fits the end of its log") {
  const auto says = [](const std::string& log, const std::string& remedy) {
    const std::string given = build_remedy("demo", log);
    CHECK_MESSAGE(given.find(remedy) != given.npos, log, " -> ", given);
  };
  says("ModuleNotFoundError: No module named 'torch'", "demo = [\"torch\"]");
  says("ModuleNotFoundError: No module named 'a.b'", "demo = [\"a\"]");
  says("No module named 'pkg_resources'", "build_constraints = [\"setuptools<81\"]");
  says("RuntimeError: CUDA_HOME environment variable is not set", "cuda-toolkit[nvcc");
  says("fatal error: Python.h: No such file or directory", "python3-dev");
  says("x.c:1:10: fatal error: zlib.h: No such file or directory", "zlib.h");
  says("error: command 'x86_64-linux-gnu-gcc' failed: No such file or directory", "build-essential");
  says("urllib.error.URLError: <urlopen error [Errno -3] Temporary failure in name resolution>", "no network");
  says("FileNotFoundError: [Errno 2] No such file or directory: 'cmake'", "\"cmake\", \"ninja\"");
  CHECK(build_remedy("demo", "something else").empty());
  CHECK(build_remedy("demo", "No module named 'evil\"] rm'").empty());
}

TEST_CASE("everything that cannot be built is one list, with the end of each log and who needs it") {
  if (no_tools()) return;
  Yard yard;
  SourcePackage broken = yard.folder("broken", "raise SystemExit('no compiler here')\n"), good = yard.sdist();
  SourcePackage empty = broken;
  empty.name = "empty";
  empty.folder = yard.dir / "nothing";
  write_file(empty.folder / "README", "");
  const bundle::Error refused = test::refusal([&] { yard.build({broken, good, empty}); });
  INFO(refused.what());
  CHECK(refused.code() == bundle::ErrorCode::Platform);
  CHECK(test::mentions(refused, "2 of 3 package(s)"));
  CHECK(test::mentions(refused, "demo (needed by app, tool): the build failed"));
  CHECK(test::mentions(refused, "no compiler here"));
  CHECK(test::mentions(refused, "empty: there is no Python project in the source"));
}

TEST_CASE("a built wheel's start-up file is refused unless the job allows these bytes of this package") {
  if (no_tools()) return;
  Yard yard;
  const std::string line = "import sys; sys.flags\n";
  const SourcePackage source =
      yard.folder("starts", "FILES = {'demo/__init__.py': b'', 'demo.pth': b'import sys; sys.flags\\n'}\n");
  CHECK_REFUSED(yard.build({source}), Platform, "runs code when Python starts");
  const bundle::Digest digest = bundle::sha256(bundle::as_bytes(line));
  CHECK_REFUSED(yard.build({source}, {{.package = "other", .sha256 = digest}}), Platform, "when Python starts");
  CHECK(yard.build({source}, {{.package = "demo", .sha256 = digest}}).wheels.size() == 1);
}

TEST_CASE("a password in a repository's address is no argument of git, and its server alone gets it") {
  TempDir dir;
  write_file(dir / "bin/git",
             "#!/bin/bash\necho \"$@\" >> '" + (dir / "arguments").string() +
                 "'\nkept=()\nwhile [ \"$1\" = -c ]; do kept+=(-c \"$2\"); shift 2; done\n"
                 "for host in h.invalid:8443 other.invalid; do printf 'protocol=https\\nhost=%s\\n\\n' $host |\n"
                 "  /usr/bin/git \"${kept[@]}\" credential fill >> '" +
                 (dir / "answers").string() + "' 2>> '" + (dir / "said").string() + "'; done\nexit 1\n");
  fs::permissions(dir / "bin/git", fs::perms(0755));
  const std::string path = std::getenv("PATH");
  ::setenv("PATH", ((dir / "bin").string() + ":" + path).c_str(), 1);
  ::setenv("HOME", dir.path().c_str(), 1);
  SourcePackage package{.name = "demo"};
  package.kind = SourceKind::Git;
  package.url = "https://me%40work:sec%2Fret@h.invalid:8443/demo.git";
  package.commit = std::string(40, 'a');
  const bundle::Error error = test::refusal([&] { store_source(package, Cache(dir / "cache"), dir / "scratch"); });
  ::setenv("PATH", path.c_str(), 1);
  CHECK(error.code() == bundle::ErrorCode::Network);
  CHECK_FALSE(test::mentions(error, "sec"));
  CHECK(read_file(dir / "arguments").find("https://h.invalid:8443/demo.git") != std::string::npos);
  CHECK(read_file(dir / "arguments").find("sec") == std::string::npos);
  CHECK(read_file(dir / "answers") == "protocol=https\nhost=h.invalid:8443\nusername=me@work\npassword=sec/ret\n");
  CHECK(login_of("https://me:x@h/y")->server == "https://h");
  CHECK_FALSE(login_of("ssh://git@h/y"));
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
