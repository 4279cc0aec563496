// SPDX-License-Identifier: Apache-2.0
// What a user starts is the interpreter of an installed generation, through sealift-start: it stays in its generation
// when `current` leads elsewhere, takes no modules of the user's unasked, and leaves no bytecode behind.
#include <sys/stat.h>

#include "bundle/core/text_parts.hpp"
#include "installer/activation/venv.hpp"
#include "installer/doctor/doctor.hpp"
#include "installer/generations/generation.hpp"
#include "installer/upkeep/gc.hpp"
#include "installer/upkeep/set_repository.hpp"
#include "installer/upkeep/switch.hpp"
#include "tests/installer/start/real_python.hpp"
#include "tests/support/other_user.hpp"

using namespace sealift;
using namespace sealift::installer;
using namespace sealift::test;

namespace {

struct PythonSite : Site {
  std::string root = prefix().folder().string();
  std::string home = dir / "home";

  explicit PythonSite(bool compile_bytecode = false) {
    fs::create_directory(home);
    fs::permissions(dir.path(), fs::perms(0755));  // for the ordinary user
    ApplyOptions first = options(make(real_python(1)));
    first.compile_bytecode = compile_bytecode;
    first.self_check = SelfCheckOptions::Depth::Imports;
    apply(first);
  }
  void install_next() {
    ApplyOptions next = options(make(real_python(2), "bundle2"));
    next.self_check = SelfCheckOptions::Depth::Imports;
    apply(next);
  }
  // In a shell with this user's home and nothing else set.
  std::string said(const std::string& script) const {
    write_file(dir / "script", script);
    return run_in_shell("env -i PATH=/usr/bin:/bin HOME='" + home + "' P='" + root + "' sh '" +
                        (dir / "script").string() + "'")
        .output;
  }
  std::vector<std::string> findings() const {
    bundle::Progress silent(nullptr);
    Disk disk;
    std::vector<std::string> found;
    for (const Deviation& finding : doctor({.prefix = prefix(), .now = kNow, .threads = 2}, disk, silent).findings)
      found.push_back(std::string(name_of(finding.kind)) + " " + finding.paths.front());
    return found;
  }
  std::size_t cached(const std::string& user) const {
    std::size_t count = 0;
    if (!fs::exists(dir / user / ".cache/sealift/pycache")) return 0;
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(dir / user / ".cache/sealift/pycache"))
      count += entry.path().extension() == ".pyc" ? 1 : 0;
    return count;
  }
};

// For tests that leave it as it is.
const PythonSite& common_site() {
  static const PythonSite site;
  return site;
}

// A job that has begun, and goes on when it is told.
class Job {
 public:
  Job(const PythonSite& site, const std::string& start) : signal_(site.dir / "signal") {
    fs::remove(signal_);
    ::mkfifo(signal_.c_str(), 0600);
    write_file(site.dir / "job.py", R"py(import os, subprocess, sys
import demo
print(demo.VERSION, flush=True)
open(sys.argv[1]).read()
import demo.late
ask = "import demo.late, os, sys; print(demo.late.VERSION, sys.prefix, os.environ['SITE_DATA'])"
print(demo.late.VERSION, sys.prefix, os.environ['SITE_DATA'])
for command in [sys.executable, '-c', ask], ['python3', '-c', ask], ['sh', '-c', 'exec python -c "$0"', ask]:
    print(subprocess.run(command, stdout=subprocess.PIPE, text=True).stdout, end='')
)py");
    pipe_ = ::popen(("env -i PATH=/usr/bin:/bin HOME='" + site.home + "' P='" + site.root + "' sh -c '" + start + " " +
                     (site.dir / "job.py").string() + " " + signal_.string() + "' 2>&1")
                        .c_str(),
                    "r");
    CHECK(line() == "1\n");
  }
  ~Job() {
    if (pipe_ != nullptr) rest();
  }
  std::string rest() {
    write_file(signal_, "go on\n");
    std::string text;
    for (std::string next; !(next = line()).empty();) text += next;
    ::pclose(std::exchange(pipe_, nullptr));
    return text;
  }

 private:
  std::string line() {
    char text[4096];
    return std::fgets(text, sizeof text, pipe_) == nullptr ? "" : text;
  }

  fs::path signal_;
  FILE* pipe_ = nullptr;
};

}  // namespace

TEST_CASE("a job that began before a switch stays in its generation with all that it starts, and gc leaves it alone") {
  if (!host_interpreter_is_there()) return;
  PythonSite site;
  Disk disk;
  const std::string first = (site.prefix().generation(1)).string();
  const std::string stays = "1 " + first + " " + first + "/data\n";
  for (const char* start : {"PATH=$P/current/bin:$PATH exec $P/current/bin/python", ". $P/activate; exec python3",
                            ". $P/activate; python"}) {
    INFO(start);
    Job job(site, start);
    if (generation_numbers(site.prefix()).size() == 1) site.install_next();
    switch_to(site.prefix(), 2, disk);
    const Cleanup cleanup = gc({.prefix = site.prefix(), .keep = 1}, disk);
    CHECK(cleanup.generations.empty());
    REQUIRE(cleanup.kept.size() == 2);
    CHECK(cleanup.kept[0].why.starts_with("in use by process"));
    CHECK(job.rest() == stays + stays + stays + stays);
    CHECK(site.said("$P/current/bin/python -c 'import demo.late; print(demo.late.VERSION)'") == "2\n");
    switch_to(site.prefix(), 1, disk);
  }
  switch_to(site.prefix(), 2, disk);
  CHECK(gc({.prefix = site.prefix(), .keep = 1}, disk).generations == std::vector<unsigned>{1});
}

TEST_CASE("however it is called, Python belongs to its generation, and in a virtual environment to that") {
  if (!host_interpreter_is_there()) return;
  const PythonSite& site = common_site();
  const std::string first = site.prefix().generation(1).string();
  const std::string ask = " -c 'import sys; print(sys.prefix, sys.base_prefix, sys.executable)'\n";
  const std::string own = first + " " + first + " " + first + "/bin/";
  fs::create_symlink(site.current() / "bin/python3.11", site.dir / "shortcut");
  CHECK(site.said("cd $P/current/bin && ./python3" + ask) == own + "python3\n");
  CHECK(site.said((site.dir / "shortcut").string() + ask) == own + "python3.11\n");
  CHECK(site.said("PATH=$P/current/bin python" + ask) == own + "python\n");
  CHECK(site.said("bash -c \"exec -a other $P/current/bin/python3" + ask.substr(0, 3) +
                  " 'import sys; print(sys.prefix)'\"") == first + "\n");
  const std::string venv = site.dir / "venv";
  fs::create_directories(venv + "/bin");
  fs::create_symlink(first + "/bin/python3", venv + "/bin/python3");
  write_file(venv + "/pyvenv.cfg", "home = " + first + "/bin\n");
  const std::string of_venv = venv + " " + first + " " + venv + "/bin/python3\n";
  CHECK(site.said(venv + "/bin/python3" + ask) == of_venv);
  CHECK(site.said("PATH=" + venv + "/bin:$PATH python3" + ask) == of_venv);
}

TEST_CASE("modules of the user's come before the signed ones only where the user says so") {
  if (!host_interpreter_is_there()) return;
  const PythonSite& site = common_site();
  const std::string mine = site.dir / "mine";
  write_file(mine + "/demo.py", "VERSION = 'mine'\n");
  write_file(site.home + "/.local/lib/python3.11/site-packages/theirs.py", "");
  const std::string ask = " -c 'import demo; print(demo.VERSION)'\n";
  const std::string dropped = site.said("PYTHONPATH=" + mine + " $P/current/bin/python" + ask);
  CHECK(dropped.find("PYTHONPATH is left out") != std::string::npos);
  CHECK(dropped.ends_with("\n1\n"));
  CHECK(site.said("PYTHONPATH=" + mine + " SEALIFT_PYTHONPATH= $P/current/bin/python" + ask) == "1\n");
  CHECK(site.said("SEALIFT_PYTHONPATH=" + mine + " $P/current/bin/python" + ask) == "mine\n");
  CHECK(site.said("export PYTHONPATH=" + mine + "\n. $P/activate\npython" + ask) == "1\n");
  CHECK(site.said(". $P/activate\nexport PYTHONPATH=" + mine + "\npython" + ask) == "mine\n");
  CHECK(site.said("$P/current/bin/python -c \"import os, sys; os.environ['PYTHONPATH'] = '" + mine +
                  "'; os.execv(sys.executable, ['python', '-c', 'import demo; print(demo.VERSION)'])\"") == "mine\n");
  for (const char* set :
       {"PYTHONHOME=/nowhere", "PYTHONPLATLIBDIR=lib64x", "PYTHONEXECUTABLE=/nowhere/bin/python3",
        "_PYTHON_SYSCONFIGDATA_NAME=none", "_PYTHON_PROJECT_BASE=/nowhere", "_PYTHON_HOST_PLATFORM=other"})
    CHECK(site.said(std::string(set) + " $P/current/bin/python" + ask) == "1\n");
  CHECK(site.said("_PYTHON_HOST_PLATFORM=other _PYTHON_SYSCONFIGDATA_NAME=none PYTHONPLATLIBDIR=lib64x "
                  "$P/current/bin/python -c 'import sys, sysconfig; sysconfig.get_config_vars(); "
                  "print(sys.platlibdir, sysconfig.get_platform() == \"other\")'") == "lib False\n");
  const std::string local = " -c 'import theirs'; echo $?\n";
  CHECK(site.said("$P/current/bin/python" + local).ends_with("No module named 'theirs'\n1\n"));
  CHECK(site.said("PYTHONNOUSERSITE= $P/current/bin/python" + local) == "0\n");
}

TEST_CASE("certificate authorities are found where EL and SUSE have them; what the user or Debian says counts") {
  if (!host_interpreter_is_there()) return;
  const PythonSite& site = common_site();
  const std::string held = "bwrap --dev-bind / / --tmpfs /etc --tmpfs /var/lib ",
                    ask = " $P/current/bin/python -c \"import os; print(os.environ.get('SSL_CERT_FILE'))\"\n";
  if (site.said(held + "echo held") != "held\n") return left_out("needs bwrap");
  const auto on = [&](const std::string& files, const std::string& set = "") {
    std::string there;
    for (const std::string_view file : bundle::split(files, ' ')) there += "--ro-bind $0 " + std::string(file) + " ";
    return site.said(set + held + there + ask);
  };
  const std::string debian = "/etc/ssl/certs/ca-certificates.crt", el = "/etc/pki/tls/certs/ca-bundle.crt";
  CHECK(on(el) == el + "\n");
  CHECK(on("/etc/ssl/ca-bundle.pem") == "/etc/ssl/ca-bundle.pem\n");
  CHECK(on("/var/lib/ca-certificates/ca-bundle.pem") == "/var/lib/ca-certificates/ca-bundle.pem\n");
  CHECK(on(debian) == "None\n");
  CHECK(on(debian + " " + el) == "None\n");
  CHECK(on(el, "SSL_CERT_FILE=/mine ") == "/mine\n");
  CHECK(on(el, "SSL_CERT_DIR=/mine ") == "None\n");
}

TEST_CASE("whoever imports what, and however, the doctor finds nothing new in the prefix") {
  if (!host_interpreter_is_there()) return;
  const PythonSite& site = common_site();
  const std::string import = " -c 'import json, csv, demo.late'\n";
  site.said("$P/current/bin/python" + import);
  CHECK(site.cached("home") > 10);
  CHECK(site.findings().empty());
  for (const char* how :
       {"$P/current/bin/python -I", "$P/current/bin/python -W ignore -X utf8 -sE", "unset HOME; $P/current/bin/python",
        "unset HOME; $P/current/bin/python -I", ". $P/activate; python",
        "$P/current/bin/python -m json.tool /dev/null; $P/current/bin/python"})
    site.said(how + import);
  CHECK(site.findings().empty());
  if (::geteuid() == 0) {
    fs::create_directory(site.dir / "user");
    REQUIRE(::chown((site.dir / "user").c_str(), 65534, 65534) == 0);
    site.said("HOME=" + (site.dir / "user").string() + " setpriv --reuid=65534 --regid=65534 --clear-groups " +
              "$P/current/bin/python" + import);
    CHECK(site.cached("user") > 10);
  }
  const std::string mine = site.dir / "mine";
  site.said("PYTHONPYCACHEPREFIX=" + mine + " $P/current/bin/python" + import);  // the user's own choice
  CHECK(fs::exists(mine));
  CHECK(site.findings().empty());
}

TEST_CASE("modules that apply compiled are loaded from the generation, activated or not, and nothing is cached") {
  if (!host_interpreter_is_there()) return;
  const PythonSite site(true);
  const std::string ask = " -c 'import demo.late; print(demo.late.__cached__)'\n";
  const std::string compiled =
      site.prefix().generation(1) / "lib/python3.11/site-packages/demo/__pycache__/late.cpython-311.pyc\n";
  CHECK(site.said("$P/current/bin/python" + ask) == compiled);
  CHECK(site.said(". $P/activate; python" + ask) == compiled);
  CHECK(site.cached("home") == 0);
  CHECK(site.findings().empty());
}

TEST_CASE("a virtual environment stays on its generation, which gc leaves alone, until it is put on another one") {
  if (!host_interpreter_is_there()) return;
  PythonSite site;
  Disk disk;
  const std::string folder = site.dir / "my venv";
  set_repository(site.prefix(), "https://packages.site:8443/env/", {}, disk);
  const Venv made = make_venv({.prefix = site.prefix(), .folder = folder}, disk);
  CHECK(made.generation == 1);
  CHECK(made.known);
  write_file(folder + "/lib/python3.11/site-packages/own.py", "");
  const std::string python = "'" + folder + "/bin/python3'";
  const std::string ask = " -c 'import demo.late, own, sys; print(demo.late.VERSION, sys.prefix)'\n";
  CHECK(site.said(python + ask) == "1 " + folder + "\n");
  site.install_next();
  CHECK(site.said(python + ask) == "1 " + folder + "\n");
  CHECK(site.said("PYTHONPATH=/users; . '" + folder + "/bin/activate'; python" + ask +
                  "echo $PIP_INDEX_URL $SITE_DATA " +
                  "${PYTHONPATH-none}; deactivate; echo ${PIP_INDEX_URL-none} $PYTHONPATH; command -v python") ==
        "1 " + folder + "\nhttps://packages.site:8443/env/simple/ " + site.prefix().generation(1).string() +
            "/data none\nnone /users\n");
  CHECK(read_file(folder + "/pip.conf") == "[global]\nindex-url = https://packages.site:8443/env/simple/\n");
  const Cleanup kept = gc({.prefix = site.prefix(), .keep = 1}, disk);
  CHECK(kept.generations.empty());
  CHECK(kept.kept.front().why == "used by the virtual environment " + folder);
  CHECK(status_of(site.prefix()).generations.front().venvs == std::vector<fs::path>{folder});
  CHECK(site.findings().empty());

  make_venv({.prefix = site.prefix(), .folder = folder}, disk);
  CHECK(site.said(python + ask) == "2 " + folder + "\n");
  CHECK(fs::exists(site.prefix().modulefiles() / "tiny-0001.lua"));
  CHECK(gc({.prefix = site.prefix(), .keep = 1}, disk).generations == std::vector<unsigned>{1});
  CHECK_FALSE(fs::exists(site.prefix().modulefiles() / "tiny-0001.lua"));
  CHECK_FALSE(fs::exists(site.prefix().modulefiles() / "tiny-0001"));
  CHECK(fs::exists(site.prefix().modulefiles() / "tiny-0002"));
  fs::remove_all(folder);
  CHECK(status_of(site.prefix()).generations.front().venvs.empty());
}

TEST_CASE("a virtual environment takes no folder that is not its own, none in a prefix, and no missing generation") {
  if (!host_interpreter_is_there()) return;
  const PythonSite& site = common_site();
  Disk disk;
  const auto make = [&](const fs::path& folder, unsigned generation = 0) {
    return make_venv({.prefix = site.prefix(), .folder = folder, .generation = generation}, disk);
  };
  write_file(site.dir / "taken/notes", "mine");
  write_file(site.dir / "foreign/pyvenv.cfg", "home = /usr/bin\n");
  const auto before = snapshot(site.prefix().folder());
  CHECK_REFUSED(make(site.dir / "taken"), Conflict, "something else is there");
  CHECK_REFUSED(make(site.dir / "foreign"), Conflict, "something else is there");
  CHECK_REFUSED(make(site.dir / "taken/notes"), Conflict, "something else is there");
  CHECK_REFUSED(make(site.prefix().generation(1) / "venv"), Usage, "outside of it");
  CHECK_REFUSED(make(site.dir / "a:b"), Usage, "colons");
  CHECK_REFUSED(make(site.dir / "none/venv"), Missing, "make it");
  CHECK_REFUSED(make(site.dir / "venv9", 9), Missing, "no such generation");
  CHECK_FALSE(fs::exists(site.dir / "venv9"));
  CHECK(snapshot(site.prefix().folder()) == before);
}

TEST_CASE(
    "root makes no virtual environment in a folder of another user, or with parts of theirs, and follows no link") {
  if (!host_interpreter_is_there() || !is_root()) return;
  const PythonSite& site = common_site();
  const fs::path cron = site.dir / "cron.daily", home = site.dir / "mallory", venv = home / "venv";
  Disk disk;
  const auto make = [&](const fs::path& folder) {
    return make_venv({.prefix = site.prefix(), .folder = folder}, disk);
  };
  const auto lay_bait = [&](const fs::path& folder) {  // what check_folder takes for one of ours
    fs::create_directories(folder);
    write_file(folder / "pyvenv.cfg", "home = /usr/bin\nsealift-prefix = /opt/env\n");
  };
  write_file(cron / "activate", "root's own");
  lay_bait(venv);
  fs::create_directory_symlink(cron, venv / "bin");
  give_away(home);
  CHECK_REFUSED(make(venv), Usage, "user 4711");
  CHECK_REFUSED(make(home / "new"), Usage, home.string());  // who could put a link in its place in any moment
  const fs::path shortcut = site.dir / "shortcut to venv";
  fs::create_directory_symlink(venv, shortcut);
  CHECK_REFUSED(make(shortcut), Usage, "user 4711");
  for (const char* part : {"", "bin", "lib", "lib/python3.11/site-packages", "pyvenv.cfg"}) {
    CAPTURE(std::string(part));
    const fs::path own = site.dir / ("own" + std::string(*part == '\0' ? "" : fs::path(part).filename()));
    make(own);
    REQUIRE(::lchown((own / part).c_str(), 4711, 4711) == 0);
    CHECK_REFUSED(make(own), Usage, "user 4711");
    REQUIRE(::lchown((own / part).c_str(), 0, 0) == 0);
    if (fs::is_directory(own / part)) {
      fs::permissions(own / part, fs::perms(0777));
      CHECK_REFUSED(make(own), Usage, "mode 0777");
      fs::permissions(own / part, fs::perms(0755));
    }
    make(own);
  }
  for (const char* part : {"bin", "lib"}) {  // root's own links are not followed either
    const fs::path own = site.dir / ("linked" + std::string(part));
    lay_bait(own);
    fs::create_directory_symlink(cron, own / part);
    CHECK_REFUSED(make(own), Conflict, "stands where a folder");
  }
  CHECK(read_file(cron / "activate") == "root's own");
  CHECK(std::distance(fs::directory_iterator(cron), fs::directory_iterator()) == 1);
}

TEST_CASE("a Python that root starts reads no bytecode that another user could have laid down") {
  if (!host_interpreter_is_there() || !is_root()) return;
  const PythonSite& site = common_site();
  const std::string python = "$P/current/bin/python", import = " -c 'import demo.late; print(demo.late.VERSION)'\n";
  const fs::path home = site.dir / "mallory home";
  fs::create_directory(home);
  site.said("HOME='" + home.string() + "' " + python + import);
  std::size_t planted = 0;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(home))
    if (entry.path().filename() == "late.cpython-311.pyc") {  // the same time and size, and other code
      const std::string bytes = read_file(entry.path());
      write_file(site.dir / "forge.py",
                 "import marshal, sys\ncode = compile('VERSION = \"forged\"', 'late.py', 'exec')\n"
                 "data = open(sys.argv[1], 'rb').read()[:16] + marshal.dumps(code)\n"
                 "open(sys.argv[1], 'wb').write(data)\n");
      REQUIRE(
          run_in_shell("/usr/bin/python3.11 " + (site.dir / "forge.py").string() + " '" + entry.path().string() + "'")
              .status == 0);
      CHECK(read_file(entry.path()) != bytes);
      ++planted;
    }
  REQUIRE(planted == 1);
  const std::string theirs = "HOME='" + home.string() + "' ";
  const std::string cache = "'" + home.string() + "/.cache'";
  REQUIRE(site.said(theirs + python + import) == "forged\n");  // it is loaded where it may be: root's own folder
  give_away(home);
  for (const std::string& how :
       {theirs + python, theirs + python + " -I", "XDG_CACHE_HOME=" + cache + " " + python,
        "XDG_CACHE_HOME=" + cache + " " + python + " -I", theirs + ". $P/activate; " + theirs + "python",
        "PYTHONPYCACHEPREFIX=$(echo " + cache + "/sealift/pycache/*) " + python}) {
    CAPTURE(how);
    CHECK(site.said(how + import).ends_with("1\n"));
  }
  const std::string kernels = " -c 'import os; print(os.environ.get(\"TRITON_CACHE_DIR\"))'\n";
  CHECK(site.said(theirs + python + kernels) == "None\n");  // compiled code, too
  CHECK(site.said(theirs + ". $P/activate; " + theirs + "python" + kernels) == "None\n");
  CHECK(site.said(python + kernels) == site.home + "/.cache/triton\n");
  REQUIRE(run_in_shell("chown -R 0:0 '" + home.string() + "'").status == 0);
  CHECK(site.said(theirs + python + import) == "forged\n");
  for (const char* part : {"", ".cache", ".cache/sealift", ".cache/sealift/pycache"}) {  // a cache that is shared
    CAPTURE(std::string(part));
    fs::permissions(home / part, fs::perms(0777));
    CHECK(site.said(theirs + python + import) == "1\n");
    fs::permissions(home / part, fs::perms(0755));
  }
  REQUIRE(::chown((home / ".cache").c_str(), 0, 4711) == 0);
  fs::permissions(home / ".cache", fs::perms(0775));
  CHECK(site.said(theirs + python + import) == "1\n");
  fs::permissions(home / ".cache", fs::perms(0755));
  CHECK(site.said(theirs + python + import) == "forged\n");
  // Behind a link of the user's, too; and a user does not believe another one.
  const fs::path other = site.dir / "linked home";
  fs::create_directory(other);
  fs::create_directory_symlink(home / ".cache", other / ".cache");
  REQUIRE(::lchown((other / ".cache").c_str(), 4711, 4711) == 0);
  CHECK(site.said("HOME='" + other.string() + "' " + python + import) == "1\n");
  give_away(home);
  CHECK(site.said(theirs + "setpriv --reuid=4712 --regid=4712 --clear-groups " + python + import) == "1\n");
  CHECK(site.said(theirs + "setpriv --reuid=4711 --regid=4711 --clear-groups " + python + import) == "forged\n");
}
