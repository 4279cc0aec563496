// SPDX-License-Identifier: Apache-2.0
// A sentence for people, in the languages of pages. Logs, health and metrics have the English one.
#pragma once

#include <string>

namespace sealift::offline_repo {

struct InBoth {
  std::string english, chinese;

  auto operator<=>(const InBoth&) const = default;
};

}  // namespace sealift::offline_repo
