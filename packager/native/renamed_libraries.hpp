// SPDX-License-Identifier: Apache-2.0
// Names that libraries had before auditwheel put a digest into them: libjpeg-6dc8d115.so.62 was libjpeg.so.62, and its
// bytes, with those of everyone in that wheel that was linked to it, still hold the old name. native_check asks this
// before it says that a name is unexplained.
#pragma once

#include <string>
#include <vector>

namespace sealift::packager {

// "libgfortran-040039e1-0352e75f.so.5.0.0" -> "libgfortran-040039e1.so", "libgfortran.so"; empty where there is no
// digest.
std::vector<std::string> names_before(const std::string& library);

}  // namespace sealift::packager
