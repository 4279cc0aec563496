// SPDX-License-Identifier: Apache-2.0
// Asks whoever sits at the terminal for the next disc, or for a better one, instead of giving up an installation that
// is half read. In a script nobody is asked: the fault stands, and the next run goes on from what was finished.
#pragma once

#include "sealift/bundle/payload/volumes.hpp"

namespace sealift::installer {

// Nobody, when stdin or stderr is no terminal.
bundle::VolumeAsker terminal_asker();

}  // namespace sealift::installer
