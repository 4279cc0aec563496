// SPDX-License-Identifier: Apache-2.0
// Our variables, for us and for the programs that we start, without variables that lead into another user's folders:
// under `sudo -E` HOME is the user's, and uv's cache, gpg's and git's settings there would run as root what that user
// laid down. tests/hostile/path_options.txt says of each variable that we read what is done about it.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace sealift::packager {

// The variable's value. Where it leads to what programs run or believe, and somebody besides root
// and this user could change that: nothing, and of HOME the folder that the system has for this user.
std::optional<std::string> own_variable(const char* name);

// "HOME=/home/ada, of user 1000": the variables that are left out so; for a warning, which ends with the words below.
std::vector<std::string> foreign_variables();
inline constexpr const char* kNotGoneBy =
    ": what is started here does not go by it, since that user's files would decide what runs; run this as that user, "
    "or without -E of sudo";

}  // namespace sealift::packager
