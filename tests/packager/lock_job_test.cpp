// SPDX-License-Identifier: Apache-2.0
// From job file to lock, with uv played by a script; then the program itself, from outside.
#include "packager/lock_job.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <sstream>
#include <thread>

#include "packager/files/cache.hpp"
#include "packager/files/replace_text.hpp"
#include "packager/host/process.hpp"
#include "packager/pack/contents.hpp"
#include "packager/pack/pack_plan.hpp"
#include "tests/packager/desk.hpp"
#include "tests/support/refusal.hpp"

using namespace sealift;
using namespace sealift::packager;
using sealift::test::Desk;
using sealift::test::kPython;
using sealift::test::no_python;
using sealift::test::read_file;
using sealift::test::TempDir;
using sealift::test::write_file;
namespace fs = std::filesystem;

TEST_CASE("a job becomes a lock beside it, with uv's own answer as evidence and the interpreter in the cache") {
  if (no_python()) return;
  ::setenv("SOURCE_DATE_EPOCH", "1700000000", 1);
  const Desk desk;
  const LockResult result = desk.lock();
  CHECK(result.file == desk.dir / "de.mo.lock.toml");
  CHECK(read_lock(result.file) == result.lock);
  CHECK(result.lock.created == "2023-11-14T22:13:20Z");
  CHECK(fs::exists(desk.dir / "pylock.de-mo.toml"));
  REQUIRE(result.lock.wheels.size() == 1);
  CHECK(result.lock.wheels[0].size == fs::file_size(desk.dir / "wheels/demo-1.0-py3-none-any.whl"));
  const Cache cache(desk.dir / "cache");
  CHECK(digest_of_file(cache.path(result.lock.interpreter.sha256)) == result.lock.interpreter.sha256);
  CHECK(result.lock.glibc_floor <= bundle::GlibcVersion{2, 36});

  SUBCASE("locking again gives the same bytes") {
    const std::string before = read_file(result.file);
    desk.lock();
    CHECK(read_file(result.file) == before);
  }
  ::unsetenv("SOURCE_DATE_EPOCH");
}

TEST_CASE("a job of data alone needs no interpreter and no uv, and its lock reads back as it was") {
  const TempDir dir;
  write_file(dir / "rows/a.jsonl", "{}\n");
  write_file(dir / "job.toml",
             "name = \"rows\"\nversion = 1\n[target]\narch = \"x86_64\"\nglibc = \"2.36\"\n[[data]]\nsource = "
             "\"rows\"\n");
  bundle::Progress progress(nullptr);
  const LockResult result = lock_job({.job = dir / "job.toml", .cache = dir / "cache", .uv = dir / "no uv"}, progress);
  CHECK(result.lock.python.empty());
  CHECK(read_lock(result.file) == result.lock);
  const std::vector<Content> contents = contents_of(result.lock);
  REQUIRE(contents.size() == 1);
  CHECK(contents[0].into == "data/rows/a.jsonl");
  CHECK(plan_pack(result.lock, contents, {}, Cache(dir / "cache"), {}).draft.environment.interpreter ==
        bundle::Environment().interpreter);
}

TEST_CASE("a misspelt import is known at lock, by the directory of a wheel that nobody has fetched yet") {
  if (no_python()) return;
  const Desk desk;
  const std::string good = read_file(desk.dir / "job.toml"), key = "imports = [\"demo\"]";
  const auto locked = [&](const std::string& imports) {
    std::string job = good;
    write_file(desk.dir / "job.toml", job.replace(job.find(key), key.size(), "imports = " + imports));
    return desk.lock();
  };
  CHECK_REFUSED(locked("[\"demo\", \"dmeo\"]"), Usage, "'demo' perhaps");
  CHECK_REFUSED(locked("[\"dmeo.sub\"]"), Usage, "dmeo.sub");
  CHECK_REFUSED(locked("[\"jsno\"]"), Usage, "'json' perhaps");
  CHECK_NOTHROW(locked("[\"demo\", \"json\", \"sys\", \"ctypes\", \"zlib\"]"));
  // A package with a module of another name is found by what its wheel holds.
  const test::TinyWheel other{.name = "pyother", .files = {{"other_name/__init__.py", ""}, {"single.py", ""}}};
  const std::string bytes = test::make_wheel(other);
  write_file(desk.dir / ("wheels/" + other.file_name()), bytes);
  std::string uv = read_file(desk.dir / "uv");
  uv.insert(uv.rfind("END\n"), "[[packages]]\nname = \"pyother\"\nversion = \"1.0\"\narchive = { path = \"wheels/" +
                                   other.file_name() + "\", hashes = { sha256 = \"" +
                                   bundle::sha256(bundle::as_bytes(bytes)).hex() + "\" } }\n");
  write_file(desk.dir / "uv", uv);
  CHECK_NOTHROW(locked("[\"other_name.sub\", \"single\"]"));
  CHECK_REFUSED(locked("[\"singel\"]"), Usage, "'single' perhaps");
}

TEST_CASE("lock refuses what wheels must not have before any of them is fetched") {
  if (no_python()) return;
  const Desk desk;
  SUBCASE("code that runs when Python starts, and a place that no wheel may write to, in one message") {
    const bundle::Digest first = desk.add({.name = "starter", .files = {{"starter.pth", "import sys; sys.flags\n"}}});
    desk.add({.name = "placer", .files = {{"placer-1.0.data/data/elsewhere/readme.txt", "x"}}});
    const bundle::Error error = test::refusal([&] { desk.lock(); });
    INFO(error.what());
    CHECK(test::mentions(error, "2 wheels are not acceptable"));
    CHECK(test::mentions(error, "package = \"starter\""));
    CHECK(test::mentions(error, "elsewhere/readme.txt"));
    CHECK_FALSE(Cache(desk.dir / "cache").contains(first));
  }
  SUBCASE("two wheels with one path") {
    desk.add({.name = "one", .files = {{"both/__init__.py", "1"}}});
    desk.add({.name = "two", .files = {{"both/__init__.py", "2"}}});
    CHECK_REFUSED(desk.lock(), Conflict, "both/__init__.py: one-1.0-py3-none-any.whl and two-1.0-py3-none-any.whl");
  }
  CHECK_FALSE(fs::exists(desk.dir / "de.mo.lock.toml"));
}

TEST_CASE("wheels' faults are one message, and its rules, pasted whole, end in a lock") {
  if (no_python()) return;
  const Desk desk;
  desk.add({.name = "starter", .files = {{"starter.pth", "import sys; sys.flags\n"}}});
  desk.add({.name = "second_starter", .files = {{"second.pth", "import sys; sys.path\n"}}});
  desk.add({.name = "one", .files = {{"both/__init__.py", "1"}, {"both/more.py", "1"}}});
  desk.add({.name = "two", .files = {{"both/__init__.py", "2"}, {"both/more.py", "2"}}});
  const bundle::Error error = test::refusal([&] { desk.lock(); });
  INFO(error.what());
  CHECK(test::mentions(error, "both/__init__.py: one-1.0-py3-none-any.whl and two-1.0-py3-none-any.whl"));
  std::istringstream said(error.what());
  std::string rules;
  bool inside = false;
  for (std::string line; std::getline(said, line);) {
    const std::size_t begin = std::min(line.find_first_not_of(' '), line.size());
    const bool head = line.compare(begin, 2, "[[") == 0;
    inside = head || (inside && line.find(" = ") != line.npos);
    if (inside) rules += line + "\n";  // as it stands there, with its blanks
  }
  CHECK(rules.find("[[startup]]") != rules.npos);
  CHECK(rules.find("[[owner]]") != rules.npos);
  write_file(desk.dir / "job.toml", read_file(desk.dir / "job.toml") + rules);
  const LockResult result = desk.lock();
  CHECK(result.lock.startup_files.size() == 2);
  CHECK(result.lock.owners.size() == 1);
}

TEST_CASE("a job file's faults are one message, whichever tables they are in") {
  if (no_python()) return;
  const Desk desk;
  std::string text = read_file(desk.dir / "job.toml");
  text.replace(text.find("version = 4"), 11, "versoin = 4\nchanel = \"main\"");
  text.replace(text.find("requirements ="), 14, "requirement =");
  text += "[[model]]\nfromm = \"/nowhere\"\n[environment]\nLD_PRELOAD = \"x\"\n";
  write_file(desk.dir / "job.toml", text);
  const bundle::Error error = test::refusal([&] { desk.lock(); });
  INFO(error.what());
  CHECK(error.code() == bundle::ErrorCode::Usage);
  for (const char* told : {"line 2, key 'versoin': a key is not known", "'version' perhaps, which is missing",
                           "line 3, key 'chanel'", "key 'python.requirement'", "key 'model.source'", "LD_PRELOAD"})
    CHECK_MESSAGE(test::mentions(error, told), told);
}

TEST_CASE("what is wrong with packages and what is wrong with models is one message") {
  if (no_python()) return;
  const Desk desk;
  write_file(desk.dir / "uv", "#!/bin/sh\ncase \"$*\" in *canary*) echo '" + std::string(kRunsNothing) +
                                  "' >&2;; *) echo 'demo was not found in the package registry' >&2;; esac\nexit 1\n");
  write_file(desk.dir / "weights/config.json", "not JSON");
  write_file(desk.dir / "job.toml",
             read_file(desk.dir / "job.toml") + "[[model]]\nsource = \"weights\"\ninto = \"models/w\"\n");
  const bundle::Error error = test::refusal([&] { desk.lock(); });
  INFO(error.what());
  CHECK(test::mentions(error, "2 parts of the job are refused"));
  CHECK(test::mentions(error, "demo was not found"));
  CHECK(test::mentions(error, "config.json"));
}

TEST_CASE("images and rpm packages are refused in the same message as Python packages") {
  if (no_python()) return;
  const Desk desk;
  write_file(desk.dir / "uv", "#!/bin/sh\ncase \"$*\" in *canary*) echo '" + std::string(kRunsNothing) +
                                  "' >&2;; *) echo 'demo was not found in the package registry' >&2;; esac\nexit 1\n");
  fs::create_directories(desk.dir / "empty");
  write_file(
      desk.dir / "job.toml",
      read_file(desk.dir / "job.toml") +
          "[[image]]\nname = \"app\"\ntag = \"1\"\nsource = \"oci:empty:1\"\n[rpm]\npackages = [\"tool\"]\nrelease "
          "= \"9\"\n[[rpm.repository]]\nname = \"none\"\nurl = \"file:///nowhere\"\nsigned = \"nothing\"\n");
  const std::string path = std::getenv("PATH");
  ::setenv("PATH", (desk.dir / "empty").c_str(), 1);  // neither skopeo nor dnf, on any machine
  const bundle::Error error = test::refusal([&] { desk.lock(); });
  ::setenv("PATH", path.c_str(), 1);
  INFO(error.what());
  CHECK(test::mentions(error, "3 parts of the job are refused"));
  for (const char* told : {"demo was not found", "skopeo", "dnf"}) CHECK_MESSAGE(test::mentions(error, told), told);
}

TEST_CASE("a path with two owners does not hide a package with two, and following both remedies ends in a lock") {
  if (no_python()) return;
  const Desk desk;
  desk.add({.name = "one", .files = {{"both/__init__.py", "1"}, {"host/__init__.py", "x = 1\n"}}});
  desk.add({.name = "two", .files = {{"both/__init__.py", "2"}, {"host/guest.py", "2"}}});
  const bundle::Error error = test::refusal([&] { desk.lock(); });
  INFO(error.what());
  CHECK(error.code() == bundle::ErrorCode::Conflict);
  CHECK(test::mentions(error, "[[owner]]"));
  CHECK(test::mentions(error, "[[shared]]"));
  CHECK(test::mentions(error, "into = \"host\""));
  write_file(desk.dir / "job.toml",
             read_file(desk.dir / "job.toml") +
                 "[[owner]]\npath = \"both/__init__.py\"\npackage = \"one\"\n[[shared]]\npackage = \"two\"\ninto = "
                 "\"host\"\n");
  CHECK(desk.lock().lock.shared.size() == 1);
}

TEST_CASE("a lock that the job brings is not written over, whatever its name") {
  if (no_python()) return;
  const Desk desk;
  const std::string brought = "lock-version = \"1.0\"\n# mine\n";
  write_file(desk.dir / "pylock.de-mo.toml", brought);
  std::string job = read_file(desk.dir / "job.toml");
  const std::string requirements = "requirements = [\"demo\"]";
  write_file(desk.dir / "job.toml",
             job.replace(job.find(requirements), requirements.size(), "lock_file = \"pylock.de-mo.toml\""));
  CHECK(desk.lock().lock.wheels.size() == 1);
  CHECK(read_file(desk.dir / "pylock.de-mo.toml") == brought);
}

TEST_CASE("a lock for a CUDA that the profile's driver does not run is refused, or made where the job overrules it") {
  if (no_python()) return;
  const Desk desk;
  const test::TinyWheel cuda{.name = "nvidia_cuda_runtime", .version = "13.0.96", .files = {{"nvidia/cu13/x", ""}}};
  const std::string bytes = test::make_wheel(cuda);
  write_file(desk.dir / ("wheels/" + cuda.file_name()), bytes);
  std::string uv = read_file(desk.dir / "uv");
  uv.insert(uv.rfind("END\n"),
            "[[packages]]\nname = \"nvidia-cuda-runtime\"\nversion = \"13.0.96\"\narchive = { path = "
            "\"wheels/" +
                cuda.file_name() + "\", hashes = { sha256 = \"" + bundle::sha256(bundle::as_bytes(bytes)).hex() +
                "\" } }\n");
  write_file(desk.dir / "uv", uv);
  fs::permissions(desk.dir / "uv", fs::perms(0755));
  std::string job = read_file(desk.dir / "job.toml");
  job.insert(job.find("[python]"), "driver = \"535.183.06\"\n");
  write_file(desk.dir / "job.toml", job);
  CHECK_REFUSED(
      desk.lock(), Platform,
      cuda.file_name() + " brings CUDA 13, which needs NVIDIA's driver 580 or newer; the target has 535.183.06");
  CHECK_FALSE(fs::exists(desk.dir / "de.mo.lock.toml"));
  job.insert(job.find("[python]"), "overrule = [\"driver\"]\n");
  write_file(desk.dir / "job.toml", job);
  desk.lock();
  CHECK(read_lock(desk.dir / "de.mo.lock.toml").overruled == std::vector<std::string>{"driver"});
}

TEST_CASE("an interpreter that needs a newer glibc than the target has is refused with what needs it") {
  if (no_python()) return;
  const Desk desk("2.17");
  CHECK_REFUSED(desk.lock(), Platform, "bin/python3.11 needs");
  CHECK_REFUSED(desk.lock(), Platform, "[target] runtime = \"carried\"");
  CHECK_FALSE(fs::exists(desk.dir / "de.mo.lock.toml"));
  write_file(desk.dir / "uv", "#!/bin/sh\ntouch '" + (desk.dir / "asked").string() + "'\nexit 1\n");
  CHECK_REFUSED(desk.lock(), Platform, "bin/python3.11 needs");
  CHECK_FALSE(fs::exists(desk.dir / "asked"));  // known before packages are resolved
}

TEST_CASE("with a carried runtime the target's old glibc does not matter, and all programs are started through it") {
  if (no_python()) return;
  const Desk desk("2.17");
  std::string job = read_file(desk.dir / "job.toml");
  const std::string key = "glibc = \"2.17\"\n";
  job.insert(job.find(key) + key.size(), "runtime = \"carried\"\n");
  write_file(desk.dir / "job.toml", job +
                                        "[[program]]\nsource = \"/usr/bin/env\"\ninto = \"bin/env\"\n"
                                        "[[program]]\nsource = \"uv\"\ninto = \"bin/script\"\n");
  std::FILE* stream = std::fopen((desk.dir / "said").c_str(), "w");
  const Lock lock = desk.lock(stream).lock;
  std::fclose(stream);
  CHECK(read_lock(desk.dir / "de.mo.lock.toml") == lock);
  CHECK(lock.target.glibc == bundle::GlibcVersion{2, 17});
  REQUIRE(lock.runtime);
  CHECK(lock.runtime->glibc >= lock.glibc_floor);
  CHECK(lock.glibc_floor > lock.target.glibc);
  REQUIRE(lock.programs.size() == 3);
  CHECK(lock.programs[0].into == "libexec/env");
  CHECK(lock.programs[1].into == "bin/env");
  CHECK(lock.programs[2].into == "bin/script");
  CHECK(read_file(desk.dir / "said").find("search path") == std::string::npos);
  const std::string tree = run_checked({"tar", "tf", Cache(desk.dir / "cache").path(lock.interpreter.sha256).string()});
  for (const char* file : {"lib/runtime/ld-linux-x86-64.so.2\n", "lib/runtime/libc.so.6\n", "lib/libstdc++.so.6\n"})
    CHECK(tree.find(file) != std::string::npos);
}

TEST_CASE("a program is locked with what wheels must bring it, and warned about when it cannot see lib/") {
  if (no_python()) return;
  const Desk desk;
  const std::string folder = desk.dir.path().string();
  write_file(desk.dir / "tensor.c", "int tensor(void) { return 1; }\n");
  write_file(desk.dir / "main.c", "int tensor(void);\nint main(void) { return tensor(); }\n");
  run_checked(
      {"cc", "-shared", "-fPIC", "-Wl,-soname,libtensor.so", "-o", folder + "/libtensor.so", folder + "/tensor.c"});
  const auto build = [&](const std::string& name, const std::string& flag) {
    run_checked({"cc", "-o", folder + "/" + name, folder + "/main.c", "-L" + folder, "-ltensor", "-Wl,--no-as-needed",
                 "-lz", flag});
  };
  desk.add({.name = "tensor", .files = {{"tensor/libtensor.so", "x"}}});
  build("blind", "-Wl,-rpath,/nowhere");
  build("seeing", "-Wl,-rpath,$ORIGIN/../lib");
  fs::remove(desk.dir / "libtensor.so");
  write_file(desk.dir / "job.toml", read_file(desk.dir / "job.toml") +
                                        "[[program]]\nsource = \"blind\"\ninto = \"bin/blind\"\n"
                                        "[[program]]\nsource = \"seeing\"\ninto = \"bin/seeing\"\n");
  std::FILE* stream = std::fopen((desk.dir / "said").c_str(), "w");
  const LockResult result = desk.lock(stream);
  std::fclose(stream);
  REQUIRE(result.lock.programs.size() == 3);  // the launcher stands in front of the program with $ORIGIN
  CHECK(result.lock.programs[0].into == "bin/blind");
  CHECK(result.lock.programs[1].into == "libexec/seeing");
  CHECK(result.lock.programs[2].into == "bin/seeing");
  CHECK(result.lock.programs[2].source == fs::canonical(SEALIFT_START));
  CHECK(result.lock.programs[0].from_wheels == std::vector<std::string>{"libtensor.so"});
  const std::string said = read_file(desk.dir / "said");
  CHECK(said.find("warning: bin/blind needs carried libraries") != std::string::npos);
  CHECK(said.find("bin/seeing") == std::string::npos);
}

TEST_CASE("rules under [[owner]] are judged by lock, by packages and by paths, wherever the wheels are") {
  if (no_python()) return;
  const Desk desk;
  const std::string job = read_file(desk.dir / "job.toml");
  const auto with_rule = [&](const std::string& package) {
    write_file(desk.dir / "job.toml", job + "[[owner]]\npath = \"demo\"\npackage = \"" + package + "\"\n");
  };
  with_rule("elsewhere");
  CHECK_REFUSED(desk.lock(), Usage, "package = \"elsewhere\": no such package is locked");
  with_rule("demo");
  CHECK_REFUSED(desk.lock(), Usage, "nothing to decide");
  const fs::path wheel = desk.dir / "wheels/demo-1.0-py3-none-any.whl", copy = desk.dir / "copy.whl";
  fs::copy_file(wheel, copy);
  Cache(desk.dir / "cache").adopt(copy, digest_of_file(copy));
  CHECK_REFUSED(desk.lock(), Usage, "nothing to decide");
}

TEST_CASE("the program packs from job to bundle and shows it") {
  if (no_python()) return;
  const Desk desk;
  desk.add({.name = "wandb", .files = {{"wandb/__init__.py", ""}}});
  const std::string program = SEALIFT_PACK, folder = desk.dir.path().string();
  const std::string fingerprint = run_checked({program, "keygen", folder + "/keys"});
  CHECK(fingerprint == read_file(desk.dir / "keys/root.fingerprint"));
  const std::map<std::string, std::string> environment = {{"SEALIFT_CACHE", folder + "/cache"},
                                                          {"SEALIFT_UV", folder + "/uv"}};
  const std::string lock =
      run_checked({program, "lock", folder + "/job.toml", "-o", folder + "/my.lock.toml"}, environment);
  CHECK(lock == folder + "/my.lock.toml\n");
  write_file(desk.dir / "installer", "#!/bin/sh\n");
  write_file(desk.dir / "audit.sh", "#!/bin/sh\n");
  const ProcessResult created =
      run_process({program, "create", folder + "/my.lock.toml", "--root", folder + "/keys/root.1.json", "--key",
                   folder + "/keys/release.key", "-o", folder + "/out", "--installer", folder + "/installer",
                   "--volume-size", "4M", "--no-rehearsal", "--json"},
                  environment);
  REQUIRE(created.exit_code == 0);
  CHECK(created.out.find("\"bundle\":\"" + folder + "/out/de.mo-4\"") != std::string::npos);
  CHECK(created.err.find("writing de.mo-4") != std::string::npos);
  CHECK(created.err.find("offline: 1 finding(s), as lock explained them") != std::string::npos);
  CHECK(created.err.find("warning: wandb") == std::string::npos);
  const std::string shown = run_checked(
      {program, "inspect", folder + "/out/de.mo-4", "--fingerprint", fingerprint.substr(0, fingerprint.size() - 1)});
  CHECK(shown.find("wheels/demo-1.0-py3-none-any.whl") != std::string::npos);
}

TEST_CASE("the program answers mistakes with the code of their kind and says what to do") {
  const TempDir dir;
  const std::string program = SEALIFT_PACK, folder = dir.path().string();
  CHECK(run_process({program}).exit_code == 2);
  CHECK(run_process({program, "crate"}).exit_code == 2);
  CHECK(run_process({program, "create", "--bogus"}).exit_code == 2);
  const ProcessResult missing = run_process({program, "inspect", folder});
  CHECK(missing.exit_code == 7);
  CHECK(missing.out.empty());
  CHECK(missing.err.starts_with("error[missing]: "));
  const ProcessResult wrong = run_process({program, "lock", "--json"});
  CHECK(wrong.exit_code == 2);
  CHECK(wrong.out.starts_with("{\"error\":{\"code\":\"usage\",\"exit\":2,"));
  CHECK(wrong.err.starts_with("error[usage]: JOB is required"));
  run_checked({program, "keygen", folder});
  CHECK(run_process({program, "keygen", folder}).exit_code == 10);
  CHECK(run_checked({program, "--version"}).starts_with("sealift-pack "));
  for (const char* verb : {"keygen", "lock", "create", "inspect", "sign", "recut", "rehearse", "diff"})
    CHECK(run_checked({program, verb, "--help"}).find("--json") != std::string::npos);
}

TEST_CASE("two locks in one folder at once each get uv's answer to their own job") {
  if (no_python()) return;
  const Desk desk;
  // The first one's uv has answered, and ends only when the second lock is done.
  const std::string folder = desk.dir.path().string(), plain = read_file(desk.dir / "uv");
  write_file(desk.dir / "slow",
             plain + ": > " + folder + "/answered\nwhile [ ! -e " + folder + "/done ]; do sleep 0.01; done\n");
  fs::permissions(desk.dir / "slow", fs::perms(0755));
  std::string job = read_file(desk.dir / "job.toml");
  write_file(desk.dir / "other.toml", job.replace(job.find("de.mo"), 5, "other"));
  std::string fault, second_fault;
  LockResult first;
  std::jthread slow([&] {
    bundle::Progress silent(nullptr);
    try {
      first = lock_job({.job = desk.dir / "job.toml", .cache = desk.dir / "cache", .uv = desk.dir / "slow"}, silent);
    } catch (const std::exception& error) {
      fault = error.what();
    }
  });
  while (!fs::exists(desk.dir / "answered")) std::this_thread::yield();
  bundle::Progress silent(nullptr);
  LockResult second;
  try {
    second = lock_job({.job = desk.dir / "other.toml", .cache = desk.dir / "cache", .uv = desk.dir / "uv"}, silent);
  } catch (const std::exception& error) {
    second_fault = error.what();
  }
  write_file(desk.dir / "done", "");  // in any case, else the first never ends
  slow.join();
  CHECK(fault == "");
  CHECK(second_fault == "");
  CHECK(first.lock.wheels.size() == 1);
  CHECK(second.lock.wheels.size() == 1);
  for (const fs::directory_entry& entry : fs::directory_iterator(desk.dir.path())) {
    INFO(entry.path().string());
    CHECK(entry.path().filename().string().find("being-made") == std::string::npos);
    CHECK_FALSE(entry.path().filename().string().starts_with(".new"));
  }
}

TEST_CASE("a file that is replaced may be named without its folder") {
  const test::TempDir dir;
  const fs::path before = fs::current_path();
  fs::current_path(dir.path());
  CHECK_NOTHROW(replace_text("root.2.json", "new"));
  fs::current_path(before);
  CHECK(read_file(dir / "root.2.json") == "new");
  CHECK(std::distance(fs::directory_iterator(dir.path()), {}) == 1);
}

TEST_CASE("a lock that is replaced by several at once is one of theirs at any moment") {
  const test::TempDir dir;
  const fs::path file = dir / "demo.lock.toml";
  const std::string texts[] = {std::string(200'000, 'a'), std::string(300'000, 'b'), std::string(100, 'c')};
  replace_text(file, texts[0]);
  std::atomic<bool> mixed{false};
  std::vector<std::string> faults(3);
  {
    std::vector<std::jthread> writers;
    for (std::size_t i = 0; i < faults.size(); ++i)
      writers.emplace_back([&, i] {
        try {
          for (int round = 0; round < 30; ++round) {
            replace_text(file, texts[i]);
            const std::string there = read_file(file);
            if (std::find(std::begin(texts), std::end(texts), there) == std::end(texts)) mixed = true;
          }
        } catch (const std::exception& error) {
          faults[i] = error.what();
        }
      });
  }
  for (const std::string& fault : faults) CHECK(fault == "");
  CHECK_FALSE(mixed);
  CHECK(std::distance(fs::directory_iterator(dir.path()), {}) == 1);
}
