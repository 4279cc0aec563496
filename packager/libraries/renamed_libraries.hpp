// SPDX-License-Identifier: Apache-2.0
// The names that libraries had before auditwheel put a digest into them: libjpeg-6dc8d115.so.62 was libjpeg.so.62. The
// old name is still a string in it and in everything that was linked to it, so native_check must know that name before
// it reports it as unexplained.
#pragma once

#include <string>
#include <vector>

namespace sealift::packager {

// "libgfortran-040039e1-0352e75f.so.5.0.0" -> "libgfortran-040039e1.so", "libgfortran.so"; empty where there is no
// digest.
std::vector<std::string> names_before(const std::string& library);

}  // namespace sealift::packager
