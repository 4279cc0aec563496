// SPDX-License-Identifier: Apache-2.0
// What was built before, by all that decides it: the source, the Python, uv and the compiler, what the job says of its
// build. `lock` takes such a wheel from the cache and does not build it again; its lock names the same pinned
// requirements as the lock of that day. Remove CACHE/built to build it anew.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "packager/builds/source_build.hpp"
#include "packager/files/cache.hpp"

namespace sealift::packager {

struct RememberedBuild {
  std::string file_name;
  bundle::Digest sha256;
  std::vector<std::string> requirements;
};

class BuildMemory {
 public:
  // Of the source `archive`; `tool_names` are describe_tools(tools).
  BuildMemory(const Cache& cache, const bundle::Digest& archive, const BuildOrder& order, const BuildTools& tools,
              const std::string& tool_names);

  // Nothing when it was never built so, or the cache has lost or damaged the wheel.
  std::optional<RememberedBuild> recall() const;

  void remember(const RememberedBuild& build) const;

  // The METADATA that its backend told of the wheel, built or not.
  std::optional<std::string> recall_metadata() const;
  void remember_metadata(const std::string& metadata) const;

 private:
  const Cache& cache_;
  std::filesystem::path file_;
};

}  // namespace sealift::packager
