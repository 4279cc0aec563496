// SPDX-License-Identifier: Apache-2.0
// The lock as one list of what goes into the bundle; the only place that walks the lock kind by kind. Who adds a kind
// of content writes its lines of the lock, lists its items here, and is done unless the kind is special.
#pragma once

#include <vector>

#include "packager/content/content.hpp"

namespace sealift::packager {

// Interpreter, wheels, programs, models and data with the list of their repositories, Debian packages. A file that lies
// at two places is two items.
std::vector<Content> contents_of(const Lock& lock);

}  // namespace sealift::packager
