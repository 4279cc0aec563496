// SPDX-License-Identifier: Apache-2.0
// Tells systemd, or another parent that set NOTIFY_SOCKET, how the server is: sd_notify(3), by hand, since its library
// is not for static programs.
#pragma once

#include <string_view>

namespace sealift::offline_repo {

// Sends `state`, such as "READY=1", to the socket that NOTIFY_SOCKET names: a path, or "@NAME" for an abstract one.
// Does nothing without it; never waits and never fails, as sd_notify(3) advises. False: it was not sent.
bool notify_service_manager(std::string_view state);

}  // namespace sealift::offline_repo
