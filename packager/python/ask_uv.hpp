// SPDX-License-Identifier: Apache-2.0
// Asks uv for a job's packages, in rounds: where uv has to know what a source requires, its backend is asked in the
// sandbox (builds/source_metadata), and uv goes on with that. So the versions are uv's choice with builds allowed, and
// no code of a package has run outside of the sandbox. The other way, uv itself in a sandbox that reaches the indexes,
// would let each source's code at the answer about all other packages; here it can tell of itself alone.
#pragma once

#include <filesystem>
#include <string>

#include "packager/builds/build_order.hpp"
#include "packager/files/cache.hpp"
#include "packager/interpreter/interpreter.hpp"
#include "packager/resolve/resolve.hpp"
#include "sealift/bundle/host/progress.hpp"

namespace sealift::packager {

// What a job's packages are resolved and built with.
struct PythonMeans {
  BuildTools tools;              // with the interpreter of the target's version that runs here
  UvPython uv_python;            // that interpreter as uv gets it
  std::filesystem::path folder;  // where the lock will be written
  Cache cache;
};

// `carried` is the version of the Python that travels, `interpreter` the one that runs here. `scratch` has to outlive
// the means. Throws CannotCheck where uv would run code of packages.
PythonMeans python_means(const Job& job, const std::filesystem::path& uv, const std::string& carried,
                         const Interpreter& interpreter, const std::filesystem::path& folder, const Cache& cache,
                         Isolation isolation, const std::filesystem::path& scratch);

struct UvAnswer {
  Resolution resolution;
  PythonChoice choice;
};

// `facts` grows by what the sources told. Throws as resolve and read_metadata, Platform when it does not come to an
// end.
UvAnswer ask_uv(const Job& job, PythonMeans& means, SourceFacts& facts, bundle::Progress& progress);

}  // namespace sealift::packager
