// SPDX-License-Identifier: Apache-2.0
// Which kernels the packages of an environment fetch from a hub by themselves, beside the package kernels: a kept
// table, by release. Advice for `lock`, which warns of kernels that are not carried.
#pragma once

#include <string>
#include <vector>

#include "packager/lock/lock.hpp"
#include "packager/tables/kernel.hpp"

namespace sealift::packager {

// A sentence for each package that will ask. Nothing where no loader is locked, or where the package acts as if the
// loader were not there, because it is of a release that it does not take.
std::vector<std::string> kernel_questions(const std::vector<LockedWheel>& wheels,
                                          const std::vector<LockedKernel>& kernels);

}  // namespace sealift::packager
