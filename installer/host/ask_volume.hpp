// SPDX-License-Identifier: Apache-2.0
// Asks the person at the terminal for the next disc, or for a good copy of a bad one, instead of giving up an
// installation half-way. In a script nobody is asked: the run fails, and the next one continues from what was finished.
#pragma once

#include "sealift/bundle/payload/volumes.hpp"

namespace sealift::installer {

// Empty when stdin or stderr is not a terminal.
bundle::VolumeAsker terminal_asker();

}  // namespace sealift::installer
