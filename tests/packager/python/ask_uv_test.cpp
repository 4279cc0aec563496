// SPDX-License-Identifier: Apache-2.0
// Which releases `lock` takes where some have no wheel: by the real uv, from made indexes whose sources build without
// any other package.
#include "packager/python/ask_uv.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <iterator>
#include <sstream>
#include <thread>

#include "packager/lock_job.hpp"
#include "tests/packager/builds/yard.hpp"
#include "tests/support/refusal.hpp"
#include "tests/support/unreliable_server.hpp"

using namespace sealift;
using namespace sealift::test;
namespace fs = std::filesystem;

namespace {

// A made index, a job for it and what `lock` says.
struct Shelf {
  Yard yard;
  std::string index = "file://" + (yard.dir / "simple").string();
  std::string said;
  std::vector<std::string> warnings;  // of the lock

  static bool is_left_out() { return no_tools() || find_program("patchelf").empty(); }

  void put(const std::string& project, const std::string& file, const std::string& bytes) const {
    write_file(yard.dir / ("simple/" + project + "/" + file), bytes);
    const fs::path page = yard.dir / ("simple/" + project + "/index.html");
    write_file(page, (fs::exists(page) ? read_file(page) : "") + "<a href=\"" + file +
                         "#sha256=" + bundle::sha256(bundle::as_bytes(bytes)).hex() + "\">" + file + "</a>\n");
  }
  void wheel(const std::string& name, const std::string& version, const std::string& metadata = {}) const {
    const TinyWheel wheel{.name = name, .version = version, .files = {{name + ".py", ""}}, .extra_metadata = metadata};
    put(name, wheel.file_name(), make_wheel(wheel));
  }
  // `source` changes its backend, which alone tells the requirements unless there is a PKG-INFO.
  void sdist(const std::string& name, const std::string& version, const std::string& source = {},
             const std::string& pkg_info = {}) const {
    const std::string folder = name + "-" + version, project = kProject;
    write_file(yard.dir / (folder + "/pyproject.toml"), project.substr(project.find("[build")));
    write_file(yard.dir / (folder + "/backend.py"), kBackend);
    write_file(yard.dir / (folder + "/source.py"),
               "NAME, VERSION, FILES = '" + name + "', '" + version + "', {'" + name + ".py': b''}\n" + source);
    if (!pkg_info.empty()) write_file(yard.dir / (folder + "/PKG-INFO"), pkg_info);
    const std::string file = folder + ".tar.gz";
    run_checked({"tar", "-C", yard.dir.path().string(), "-czf", (yard.dir / file).string(), folder});
    put(name, file, read_file(yard.dir / file));
  }
  void write_job(const std::string& requirements, const std::string& more = {}) const {
    write_file(yard.dir / "job.toml",
               "name = \"demo\"\nversion = 1\n[target]\narch = \"x86_64\"\nglibc = \"2.36\"\n"
               "[python]\nversion = \"3.11\"\ninterpreter = \"" +
                   kPython.string() + "\"\nrequirements = [" + requirements + "]\ndefault_index = \"" + index + "\"\n" +
                   more);
  }
  // NAME==VERSION of what is locked.
  std::vector<std::string> lock(const std::string& requirements, const std::string& more = {}) {
    write_job(requirements, more);
    std::FILE* stream = std::fopen((yard.dir / "said").c_str(), "w");
    bundle::Progress progress(stream);
    std::vector<std::string> locked;
    try {
      const LockResult result =
          lock_job({.job = yard.dir / "job.toml", .cache = yard.cache.root(), .uv = yard.tools.uv}, progress);
      warnings = result.lock.warnings;
      for (const LockedWheel& wheel : result.lock.wheels) locked.push_back(wheel.name + "==" + wheel.version);
    } catch (...) {
      std::fclose(stream);
      said = read_file(yard.dir / "said");
      throw;
    }
    std::fclose(stream);
    said = read_file(yard.dir / "said");
    return locked;
  }
  std::size_t times_said(const std::string& words) const {
    std::size_t count = 0;
    for (std::size_t at = said.find(words); at != said.npos; at = said.find(words, at + 1)) ++count;
    return count;
  }
};

using Locked = std::vector<std::string>;

// How many processes of this machine, in any sandbox, have this word in their command line.
std::size_t processes_with(const std::string& word) {
  std::size_t count = 0;
  for (const fs::directory_entry& process : fs::directory_iterator("/proc")) {
    std::ifstream file(process.path() / "cmdline");
    std::ostringstream text;
    text << file.rdbuf();  // no exception where the process ends meanwhile
    const std::string line = text.str();
    if (line.find(word + '\0') != line.npos) ++count;
  }
  return count;
}

// An index as PEP 691 and 700 have it, which tells when files came out and why one was yanked.
struct DatedIndex {
  UnreliableServer server;
  std::map<std::string, std::string> files;  // of each project

  void add(const std::string& name, const std::string& version, const std::string& day,
           const std::string& metadata = {}, const std::string& yanked = {}) {
    const TinyWheel wheel{.name = name, .version = version, .files = {{name + ".py", ""}}, .extra_metadata = metadata};
    const std::string bytes = make_wheel(wheel);
    server.put("/files/" + wheel.file_name(), {.body = bytes});
    std::string& listed = files[name];
    listed += (listed.empty() ? "" : ",") + std::string("{\"filename\":\"") + wheel.file_name() + "\",\"url\":\"" +
              server.url("/files/" + wheel.file_name()) + "\",\"size\":" + std::to_string(bytes.size()) +
              ",\"upload-time\":\"" + day + "T01:02:03Z\"," + (yanked.empty() ? "" : "\"yanked\":\"" + yanked + "\",") +
              "\"hashes\":{\"sha256\":\"" + bundle::sha256(bundle::as_bytes(bytes)).hex() + "\"}}";
    server.put("/simple/" + name + "/",
               {.body = "{\"meta\":{\"api-version\":\"1.1\"},\"name\":\"" + name + "\",\"files\":[" + listed + "]}",
                .headers = "Content-Type: application/vnd.pypi.simple.v1+json\r\n"});
  }
};

}  // namespace

TEST_CASE("the newest release is locked though something that it needs has no wheel, and only that is built") {
  if (Shelf::is_left_out()) return;
  Shelf shelf;
  shelf.wheel("top", "1.0");
  shelf.wheel("top", "2.0", "Requires-Dist: middle>=1\n");
  shelf.sdist("middle", "1.0");
  shelf.sdist("middle", "1.5",
              "REQUIRES = [\"base; sys_platform == 'linux'\", \"nowhere; sys_platform == 'win32'\"]\n");
  shelf.sdist("base", "0.9");
  CHECK(shelf.lock("\"top\"") == Locked{"base==0.9", "middle==1.5", "top==2.0"});
  CHECK(shelf.said.find("uv asks what middle 1.5 (needed by top 2.0) requires") != std::string::npos);
  CHECK(shelf.said.find("uv asks what base 0.9 (needed by middle 1.5, for top 2.0) requires") != std::string::npos);
  CHECK(shelf.times_said("uv asks") == 2);
  CHECK(shelf.times_said("building ") == 2);
  SUBCASE("a job without builds takes the release that needs none") {
    CHECK(shelf.lock("\"top\"", "build = false\n") == Locked{"top==1.0"});
  }
  SUBCASE("the second lock builds nothing") {
    CHECK(shelf.lock("\"top\"") == Locked{"base==0.9", "middle==1.5", "top==2.0"});
    CHECK(shelf.times_said("was built before") == 2);
  }
}

TEST_CASE("releases and markers are chosen for the third number of the carried Python, too") {
  if (Shelf::is_left_out()) return;
  const Shelf of_version;
  const std::string carried = of_version.yard.tools.python_version;  // "3.11.2"
  Shelf shelf;
  shelf.wheel("top", "1.0");
  shelf.wheel("top", "2.0",
              "Requires-Python: >=" + carried + "\nRequires-Dist: new; python_full_version >= '" + carried +
                  "'\nRequires-Dist: old; python_full_version < '" + carried + "'\n");
  shelf.wheel("top", "3.0", "Requires-Python: >" + carried + "\n");
  shelf.wheel("new", "1.0");
  shelf.wheel("old", "1.0");
  CHECK(shelf.lock("\"top\"") == Locked{"new==1.0", "top==2.0"});
}

TEST_CASE("a release is not passed over because it comes as source itself, nor for a pre-release with a wheel") {
  if (Shelf::is_left_out()) return;
  Shelf shelf;
  shelf.wheel("tool", "1.0");
  shelf.wheel("tool", "3.0rc1");
  shelf.sdist("tool", "2.0");
  CHECK(shelf.lock("\"tool\"") == Locked{"tool==2.0"});
}

TEST_CASE("a source that cannot be built is named with who needs it, and no other release is taken") {
  if (Shelf::is_left_out()) return;
  Shelf shelf;
  shelf.wheel("top", "1.0");
  shelf.wheel("top", "2.0", "Requires-Dist: base\n");
  shelf.sdist("base", "1.0");
  shelf.sdist("base", "2.0", "raise SystemExit('no compiler here')\n");
  CHECK_REFUSED(shelf.lock("\"top\""), Platform, "base 2.0 (needed by top 2.0): the build failed");
  CHECK_REFUSED(shelf.lock("\"top\""), Platform, "no compiler here");
  CHECK_REFUSED(shelf.lock("\"top\""), Platform, "constraints = [\"base!=2.0\"]");
  CHECK(shelf.lock("\"top\"", "constraints = [\"base!=2.0\"]\n") == Locked{"base==1.0", "top==2.0"});
}

TEST_CASE("what uv warns of or skips, and releases that others hold back for more than a year, are said and locked") {
  if (Shelf::is_left_out()) return;
  DatedIndex dated;
  dated.add("holder", "1.0", "2025-06-01", "Requires-Dist: held<2\nRequires-Dist: fresh<2\n");
  dated.add("held", "1.0", "2020-01-31");
  dated.add("held", "3.0", "2026-01-31");
  dated.add("fresh", "1.0", "2025-02-01");
  dated.add("fresh", "2.0", "2026-01-31");
  dated.add("bad", "1.0", "2026-01-31", {}, "wrong numbers");
  dated.add("broken", "1.0", "2026-01-31");
  dated.add("broken", "2.0", "2026-01-31", "Requires-Dist: other (x>>1)\n");
  Shelf shelf;
  shelf.index = dated.server.url("/simple");
  CHECK(shelf.lock("\"holder[none]\", \"bad==1.0\", \"broken\"") ==
        Locked{"bad==1.0", "broken==1.0", "fresh==1.0", "held==1.0", "holder==1.0"});
  const auto is_locked = [&](const std::string& words) {
    return std::count_if(shelf.warnings.begin(), shelf.warnings.end(),
                         [&](const std::string& warning) { return warning.find(words) != warning.npos; }) == 1;
  };
  INFO(shelf.said);
  for (const char* words : {"`bad==1.0` is yanked (reason: \"wrong numbers\")", "does not have an extra named `none`",
                            "broken==2.0 was skipped, since it has invalid metadata"}) {
    INFO(std::string(words));
    CHECK(is_locked(words));
    CHECK(shelf.times_said(words) == 1);
  }
  CHECK(is_locked("held 1.0 is of 2020-01-31; the newest release that fits, 3.0, is of 2026-01-31 (needed by holder"));
  CHECK(shelf.said.find("1 of 5 packages are older by more than a year") != std::string::npos);
  CHECK(shelf.said.find("held 1.0 (3.0)") != std::string::npos);
  CHECK(shelf.warnings.size() == 4);
}

TEST_CASE("what published wheels must not have is refused before anything is built") {
  if (Shelf::is_left_out()) return;
  Shelf shelf;
  for (const char* name : {"one", "two"}) {
    const TinyWheel wheel{.name = name, .files = {{"both/__init__.py", name}}};
    shelf.put(name, wheel.file_name(), make_wheel(wheel));
  }
  shelf.sdist("base", "2.0");
  CHECK_REFUSED(shelf.lock("\"one\", \"two\", \"base\""), Conflict, "both/__init__.py");
  CHECK(shelf.times_said("building ") == 0);
  CHECK(fs::exists(shelf.yard.dir / "pylock.demo.toml"));  // what uv chose
}

TEST_CASE("a pylock whose wheels lie beside it is locked without an index") {
  if (Shelf::is_left_out()) return;
  Shelf shelf;
  const TinyWheel wheel{.name = "demo", .files = {{"demo.py", ""}}};
  const std::string bytes = make_wheel(wheel);
  write_file(shelf.yard.dir / ("theirs/" + wheel.file_name()), bytes);
  write_file(shelf.yard.dir / "theirs/pylock.toml",
             "lock-version = \"1.0\"\ncreated-by = \"pip\"\n[[packages]]\nname = \"demo\"\nversion = "
             "\"1.0\"\nwheels = [{ path = \"" +
                 wheel.file_name() + "\", hashes = { sha256 = \"" + bundle::sha256(bundle::as_bytes(bytes)).hex() +
                 "\" } }]\n");
  fs::create_directories(shelf.yard.dir / "simple");
  CHECK(shelf.lock("", "lock_file = \"theirs/pylock.toml\"\n") == Locked{"demo==1.0"});
}

TEST_CASE("a build shows its last line, and Ctrl-C ends it within five seconds with all that it started and made") {
  if (Shelf::is_left_out()) return;
  Shelf shelf;
  const fs::path place = shelf.yard.dir.path(), said = place / "said", temporary = place / "tmp";
  const std::string mark = place.filename().string() + "-deaf";
  shelf.sdist("demo", "1.0",
              "import signal, subprocess, sys, time\n"
              "if 'build' in sys.orig_argv:\n"
              "    for i in range(2000):\n        open('left-%d' % i, 'w').close()\n"
              "    subprocess.Popen([sys.executable, '-c', 'import signal, time\\nfor one in (signal.SIGINT, "
              "signal.SIGTERM): signal.signal(one, signal.SIG_IGN)\\ntime.sleep(600)', '" +
                  mark + "'])\n    print('made 2000 files', flush=True)\n    time.sleep(600)\n");
  shelf.write_job("\"demo\"");
  fs::create_directories(temporary);
  write_file(said, "");
  const pid_t pack = ::fork();
  if (pack == 0) {  // as a shell starts it: a group of its own, which Ctrl-C reaches
    ::setpgid(0, 0);
    ::setenv("TMPDIR", temporary.c_str(), 1);
    const int file = ::open(said.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    ::dup2(file, STDERR_FILENO);
    ::execl(SEALIFT_PACK, SEALIFT_PACK, "lock", (place / "job.toml").c_str(), "--uv", shelf.yard.tools.uv.c_str(),
            "--cache", shelf.yard.cache.root().c_str(), nullptr);
    ::_exit(127);
  }
  const auto has_said = [&](const std::string& words) { return read_file(said).find(words) != std::string::npos; };
  while (!has_said("demo 1.0, the build: ") && ::waitpid(pack, nullptr, WNOHANG) == 0)
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  INFO(read_file(said));
  CHECK(has_said(" s: made 2000 files"));
  CHECK(processes_with(mark) == 1);
  const auto begin = std::chrono::steady_clock::now();
  ::kill(-pack, SIGINT);
  int status = 0;
  REQUIRE(::waitpid(pack, &status, 0) == pack);
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(5));
  CHECK((WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status)) == 128 + SIGINT);
  CHECK(processes_with(mark) == 0);
  CHECK(fs::is_empty(shelf.yard.cache.root() / "scratch"));
  CHECK(fs::is_empty(temporary));
  for (const fs::directory_entry& left : fs::directory_iterator(shelf.yard.cache.builds()))
    CHECK(left.path().extension() == ".lock");
}

TEST_CASE("a wheel that requires something else than its backend had said is built once, and uv is asked again") {
  if (Shelf::is_left_out()) return;
  Shelf shelf;
  shelf.wheel("other", "1.0");
  shelf.sdist("base", "2.0", "import sys\nREQUIRES = ['other'] if 'build' in sys.orig_argv else []\n");
  CHECK(shelf.lock("\"base\"") == Locked{"base==2.0", "other==1.0"});
  CHECK(shelf.times_said("building ") == 1);
  CHECK(shelf.times_said("was built before") == 0);
}

TEST_CASE("a source that publishes what it requires is read without its backend") {
  if (Shelf::is_left_out()) return;
  Shelf shelf;
  shelf.wheel("other", "1.0");
  shelf.sdist("base", "2.0", "REQUIRES = ['other']\n",
              "Metadata-Version: 2.2\nName: base\nVersion: 2.0\nRequires-Dist: other\n");
  CHECK(shelf.lock("\"base\"") == Locked{"base==2.0", "other==1.0"});
  CHECK(shelf.times_said("uv asks") == 0);
  CHECK(shelf.times_said("building ") == 1);
}

TEST_CASE("a backend that tells nothing without a wheel builds it once") {
  if (Shelf::is_left_out()) return;
  Shelf shelf;
  shelf.wheel("other", "1.0");
  shelf.sdist("base", "2.0", "REQUIRES = ['other']\n");
  std::string backend = kBackend;
  backend.replace(backend.find("def prepare_metadata"), std::string("def prepare_metadata").size(), "def no_metadata");
  write_file(shelf.yard.dir / "base-2.0/backend.py", backend);
  fs::remove_all(shelf.yard.dir / "simple/base");
  run_checked(
      {"tar", "-C", shelf.yard.dir.path().string(), "-czf", (shelf.yard.dir / "base-2.0.tar.gz").string(), "base-2.0"});
  shelf.put("base", "base-2.0.tar.gz", read_file(shelf.yard.dir / "base-2.0.tar.gz"));
  CHECK(shelf.lock("\"base\"") == Locked{"base==2.0", "other==1.0"});
  CHECK(shelf.times_said("was built before") == 1);  // the wheel that told its requirements is locked
}

TEST_CASE("metadata that leads out of its folder, or is of another package, is refused") {
  if (Shelf::is_left_out()) return;
  Shelf shelf;
  SUBCASE("a link to a file of the packer's") {
    write_file(shelf.yard.dir / "secret", "Name: base\nVersion: 2.0\nRequires-Dist: stolen\n");
    shelf.sdist("base", "2.0",
                "def prepare_metadata_for_build_wheel(folder, settings=None):\n"
                "    os.mkdir(folder + '/base.dist-info')\n    os.symlink('" +
                    (shelf.yard.dir / "secret").string() +
                    "', folder + '/base.dist-info/METADATA')\n    return 'base.dist-info'\n");
    std::string backend = kBackend;  // what source.py defines comes last
    write_file(shelf.yard.dir / "base-2.0/backend.py", backend + "\nexec(open('source.py').read())\n");
    fs::remove_all(shelf.yard.dir / "simple/base");
    run_checked({"tar", "-C", shelf.yard.dir.path().string(), "-czf", (shelf.yard.dir / "base-2.0.tar.gz").string(),
                 "base-2.0"});
    shelf.put("base", "base-2.0.tar.gz", read_file(shelf.yard.dir / "base-2.0.tar.gz"));
    CHECK_REFUSED(shelf.lock("\"base\""), Platform, "METADATA is not a plain file");
  }
  SUBCASE("another name") {
    shelf.sdist("base", "2.0", "NAME = 'other'\n");
    CHECK_REFUSED(shelf.lock("\"base\""), Platform, "the source is of another package");
  }
}

TEST_CASE("sources that a requirements file's own folder offers are found, relative to that file") {
  if (Shelf::is_left_out()) return;
  Shelf shelf;
  shelf.sdist("base", "2.0");
  fs::create_directories(shelf.yard.dir / "wishes");
  fs::rename(shelf.yard.dir / "base-2.0.tar.gz", shelf.yard.dir / "wishes/base-2.0.tar.gz");
  fs::remove_all(shelf.yard.dir / "simple/base");
  fs::create_directories(shelf.yard.dir / "simple");
  write_file(shelf.yard.dir / "wishes/requirements.txt", "--find-links .\nbase\n");
  CHECK(shelf.lock("", "requirements_file = \"wishes/requirements.txt\"\n") == Locked{"base==2.0"});
}
