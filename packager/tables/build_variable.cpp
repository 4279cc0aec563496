// SPDX-License-Identifier: Apache-2.0
// See build_variable.hpp.
#include "packager/tables/build_variable.hpp"

#include "sealift/bundle/manifest/variables.hpp"

namespace sealift::packager {

const char* fault_of_build_variable(const std::string& name, std::string value) {
  for (std::size_t at = value.find(kBuildWord); at != value.npos; at = value.find(kBuildWord))
    value.erase(at, kBuildWord.size());
  if (value.find("${") != value.npos) return "of words in ${}, builds know ${BUILD} alone";
  for (const char* fixed : {"TMPDIR", "VIRTUAL_ENV", "LANG", "TZ", "SOURCE_DATE_EPOCH"})
    if (name == fixed) return "builds set it themselves, so that they can be repeated";
  return bundle::fault_of_variable(name, value);
}

}  // namespace sealift::packager
