// SPDX-License-Identifier: Apache-2.0
// Finds the programs that travel; see own_program.hpp.
#include "packager/host/own_program.hpp"

#include <sys/utsname.h>

#include "sealift/bundle/native/elf.hpp"

namespace sealift::packager {

namespace fs = std::filesystem;
using bundle::Error;
using bundle::ErrorCode;

std::string machine_arch() {
  utsname names{};
  ::uname(&names);
  return names.machine;
}

fs::path find_own_program(const fs::path& given, const std::string& name, const std::string& option,
                          const std::string& arch) {
  std::error_code error;
  const fs::path own = fs::read_symlink("/proc/self/exe", error).parent_path();
  const fs::path program = !given.empty() ? given : arch == machine_arch() ? own / name : own / arch / name;
  if (!fs::is_regular_file(program, error))
    throw Error(ErrorCode::Missing, {.what = "the " + name + " that travels with the bundle is not there",
                                     .where = program.string(),
                                     .expected = "a static program for " + arch,
                                     .next = "build it, or name it with " + option});
  const fs::path file = fs::canonical(program);
  bundle::FileSource source(file);
  const std::optional<bundle::ElfFile> elf = bundle::read_elf(source);
  if (elf && (elf->arch != arch || !elf->interpreter.empty()))
    throw Error(ErrorCode::Platform, {.what = "this " + name + " does not run on every target",
                                      .where = file.string(),
                                      .expected = "a static program for " + arch,
                                      .got = elf->arch + (elf->interpreter.empty() ? ", static" : ", dynamic"),
                                      .next = "name the one from the release build with " + option});
  return file;
}

fs::path own_installation() {
  std::error_code error;
  return fs::read_symlink("/proc/self/exe", error).parent_path().parent_path();
}

fs::path find_audit_script(const fs::path& installer) {
  const fs::path script = installer.parent_path() / "audit.sh";
  std::error_code error;
  if (!fs::is_regular_file(script, error))
    throw Error(ErrorCode::Missing, {.what = "the audit.sh that travels with the bundle is not there",
                                     .where = script.string(),
                                     .expected = "it beside sealift-install, as the build and the release have it",
                                     .next = "build it, or copy it there from the release"});
  return script;
}

bool wants_launcher(const fs::path& program, bool carries_runtime) {
  bundle::FileSource source(fs::canonical(program));
  const std::optional<bundle::ElfFile> elf = bundle::read_elf(source);
  if (!elf || elf->interpreter.empty()) return false;
  return carries_runtime || (elf->rpath + elf->runpath).find("$ORIGIN") != std::string::npos;
}

}  // namespace sealift::packager
