// SPDX-License-Identifier: Apache-2.0
// Digest, place, and what its ELF header asks for; see locked_programs.hpp.
#include "packager/libraries/locked_programs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "packager/files/cache.hpp"
#include "packager/host/own_program.hpp"
#include "packager/libraries/elf_on_disk.hpp"

namespace sealift::packager {

namespace fs = std::filesystem;

LockedProgram lock_program(const JobProgram& program, const std::string& into) {
  return {.source = program.source,
          .sha256 = digest_of_file(program.source),
          .size = fs::file_size(program.source),
          .into = into,
          .executable = program.executable};
}

std::vector<LockedProgram> lock_programs(const Job& job, const fs::path& launcher, NativeResolver& resolver) {
  std::vector<LockedProgram> programs;
  for (const JobProgram& program : job.programs) {
    const bool launched = program.into.starts_with("bin/") && wants_launcher(program.source, job.carries_runtime);
    programs.push_back(lock_program(program, launched ? "libexec/" + program.into.substr(4) : program.into));
    programs.back().from_wheels = resolver.add_program(program.source, program.into);
    if (launched) programs.push_back(lock_program({.source = launcher, .into = program.into}, program.into));
  }
  return programs;
}

void warn_of_search_path(const LockedProgram& program, const NativeClosure& closure, bundle::Progress& progress) {
  const std::optional<bundle::ElfFile> elf = read_elf_file(program.source);
  if (!elf) return;
  const auto carried = [&](const std::string& library) { return closure.libraries.contains(library); };
  if (std::none_of(elf->needed.begin(), elf->needed.end(), carried)) return;
  const std::string wanted =
      "$ORIGIN/" + fs::path("lib").lexically_relative(fs::path(program.into).parent_path()).string();
  if ((":" + elf->rpath + ":" + elf->runpath + ":").find(":" + wanted + ":") == std::string::npos)
    progress.warn(fmt::format("{} needs carried libraries but does not look for them; build it with -Wl,-rpath,'{}'",
                              program.into, wanted));
}

}  // namespace sealift::packager
