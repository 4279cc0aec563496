// SPDX-License-Identifier: Apache-2.0
// Resolves, chooses, builds; see lock_python.hpp.
#include "packager/python/lock_python.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace sealift::packager {

namespace fs = std::filesystem;
using bundle::Error;
using bundle::ErrorCode;

namespace {

// uv refuses packages without wheels too, but not folders, repositories and the packages of a given lock.
void refuse_sources(const std::vector<SourcePackage>& sources, const std::map<std::string, std::string>& needs) {
  std::string got;
  for (const SourcePackage& source : sources) {
    const auto via = needs.find(source.name);
    got += (got.empty() ? "" : ", ") + source.title() + (via == needs.end() ? "" : " (needed by " + via->second + ")");
  }
  throw Error(ErrorCode::Platform,
              {.what = fmt::format("{} package(s) have no wheel and would have to be built", sources.size()),
               .expected = "a wheel for every package, because the job says build = false",
               .got = got,
               .next = "leave build = false out, or require versions that have wheels"});
}

}  // namespace

LockedPython lock_python(const Job& job, const fs::path& uv, const Interpreter& interpreter, const fs::path& folder,
                         const Cache& cache, Console& console) {
  Resolution resolution = resolve(job, uv, interpreter.executable, folder);
  PythonChoice choice = choose_packages(resolution.pylock, folder, job.python, job.target, resolution.hashes);
  const auto needs = [&] { return who_needs(job, uv, interpreter.executable); };
  if (!job.inputs.build && !choice.sources.empty()) refuse_sources(choice.sources, needs());
  LockedPython locked{.wheels = std::move(choice.wheels), .needs = {}, .pylock = std::move(resolution.pylock)};
  const BuildTools tools{.uv = uv,
                         .python = interpreter.executable,
                         .python_version = interpreter.version,
                         .build_constraints = job.inputs.build_constraints,
                         .index_words = index_words(job.inputs)};
  BuiltWheels built = build_sources(choice.sources, tools, job.target, cache, console, needs);
  locked.needs = std::move(built.needs);
  std::move(built.wheels.begin(), built.wheels.end(), std::back_inserter(locked.wheels));
  std::sort(locked.wheels.begin(), locked.wheels.end(),
            [](const LockedWheel& a, const LockedWheel& b) { return a.file_name < b.file_name; });
  return locked;
}

}  // namespace sealift::packager
