// SPDX-License-Identifier: Apache-2.0
// Where packages write what they compile or collect when they run. Their own defaults are a prefix that nobody can
// write, a node's /tmp or the job's folder; a bundle sets a place that the user can write, that is kept between jobs
// and that all nodes with this home share. Not what fails offline: nothing is warned of.
#pragma once

#include <string>
#include <vector>

#include "packager/lock/lock.hpp"
#include "sealift/bundle/manifest/variables.hpp"

namespace sealift::packager {

// For these wheels of this Python ("3.11"). A cache whose own key does not hold what it depends on has the versions of
// that in its folder's name.
bundle::Variables cache_variables(const std::vector<LockedWheel>& wheels, const std::string& python);

}  // namespace sealift::packager
