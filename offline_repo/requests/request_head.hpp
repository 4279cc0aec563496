// SPDX-License-Identifier: Apache-2.0
// A request's head as it came over the wire, before anything parses it: what a proxy in front and we could take for
// the end of a request in two ways is refused, and the connection ends (RFC 9112, sections 2.2, 5.1, 5.2, 6.1, 6.3).
// GET and HEAD need no body, so there is nothing to lose. Hostile text; a pure function.
#pragma once

#include <string>
#include <string_view>

namespace sealift::offline_repo {

// Why the head, from its first byte to the empty line at its end, is refused with 400; empty when it is not.
std::string fault_of_head(std::string_view head);

}  // namespace sealift::offline_repo
