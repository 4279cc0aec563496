// SPDX-License-Identifier: Apache-2.0
// What ranks say to each other around a check, through c10d's store.
// Between connecting and `conduct`.
// The store and not a collective, so that a check of the collectives themselves cannot break it.
#pragma once

#include "verify/conduct/conduct.hpp"

#include <sealift/train.hpp>

namespace sealift::verify {

/// An exchange over `world.store`. A rank that does not come within `patience` of the first is named in a c10::Error.
Exchange over_store(const train::World& world, std::chrono::seconds patience);

}  // namespace sealift::verify
