// SPDX-License-Identifier: Apache-2.0
// ms-swift's keys that have no setting of the same name, as three tables.
// Below swift_names, which decides by them. In a key `*` stands for any run of characters.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace sealift::trainer {

/// A key that is accepted with these values only.
struct OnlyValues {
  const char* key;
  std::vector<std::string> values;
  const char* remedy;
};

/// Keys by another name → ours.
const std::map<std::string, std::string>& swift_aliases();

const std::vector<OnlyValues>& swift_only();

/// A key that changes nothing here, and why.
struct IgnoredKey {
  std::string key;
  const char* reason;
};

/// Keys that cannot change the numbers here, or that belong to what `swift_only` refuses.
const std::vector<IgnoredKey>& swift_without_effect();

}  // namespace sealift::trainer
