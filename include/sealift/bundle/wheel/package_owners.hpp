// SPDX-License-Identifier: Apache-2.0
// Who owns a package folder of site-packages: a wheel must not put modules into a package that another one brings, as
// they would be imported as if they belonged to it. Folders without __init__.py are namespaces and may be shared.
// The packager asks before anything crosses the gap, and the installer asks again.
#pragma once

#include <map>
#include <string>

namespace sealift::bundle {

class PackageOwners {
 public:
  // Notes that `wheel`, named in messages, installs `path` below site-packages.
  void claim(const std::string& path, const std::string& wheel);

  // Throws Conflict, naming both wheels.
  void check() const;

 private:
  std::map<std::string, std::string> owners_;                         // package -> wheel with its __init__.py
  std::map<std::string, std::map<std::string, std::string>> guests_;  // package -> wheel -> one of its files
  std::string last_package_, last_wheel_;                             // that guests_ was asked for last
};

}  // namespace sealift::bundle
