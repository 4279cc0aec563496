// SPDX-License-Identifier: Apache-2.0
// Names the kinds and encodings that manifest.hpp declares; see manifest_words.hpp.
#include "bundle/manifest/manifest_words.hpp"

namespace sealift::bundle {

std::string name_of(EntryKind kind) {
  return enum_name(kKindNames, kind);
}
std::string name_of(Encoding encoding) {
  return enum_name(kEncodingNames, encoding);
}
std::string name_of(WheelBuild build) {
  return enum_name(kBuildNames, build);
}

}  // namespace sealift::bundle
