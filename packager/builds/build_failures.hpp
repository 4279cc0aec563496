// SPDX-License-Identifier: Apache-2.0
// Sources that could not be built, as one refusal: each with the end of its log, who needs it, and what to do.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "packager/builds/build_order.hpp"
#include "packager/resolve/pylock.hpp"
#include "sealift/bundle/core/error.hpp"

namespace sealift::packager {

using WhoNeeds = std::function<std::map<std::string, std::string>()>;  // asked only when something failed

class BuildFailures {
 public:
  explicit BuildFailures(std::size_t sources) : sources_(sources) {}

  // Runs `step` for the source and keeps what it throws, but for CannotCheck: no sandbox is no package's fault. The
  // source outlives this.
  void collect(const SourcePackage& source, const std::function<void()>& step);

  // Throws Platform when something was kept.
  void throw_any(const BuildTools& tools, const WhoNeeds& who_needs) const;

 private:
  std::size_t sources_;
  std::vector<std::pair<const SourcePackage*, bundle::Error>> failures_;
};

}  // namespace sealift::packager
