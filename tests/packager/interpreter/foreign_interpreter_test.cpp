// SPDX-License-Identifier: Apache-2.0
// An interpreter for another kind of processor is read as it would describe itself. Played by this machine's own, whose
// program says in its header that it is for aarch64.
#include "packager/interpreter/foreign_interpreter.hpp"

#include <doctest/doctest.h>
#include <elf.h>

#include <fstream>
#include <set>

#include "packager/host/own_program.hpp"
#include "packager/host/process.hpp"
#include "packager/interpreter/interpreter.hpp"
#include "tests/support/left_out.hpp"
#include "tests/support/refusal.hpp"
#include "tests/support/temp_dir.hpp"

using namespace sealift;
using namespace sealift::packager;
using sealift::test::TempDir;
using sealift::test::write_file;
namespace fs = std::filesystem;

namespace {

const fs::path kOwnPython = "/usr/bin/python3.11", kOwnLibrary = "/usr/lib/python3.11";

void call_it_arm(const fs::path& program) {
  std::fstream file(program, std::ios::binary | std::ios::in | std::ios::out);
  const Elf64_Half machine = EM_AARCH64;
  file.seekp(offsetof(Elf64_Ehdr, e_machine)).write(reinterpret_cast<const char*>(&machine), sizeof machine);
  REQUIRE(file.flush());
}

// PREFIX as Debian's arm64 packages or uv have it; false where this machine has no such Python.
bool make_foreign(const fs::path& prefix) {
  if (!fs::exists(kOwnPython) || machine_arch() != "x86_64") {
    sealift::test::left_out("needs ", kOwnPython.string(), " on x86_64");
    return false;
  }
  fs::create_directories(prefix / "bin");
  fs::create_directories(prefix / "lib/python3.11");
  fs::copy_file(kOwnPython, prefix / "bin/python3.11");
  call_it_arm(prefix / "bin/python3.11");
  for (const fs::directory_entry& entry : fs::directory_iterator(kOwnLibrary)) {
    const std::string name = entry.path().filename().string();
    if (name == "os.py" || name == "site.py" || name.starts_with("_sysconfigdata_"))
      fs::copy_file(fs::canonical(entry.path()), prefix / "lib/python3.11" / name);
  }
  for (const fs::directory_entry& module : fs::directory_iterator(kOwnLibrary / "lib-dynload"))
    write_file(prefix / "lib/python3.11/lib-dynload" / module.path().filename(), "");
  return true;
}

InterpreterChoice arm_choice(const fs::path& interpreter) {
  return {.version = "3.11", .interpreter = interpreter.string(), .asked_in = "job.toml", .arch = "aarch64"};
}

}  // namespace

TEST_CASE("an interpreter that cannot be run here is read, and says what it would say") {
  const TempDir dir;
  if (!make_foreign(dir / "python")) return;
  const Interpreter read = find_interpreter(arm_choice(dir / "python"), "/no/uv", dir.path());
  const Interpreter asked =
      find_interpreter({.version = "3.11", .interpreter = kOwnPython.string()}, "/no/uv", dir.path());
  CHECK(read.version == asked.version);
  CHECK(read.minor == "3.11");
  CHECK(read.executable == dir / "python/bin/python3.11");
  CHECK(read.prefix == dir / "python");
  CHECK(read.stdlib == dir / "python/lib/python3.11");
  CHECK(read.finds_site_packages == asked.finds_site_packages);
  const std::set<std::string> builtin(read.builtin_modules.begin(), read.builtin_modules.end());
  for (const std::string& module : asked.builtin_modules) CHECK_MESSAGE(builtin.contains(module), module);
  CHECK_FALSE(builtin.contains("_ssl"));  // named as built in by _sysconfigdata, and a file
  write_file(dir / "python/lib/python3.11/site.py", "# python-build-standalone's own\n");
  CHECK(find_interpreter(arm_choice(dir / "python"), "/no/uv", dir.path()).finds_site_packages);
}

TEST_CASE("an interpreter for another architecture than the target's is refused, whichever of them is this machine's") {
  const TempDir dir;
  if (!make_foreign(dir / "python")) return;
  CHECK_REFUSED(find_interpreter(arm_choice(kOwnPython), "/no/uv", dir.path()), Platform, "another architecture");
  InterpreterChoice own = arm_choice(dir / "python");
  own.arch = "x86_64";
  CHECK_REFUSED(find_interpreter(own, "/no/uv", dir.path()), Platform, "aarch64");
  own.arch = "";
  CHECK_REFUSED(find_interpreter(own, "/no/uv", dir.path()), Platform, "aarch64");
}

TEST_CASE("an interpreter whose files do not tell its version or layout is refused") {
  const TempDir dir;
  if (!make_foreign(dir / "python")) return;
  const fs::path program = dir / "python/bin/python3.11";
  const auto add = [&](std::string_view text) { std::ofstream(program, std::ios::binary | std::ios::app) << text; };
  const auto found = [&] { return find_interpreter(arm_choice(dir / "python"), "/no/uv", dir.path()); };
  using namespace std::string_view_literals;
  add("\0since 3.11.9\0x3.11.8\0003.11.\0003.11.x\0"sv);  // no versions that stand alone
  CHECK_NOTHROW(found());
  add("\0003.11.77\0"sv);
  CHECK_REFUSED(found(), Platform, "3.11.77");
  fs::remove(dir / "python/lib/python3.11/os.py");
  CHECK_REFUSED(found(), Platform, "no os.py");
  std::ofstream(program, std::ios::binary).write(test::read_file("/proc/self/exe").data(), 4096);
  CHECK_THROWS(found());  // a broken program
}

TEST_CASE("of the interpreters that uv has installed for an architecture the newest is taken") {
  const TempDir dir;
  write_file(dir / "uv", "#!/bin/sh\necho '" + (dir / "pythons").string() + "'\n");
  fs::permissions(dir / "uv", fs::perms(0755));
  CHECK_REFUSED(find_foreign("3.11", "aarch64", dir / "uv", "job.toml"), Missing,
                "uv python install cpython-3.11-linux-aarch64-gnu");
  for (const char* name :
       {"cpython-3.11.9-linux-aarch64-gnu", "cpython-3.11.14-linux-aarch64-gnu", "cpython-3.11.15-linux-x86_64-gnu",
        "cpython-3.12.20-linux-aarch64-gnu", "cpython-3.11.16-linux-aarch64-musl"})
    write_file(dir / "pythons" / name / "bin/python3.11", "");
  CHECK(find_foreign("3.11", "aarch64", dir / "uv", "job.toml") ==
        dir / "pythons/cpython-3.11.14-linux-aarch64-gnu/bin/python3.11");
}

TEST_CASE("the programs that travel to another architecture lie in a folder of its name, or are named") {
  CHECK_REFUSED(find_own_program({}, "sealift-start", "--launcher", "aarch64"), Missing, "/aarch64/sealift-start");
  CHECK_REFUSED(find_own_program(SEALIFT_START, "sealift-start", "--launcher", "aarch64"), Platform,
                "a static program for aarch64");
  const TempDir dir;
  fs::copy_file(SEALIFT_START, dir / "sealift-start");
  call_it_arm(dir / "sealift-start");
  CHECK(find_own_program(dir / "sealift-start", "sealift-start", "--launcher", "aarch64") == dir / "sealift-start");
}
