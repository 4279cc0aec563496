// SPDX-License-Identifier: Apache-2.0
// Logins of a netrc file, as curl, pip and uv read it: for servers that ask for one and of which nothing else is known.
// Read at each question, since it is short and a long `lock` should see what was added meanwhile.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "packager/host/http_logins.hpp"

namespace sealift::packager {

// Of this host in the text of such a file, or its "default".
std::optional<HttpLogin> login_in_netrc(std::string_view text, std::string_view host);

// From the file that NETRC names, or ~/.netrc: for the host of this address; nothing where there is no readable file.
std::optional<HttpLogin> netrc_login(const std::string& url);

}  // namespace sealift::packager
