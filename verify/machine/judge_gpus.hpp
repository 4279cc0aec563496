// SPDX-License-Identifier: Apache-2.0
// Is each GPU whole: no memory errors, no pending repairs, no brake, its links as wide as they can be, like its
// siblings? Above nvml.hpp, whose values it reads. Pure: tests feed it.
#pragma once

#include "verify/conduct/check_kind.hpp"

namespace sealift::verify {

/// Expectations of [machine]: driver (text), gpus (of each host), nvlinks (active, of each GPU).
void judge_gpus(const std::vector<Measured>& all, const Site& site, Check& check);

}  // namespace sealift::verify
