// SPDX-License-Identifier: Apache-2.0
// What a lock pins of each program that the job carries, and whether it will find its libraries.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "packager/job/job.hpp"
#include "packager/libraries/native_closure.hpp"
#include "packager/lock/lock.hpp"
#include "sealift/bundle/host/progress.hpp"

namespace sealift::packager {

// One file as it is, at the place `into`.
LockedProgram lock_program(const JobProgram& program, const std::string& into);

// All of the job, whose libraries are added to `resolver`: programs share the interpreter's closure, and find it in the
// same lib/. A program in bin/ that needs the launcher goes to libexec/, and the launcher takes its place.
std::vector<LockedProgram> lock_programs(const Job& job, const std::filesystem::path& launcher,
                                         NativeResolver& resolver);

// Warns of a program that does not search the generation's lib/: it only starts where the target happens to have its
// libraries.
void warn_of_search_path(const LockedProgram& program, const NativeClosure& closure, bundle::Progress& progress);

}  // namespace sealift::packager
