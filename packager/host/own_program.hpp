// SPDX-License-Identifier: Apache-2.0
// Programs of this project that travel with a bundle: sealift-install beside it, sealift-start in front of every
// dynamic program in it. They must run on any target, so only static ones are taken.
#pragma once

#include <filesystem>
#include <string>

namespace sealift::packager {

// What this machine runs, as `uname -m` prints it.
std::string machine_arch();

// `given`, else the program called `name` beside the running one, or for another machine's `arch` in the folder of that
// name beside it; throws Missing naming `option`, or Platform when it is dynamic or not for `arch`.
std::filesystem::path find_own_program(const std::filesystem::path& given, const std::string& name,
                                       const std::string& option, const std::string& arch);

// The folder above the running program's bin: of an installation, what has include, lib and share, too.
std::filesystem::path own_installation();

// audit.sh, from beside the sealift-install that travels, so that both are of one release; throws Missing.
std::filesystem::path find_audit_script(const std::filesystem::path& installer);

// Whether sealift-start must start `program`: true for a dynamic program that looks for libraries relative to its own
// place ($ORIGIN), and for every dynamic one where the loader is carried.
bool wants_launcher(const std::filesystem::path& program, bool carries_runtime);

}  // namespace sealift::packager
