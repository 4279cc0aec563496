// SPDX-License-Identifier: Apache-2.0
// The header of a response, as the bytes that are sent before its body.
#pragma once

#include <string>

#include "offline_repo/requests/response.hpp"

namespace sealift::offline_repo {

// `version` of HTTP, times ten; `keep_alive`: the connection goes on after this response.
std::string header_text(const Response& response, unsigned version, bool keep_alive);

}  // namespace sealift::offline_repo
