// SPDX-License-Identifier: Apache-2.0
// Libraries of a site's own stack (CANN, a vendor's MPI), which a job says that the target has. The packager leaves
// them out and does not ask for them; the self-test passes over what waits for one that is not there. They travel as a
// text among the programs, so neither format nor record knows of them, and an older installer takes the bundle.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace sealift::bundle {

// Where the text lies below the root of a generation.
inline constexpr std::string_view kHostLibrariesPlace = "share/sealift/host_libraries";

// Whether one of these patterns names the library; `*` stands for any characters: "libascend*.so", "libhccl.so".
bool is_host_library(const std::vector<std::string>& patterns, const std::string& name);

// Why this is no such pattern; null when it is one: "lib", a letter or more, and letters, digits, "+-._*", no folder.
const char* fault_of_host_library(std::string_view pattern);

// A pattern a line. Throws Format for anything that write_host_libraries does not write.
std::string write_host_libraries(const std::vector<std::string>& patterns);
std::vector<std::string> parse_host_libraries(std::string_view text, const std::string& where);

}  // namespace sealift::bundle
