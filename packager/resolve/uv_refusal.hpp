// SPDX-License-Identifier: Apache-2.0
// Why uv found no set of packages, from its words: each cause has a code and a next step of its own.
// uv has one exit code for most causes, so its sentences are all there is; what is not known here stays uv's own words.
#pragma once

#include <string>
#include <string_view>

#include "sealift/bundle/core/error.hpp"

namespace sealift::packager {

struct UvRefusal {
  bundle::ErrorCode code = bundle::ErrorCode::Io;
  const char* what = "";
  std::string next;
  bool or_login = false;  // `next` ends before what a login for closed_server would take
};

// Network where a server was not reached, wants a login or answers 403, Usage for a requirement that does not parse,
// Missing for a package that no index has, Platform for packages that are not for this Python, Conflict for
// requirements that exclude each other, Io for anything else.
UvRefusal refusal_of(std::string_view said);

// The address that wants a login according to uv's words; empty when there is none.
std::string closed_server(std::string_view said);

}  // namespace sealift::packager
