// SPDX-License-Identifier: Apache-2.0
// Does each device compute the same bits, alone?
// A part of the list that `run` conducts.
// See check_kind.hpp for the two halves of a check.
#pragma once

#include "verify/conduct/check_kind.hpp"

#include <sealift/train.hpp>

namespace sealift::verify {

std::vector<CheckKind> arithmetic_checks(at::Device device);

}  // namespace sealift::verify
