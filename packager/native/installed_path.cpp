// SPDX-License-Identifier: Apache-2.0
// A scheme's folder and the path below it; see installed_path.hpp.
#include "packager/native/installed_path.hpp"

namespace sealift::packager {

std::string installed_path(const bundle::Wheel& wheel, const bundle::WheelFile& file, const std::string& python) {
  switch (file.scheme) {
    case bundle::Scheme::SitePackages:
      return "lib/python" + python + "/site-packages/" + file.path;
    case bundle::Scheme::Scripts:
      return "bin/" + file.path;
    case bundle::Scheme::Headers:
      return "include/python" + python + "/" + wheel.dist_info().substr(0, wheel.dist_info().find('-')) + "/" +
             file.path;
    case bundle::Scheme::Data:
      return file.path;
  }
  return file.path;
}

}  // namespace sealift::packager
