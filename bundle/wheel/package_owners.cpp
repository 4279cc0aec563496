// SPDX-License-Identifier: Apache-2.0
#include "sealift/bundle/wheel/package_owners.hpp"

#include <string_view>

#include "sealift/bundle/core/error.hpp"
#include "sealift/bundle/core/safe_path.hpp"

namespace sealift::bundle {

void PackageOwners::claim(const std::string& path, const std::string& wheel) {
  const std::size_t slash = path.find('/');
  if (slash == path.npos) return;
  const std::string package = path.substr(0, slash);
  if (std::string_view(path).substr(slash + 1) == "__init__.py") owners_.emplace(package, wheel);
  if (package == last_package_ && wheel == last_wheel_) return;  // as for most files of a wheel
  guests_[package].try_emplace(wheel, path);
  last_package_ = package;
  last_wheel_ = wheel;
}

void PackageOwners::check() const {
  for (const auto& [package, owner] : owners_)
    for (const auto& [wheel, path] : guests_.at(package))
      if (wheel != owner)
        throw Error(ErrorCode::Conflict, {.what = "a wheel puts a file into the package of another one",
                                          .where = SafePath::printable(path),
                                          .expected = "files of " + owner + " only, which owns " + package,
                                          .got = "a file of " + wheel,
                                          .next = "leave one of them out of the job file and pack again"});
}

}  // namespace sealift::bundle
