// SPDX-License-Identifier: Apache-2.0
// Who owns a package folder of site-packages: a wheel must not put modules into a package that another one brings, as
// they would be imported as if they belonged to it. Folders without __init__.py are namespaces and may be shared.
// Asked by the packager before anything crosses the gap, and by the installer again.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>

#include "sealift/bundle/core/safe_path.hpp"

namespace sealift::bundle {

class PackageOwners {
 public:
  // `path` is below site-packages; `wheel` is for messages.
  void claim(const std::string& path, const std::string& wheel) {
    const std::size_t slash = path.find('/');
    if (slash == path.npos) return;
    const std::string package = path.substr(0, slash);
    if (std::string_view(path).substr(slash + 1) == "__init__.py") owners_.emplace(package, wheel);
    if (package == last_package_ && wheel == last_wheel_) return;  // as for most files of a wheel
    guests_[package].try_emplace(wheel, path);
    last_package_ = package;
    last_wheel_ = wheel;
  }

  // Throws Conflict, naming both wheels.
  void check() const {
    for (const auto& [package, owner] : owners_)
      for (const auto& [wheel, path] : guests_.at(package))
        if (wheel != owner)
          throw Error(ErrorCode::Conflict, {.what = "a wheel puts a file into the package of another one",
                                            .where = SafePath::printable(path),
                                            .expected = "files of " + owner + " only, which owns " + package,
                                            .got = "a file of " + wheel,
                                            .next = "leave one of them out of the job file and pack again"});
  }

 private:
  std::map<std::string, std::string> owners_;                         // package -> wheel with its __init__.py
  std::map<std::string, std::map<std::string, std::string>> guests_;  // package -> wheel -> one of its files
  std::string last_package_, last_wheel_;                             // that a guest was put down for
};

}  // namespace sealift::bundle
