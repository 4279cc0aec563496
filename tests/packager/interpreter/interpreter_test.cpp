// SPDX-License-Identifier: Apache-2.0
// An interpreter taken apart and put together elsewhere must be a whole Python there.
#include "packager/interpreter/interpreter.hpp"

#include <doctest/doctest.h>

#include "packager/files/cache.hpp"
#include "packager/host/process.hpp"
#include "packager/interpreter/interpreter_libraries.hpp"
#include "packager/interpreter/interpreter_tree.hpp"
#include "tests/support/left_out.hpp"
#include "tests/support/refusal.hpp"
#include "tests/support/temp_dir.hpp"

using namespace sealift;
using namespace sealift::packager;
using sealift::test::read_file;
using sealift::test::TempDir;
using sealift::test::write_file;
namespace fs = std::filesystem;

namespace {

const fs::path kDistribution = "/usr/bin/python3.11";

InterpreterChoice choice_of(const fs::path& interpreter) {
  return {.version = "3.11", .interpreter = interpreter.string(), .asked_in = "job.toml"};
}

// A prefix of its own, made of a distribution's interpreter: what python-build-standalone and pyenv look like.
void make_own_prefix(const fs::path& prefix) {
  fs::create_directories(prefix / "bin");
  fs::create_directories(prefix / "lib/python3.11/site-packages");
  fs::copy_file(kDistribution, prefix / "bin/python3.11");
  for (const fs::directory_entry& entry : fs::directory_iterator("/usr/lib/python3.11")) {
    const std::string name = entry.path().filename().string();
    if (name == "test" || name == "__pycache__" || name.starts_with("config-")) continue;  // large, and never carried
    fs::copy(entry.path(), prefix / "lib/python3.11" / name,
             fs::copy_options::recursive | fs::copy_options::copy_symlinks);
  }
}

struct Relocated {
  Tree tree;
  NativeClosure closure;
  TreeTar tar;
};

// Gathers `interpreter` and unpacks it, with the system's tar, into `into`.
Relocated relocate(const std::string& interpreter, const fs::path& scratch, const fs::path& into) {
  bundle::Progress progress(nullptr);
  const InterpreterChoice choice = choice_of(interpreter);
  const Interpreter found = find_interpreter(choice, "/no/uv", scratch);
  Tree tree = gather_interpreter(found, SEALIFT_START);
  NativeResolver resolver("x86_64", NativeResolver::system_folders("x86_64"));
  carry_libraries(tree, found, resolver, {2, 99}, {}, scratch, progress);
  const TreeTar tar = write_tree_tar(tree, scratch / "interpreter.tar");
  fs::create_directories(into);
  run_checked({"tar", "-xf", (scratch / "interpreter.tar").string(), "-C", into.string()});
  return {.tree = std::move(tree), .closure = resolver.closure(), .tar = tar};
}

bool no_distribution() {
  if (fs::exists(kDistribution) && !find_program("patchelf").empty()) return false;
  sealift::test::left_out("needs ", kDistribution.string(), " and patchelf");
  return true;
}

}  // namespace

TEST_CASE("a distribution's interpreter works wherever it is unpacked, with the packages of its new prefix") {
  if (no_distribution()) return;
  const TempDir scratch, target;
  const fs::path prefix = target / "some where";
  relocate(kDistribution.string(), scratch.path(), prefix);
  write_file(prefix / "lib/python3.11/site-packages/demo.py", "ANSWER = 42\n");
  const std::string python = (prefix / "bin/python3").string();

  CHECK(run_checked({python, "-I", "-c", "import sys, demo; print(sys.prefix, demo.ANSWER)"}) ==
        prefix.string() + " 42\n");
  run_checked(
      {python, "-I", "-c", "import ssl, sqlite3, ctypes, lzma, bz2, zlib, venv, hashlib, decimal, multiprocessing"});
  // Everything that is loaded comes from the new prefix, glibc apart.
  const std::string outside = run_checked({python, "-I", "-c", R"(
import ssl, sqlite3, ctypes, lzma, bz2, zlib, sys
own = ('libc.so', 'libm.so', 'ld-linux', 'libdl.', 'libpthread.')
paths = {line.split(None, 5)[5].strip() for line in open('/proc/self/maps') if '.so' in line}
print([p for p in paths if not p.startswith(sys.prefix) and not p.rsplit('/', 1)[1].startswith(own)])
)"});
  CHECK(outside == "[]\n");
  CHECK(run_checked({python, "-I", "-c", "import sys; print([p for p in sys.path if p.startswith('/usr')])"}) ==
        "[]\n");

  run_checked({python, "-m", "venv", "--without-pip", (target / "venv").string()});
  const std::string inside = run_checked({(target / "venv/bin/python").string(), "-c", "import sys; print(sys.path)"});
  CHECK(inside.find("venv/lib/python3.11/site-packages") != std::string::npos);
  CHECK(inside.find("some where/lib/python3.11/site-packages") == std::string::npos);
}

TEST_CASE("a distribution's interpreter brings the wheels of ensurepip, so that an environment made from it has pip") {
  if (no_distribution()) return;
  if (!fs::exists("/usr/share/python-wheels") || !fs::exists("/usr/lib/python3.11/ensurepip/__init__.py")) {
    sealift::test::left_out("needs python3.11-venv");
    return;
  }
  const TempDir scratch, target;
  const Relocated relocated = relocate(kDistribution.string(), scratch.path(), target / "prefix");
  run_checked({(target / "prefix/bin/python3").string(), "-m", "venv", (target / "venv").string()});
  CHECK(
      run_checked({(target / "venv/bin/python").string(), "-m", "pip", "--version"}).find((target / "venv").string()) !=
      std::string::npos);
  const std::string asked = run_checked({(target / "prefix/bin/python3").string(), "-c",
                                         "import ensurepip; print(ensurepip._get_packages()['pip'].wheel_path)"});
  CHECK(asked.starts_with((target / "prefix/lib/python3.11/ensurepip/_bundled/pip-").string()));
}

TEST_CASE("a distribution's interpreter says that packages lie where the installer puts them") {
  if (no_distribution()) return;
  const TempDir scratch, target;
  relocate(kDistribution.string(), scratch.path(), target / "prefix");
  const std::string said = run_checked({(target / "prefix/bin/python3").string(), "-c",
                                        "import sysconfig\nfor key in 'purelib', 'platlib', 'scripts': "
                                        "print(sysconfig.get_path(key))"});
  const std::string packages = (target / "prefix/lib/python3.11/site-packages").string();
  CHECK(said == packages + "\n" + packages + "\n" + (target / "prefix/bin").string() + "\n");
}

TEST_CASE("a distribution's interpreter is taken without tests, caches and its site's settings") {
  if (no_distribution()) return;
  const TempDir scratch, target;
  const Relocated relocated = relocate(kDistribution.string(), scratch.path(), target / "prefix");
  for (const auto& [path, item] : relocated.tree) {
    INFO(path);
    for (const char* part : {"__pycache__", "/test/", "/tests/", "dist-packages", "/config-3"})
      CHECK(path.find(part) == std::string::npos);
    if (item.link) CHECK(item.text.front() != '/');
  }
  CHECK(relocated.tree.at("bin/python3").text == "python3.11");
  CHECK(relocated.tree.contains("lib/python3.11/ensurepip/__init__.py") ==
        fs::exists("/usr/lib/python3.11/ensurepip/__init__.py"));
  CHECK(relocated.tree.at("lib/python3.11/sitecustomize.py").text.find("addsitedir") != std::string::npos);
  // The host's own words are not carried; ours are, so pip changes nothing (PEP 668).
  CHECK(relocated.tree.at("lib/python3.11/EXTERNALLY-MANAGED").text.find("sealift-install venv") != std::string::npos);
  if (fs::exists("/usr/lib/python3/dist-packages/pip"))
    CHECK(run_process({"env", "PIP_CONFIG_FILE=/dev/null", "SEALIFT_PYTHONPATH=/usr/lib/python3/dist-packages",
                       (target / "prefix/bin/python3").string(), "-m", "pip", "install", "--no-index", "nothing"})
              .err.find("sealift-install venv DIR") != std::string::npos);
  CHECK(relocated.tree.contains("lib/libstdc++.so.6"));
  CHECK_FALSE(relocated.tree.contains("lib/libc.so.6"));
  if (relocated.tree.contains("include/python3.11/pyconfig.h"))
    CHECK(read_file(target / "prefix/include/python3.11/pyconfig.h").find("include <x86_64") == std::string::npos);
}

TEST_CASE("an interpreter without modules in lib-dynload runs no .pth file of the host's own Python") {
  if (no_distribution()) return;
  const fs::path hosts = "/usr/lib/python3/dist-packages";
  const TempDir dir, scratch, target;
  make_own_prefix(dir / "own");
  fs::remove_all(dir / "own/lib/python3.11/lib-dynload");
  fs::create_directory(dir / "own/lib/python3.11/lib-dynload");  // nothing in it: no tar has it
  relocate((dir / "own").string(), scratch.path(), target / "prefix");
  const fs::path mark = target / "prefix/lib/python3.11/lib-dynload";
  const std::string python = (target / "prefix/bin/python3").string();
  CHECK(fs::is_directory(mark));
  const std::string ask =
      "import site, sys; print(sys.exec_prefix, [p for p in site.getsitepackages() if p[:5] == '/usr/'])";
  CHECK(run_checked({python, "-I", "-c", ask}) == (target / "prefix").string() + " []\n");
  if (find_program("bwrap").empty() || !fs::is_directory(hosts)) {
    sealift::test::left_out("needs bubblewrap and ", hosts.string());
    return;
  }
  // The host's folder, with a .pth file that says that it was run.
  write_file(dir / "planted/evil.pth", "import sys; sys.stderr.write('was run')\n");
  const auto started = [&] {
    const ProcessResult result = run_process({"bwrap", "--dev-bind", "/", "/", "--ro-bind", (dir / "planted").string(),
                                              hosts.string(), "--", python, "-I", "-c", "print(1)"});
    REQUIRE(result.out == "1\n");
    return result.err;
  };
  CHECK(started().find("was run") == std::string::npos);
  fs::remove_all(mark);  // so this is what the folder is for
  CHECK(started().find("was run") != std::string::npos);
}

TEST_CASE("the same interpreter gives the same tar") {
  if (no_distribution()) return;
  const TempDir one, two, target;
  CHECK(relocate(kDistribution.string(), one.path(), target / "1").tar.sha256 ==
        relocate(kDistribution.string(), two.path(), target / "2").tar.sha256);
}

TEST_CASE("an interpreter with a prefix of its own can be given as a folder") {
  if (no_distribution()) return;
  const TempDir dir, scratch, target;
  make_own_prefix(dir / "own");
  relocate((dir / "own").string(), scratch.path(), target / "prefix");
  fs::remove_all(dir / "own");
  const std::string python = (target / "prefix/bin/python3").string();
  CHECK(run_checked({python, "-I", "-c", "import ssl, sys; print(sys.prefix)"}) == (target / "prefix").string() + "\n");
}

// As the archives are that uv installs: libpython beside, which the program finds by its RUNPATH, a prefix that exists
// nowhere in what sysconfig says, Tcl, terminals and uv's own mark beside the standard library.
TEST_CASE("a tree of the shape of uv's own builds works wherever it is unpacked") {
  if (no_distribution()) return;
  const std::string compiler = find_program("gcc").string();
  if (compiler.empty()) {
    sealift::test::left_out("needs gcc");
    return;
  }
  const TempDir dir, scratch, target;
  const fs::path own = dir / "cpython-3.11.2-linux-x86_64-gnu";
  make_own_prefix(own);
  write_file(dir / "a.c", "int made(void) { return 1; }\n");
  const std::string library = (own / "lib/libpython3.11.so.1.0").string(), program = (own / "bin/python3.11").string();
  run_checked(
      {compiler, "-shared", "-fPIC", "-Wl,-soname,libpython3.11.so.1.0", "-o", library, (dir / "a.c").string()});
  run_checked({"patchelf", "--set-rpath", "$ORIGIN/../lib", program});
  run_checked({"patchelf", "--add-needed", "libpython3.11.so.1.0", program});  // with the former, 0.14 spoils both
  write_file(own / "lib/python3.11/EXTERNALLY-MANAGED", "[externally-managed]\nError=uv\n");
  write_file(own / "lib/tcl8.6/init.tcl", "x\n");
  write_file(own / "share/terminfo/x/xterm", "x");
  fs::path facts;
  for (const fs::directory_entry& entry : fs::directory_iterator(own / "lib/python3.11"))
    if (entry.path().filename().string().starts_with("_sysconfigdata_")) facts = entry.path();
  const std::string said = read_file(facts);
  write_file(facts,
             said +
                 "\nbuild_time_vars = {k: v.replace('/usr', '/install') if isinstance(v, str) else v for k, v in "
                 "build_time_vars.items()}\n");
  const Relocated relocated = relocate(own.string(), scratch.path(), target / "prefix");
  CHECK(relocated.tree.contains("lib/libpython3.11.so.1.0"));
  fs::remove_all(own);
  const std::string python = (target / "prefix/bin/python3").string(), prefix = (target / "prefix").string();
  CHECK(
      run_checked({python, "-I", "-c",
                   "import ssl, ctypes, sqlite3, sys, sysconfig; print(sys.prefix, sysconfig.get_path('purelib'))"}) ==
      prefix + " " + prefix + "/lib/python3.11/site-packages\n");
  CHECK(read_file(target / "prefix/lib/python3.11/EXTERNALLY-MANAGED").find("Error=uv") == std::string::npos);
}

TEST_CASE("search paths that only the packing machine has are taken out of an interpreter with a prefix of its own") {
  if (no_distribution()) return;
  const TempDir dir, scratch, target;
  make_own_prefix(dir / "own");
  const std::string module = "lib/python3.11/lib-dynload/_ssl.cpython-311-x86_64-linux-gnu.so";
  run_checked({"patchelf", "--set-rpath", (dir / "own/lib").string(), (dir / "own" / module).string()});
  relocate((dir / "own").string(), scratch.path(), target / "prefix");
  bundle::FileSource source(target / "prefix" / module);
  CHECK(bundle::read_elf(source)->runpath.empty());
  bundle::FileSource executable(target / "prefix/libexec/python3.11");
  CHECK(bundle::read_elf(executable)->rpath == "$ORIGIN/../lib");
  CHECK(read_file(target / "prefix/bin/python3.11") == read_file(SEALIFT_START));  // the launcher in front of it
}

TEST_CASE("an interpreter can be given as an archive, but only with its digest") {
  if (no_distribution()) return;
  const TempDir dir, scratch;
  make_own_prefix(dir / "python");
  run_checked({"tar", "-cf", (dir / "python.tar").string(), "-C", dir.path().string(), "python"});
  InterpreterChoice choice = choice_of(dir / "python.tar");
  CHECK_REFUSED(find_interpreter(choice, "/no/uv", scratch.path()), Usage, "interpreter_sha256");
  fs::remove_all(scratch / "interpreter");
  choice.sha256 = bundle::Digest{};
  CHECK_REFUSED(find_interpreter(choice, "/no/uv", scratch.path()), Digest, "python.tar");
  fs::remove_all(scratch / "interpreter");
  choice.sha256 = digest_of_file(dir / "python.tar");
  CHECK(find_interpreter(choice, "/no/uv", scratch.path()).prefix == scratch / "interpreter/python");
}

TEST_CASE("an interpreter that is missing or of another version is refused") {
  const TempDir dir;
  InterpreterChoice choice = choice_of(dir / "none");
  CHECK_REFUSED(find_interpreter(choice, "/no/uv", dir.path()), Missing, "not there");
  choice.interpreter = dir.path().string();
  CHECK_REFUSED(find_interpreter(choice, "/no/uv", dir.path()), Missing, "bin/python3.11");
  if (no_distribution()) return;
  choice.interpreter = kDistribution.string();
  choice.version = "3.12";
  CHECK_REFUSED(find_interpreter(choice, "/no/uv", dir.path()), Platform, "3.12");
}

TEST_CASE("a free-threaded interpreter is refused, since its packages are those of another ABI") {
  if (no_distribution()) return;
  const TempDir dir;
  write_file(dir / "python3.11",
             "#!/bin/sh\nexec " + kDistribution.string() +
                 " -I -c 'import sys, sysconfig; sysconfig.get_config_vars()[\"Py_GIL_DISABLED\"] = 1; "
                 "exec(sys.argv[1])' \"$3\"\n");
  fs::permissions(dir / "python3.11", fs::perms(0755));
  CHECK_REFUSED(find_interpreter(choice_of(dir / "python3.11"), "/no/uv", dir.path()), Platform, "another ABI");
}

TEST_CASE("an interpreter for a newer system, and one that does not start, are refused with what to do") {
  const TempDir dir;
  const auto stand_in = [&](const std::string& says) {
    write_file(dir / "python3.11", "#!/bin/sh\ncat >&2 << 'END'\n" + says + "\nEND\nexit 1\n");
    fs::permissions(dir / "python3.11", fs::perms(0755));
  };
  stand_in("/lib/libc.so.6: version `GLIBC_2.38' not found (required by python3.11)");
  CHECK_REFUSED(find_interpreter(choice_of(dir / "python3.11"), "/no/uv", dir.path()), Platform, "a container will do");
  stand_in("no");
  CHECK_REFUSED(find_interpreter(choice_of(dir / "python3.11"), "/no/uv", dir.path()), Platform, "does not start here");
}

TEST_CASE("links that leave the standard library become files or nothing") {
  if (no_distribution()) return;
  const TempDir dir, scratch, target;
  make_own_prefix(dir / "own");
  write_file(dir / "outside.py", "ANSWER = 7\n");
  fs::create_symlink(dir / "outside.py", dir / "own/lib/python3.11/linked_outside.py");
  fs::create_symlink("/no/such/file", dir / "own/lib/python3.11/dangling.py");
  fs::create_symlink("abc.py", dir / "own/lib/python3.11/linked_inside.py");
  const Relocated relocated = relocate((dir / "own").string(), scratch.path(), target / "prefix");
  CHECK_FALSE(relocated.tree.at("lib/python3.11/linked_outside.py").link);
  CHECK_FALSE(relocated.tree.contains("lib/python3.11/dangling.py"));
  CHECK(relocated.tree.at("lib/python3.11/linked_inside.py").link);
  CHECK(read_file(target / "prefix/lib/python3.11/linked_outside.py") == "ANSWER = 7\n");
}

TEST_CASE("extension modules whose libraries are not there are left out") {
  if (no_distribution()) return;
  const TempDir dir, scratch, target;
  make_own_prefix(dir / "own");
  write_file(dir / "gone.c", "int gone(void) { return 1; }\n");
  write_file(dir / "user.c", "int gone(void);\nint user(void) { return gone(); }\n");
  const std::string folder = dir.path().string();
  run_checked({"cc", "-shared", "-fPIC", "-Wl,-soname,libgone.so", "-o", folder + "/libgone.so", folder + "/gone.c"});
  run_checked({"cc", "-shared", "-fPIC", "-o", folder + "/own/lib/python3.11/lib-dynload/_incomplete.so",
               folder + "/user.c", "-L" + folder, "-lgone"});
  const Relocated relocated = relocate((dir / "own").string(), scratch.path(), target / "prefix");
  CHECK_FALSE(relocated.tree.contains("lib/python3.11/lib-dynload/_incomplete.so"));
  CHECK(relocated.tree.contains("lib/python3.11/lib-dynload/_ssl.cpython-311-x86_64-linux-gnu.so"));
}

TEST_CASE("a tree is written in one way, with long names, and links that leave it are refused") {
  const TempDir dir;
  Tree tree;
  tree["a/" + std::string(150, 'n')] = {.text = "long"};
  tree["a/run"] = {.text = "#!/bin/sh\n", .executable = true};
  tree["b"] = {.text = "a/run", .link = true};
  const TreeTar tar = write_tree_tar(tree, dir / "one.tar");
  CHECK(digest_of_file(dir / "one.tar") == tar.sha256);
  CHECK(fs::file_size(dir / "one.tar") == tar.size);
  fs::create_directory(dir / "out");
  run_checked({"tar", "-xf", (dir / "one.tar").string(), "-C", (dir / "out").string()});
  CHECK(read_file(dir / ("out/a/" + std::string(150, 'n'))) == "long");
  CHECK(fs::read_symlink(dir / "out/b") == "a/run");
  CHECK((fs::status(dir / "out/a/run").permissions() & fs::perms::owner_exec) != fs::perms::none);
  tree["c"] = {.text = "../outside", .link = true};
  CHECK_REFUSED(write_tree_tar(tree, dir / "two.tar"), Format, "leaves the tree");
}
