// SPDX-License-Identifier: Apache-2.0
// The variables that an environment sets for what runs in it, as a text that travels as one of its files.
// The packager writes it, the installer and sealift-start read it; so neither format nor record knows of it, and a
// prefix of an older installer has it, too. Its place is one of own_places.hpp: only this entry is put there.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace sealift::bundle {

// Where it lies below the root of a generation.
inline constexpr std::string_view kVariablesPlace = "share/sealift/environment";

// In values: the root of the environment, and the user's own folder for what is written ($XDG_CACHE_HOME, ~/.cache).
inline constexpr std::string_view kPrefixWord = "${PREFIX}";
inline constexpr std::string_view kCacheWord = "${CACHE}";

using Variables = std::map<std::string, std::string>;  // name -> value

// Why this cannot be set; null when it can: a name that the shell, the loader or Python takes orders from, a value of
// more than one line, or a ${WORD} that is neither of the two.
const char* fault_of_variable(std::string_view name, std::string_view value);

// The same, and whether a bundle may set it for every program of an environment (allowed_variables.hpp).
const char* fault_of_carried_variable(std::string_view name, std::string_view value);

// Lines NAME=VALUE, sorted.
std::string write_variables(const Variables& variables);

// Throws Format for anything that write_variables does not write.
Variables parse_variables(std::string_view text, const std::string& where);

}  // namespace sealift::bundle
