// SPDX-License-Identifier: Apache-2.0
// Whether the modules that the self-test is to import are brought by anything, asked while locking: a misspelt name
// costs a few directories of zip archives, and not the gigabytes that a rehearsal needs to notice it.
// A wheel that is not here yet is not fetched for that; only its directory is.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "packager/files/cache.hpp"
#include "packager/files/tree.hpp"
#include "packager/interpreter/interpreter.hpp"
#include "packager/lock/lock.hpp"
#include "sealift/bundle/host/progress.hpp"

namespace sealift::packager {

// The top-level modules of a Python with this tree, and of programs that lie in its site-packages.
std::set<std::string> own_modules(const Interpreter& interpreter, const Tree& tree,
                                  const std::vector<LockedProgram>& programs);

// Throws Usage, in the name of `job_file`, for imports that neither `own` nor a wheel has; a wheel whose project has
// the module's name is taken to have it. A wheel that cannot be looked into is warned of, and then nothing is refused.
void require_imports(const std::vector<std::string>& imports, std::set<std::string> own,
                     const std::vector<LockedWheel>& wheels, const Cache& cache, const HttpLogins& logins,
                     const std::filesystem::path& job_file, bundle::Progress& progress);

}  // namespace sealift::packager
