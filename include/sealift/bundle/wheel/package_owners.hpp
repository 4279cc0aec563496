// SPDX-License-Identifier: Apache-2.0
// Who owns a package folder of site-packages: a wheel must not put modules into a package that another one brings, as
// they would be imported as if they belonged to it; nor a module beside another one's of the same name, which Python
// might prefer for its ending. Folders without __init__.py are namespaces and may be shared; so may a folder of which
// the owner has nothing but an empty __init__.py and folders of its own, as nvidia-* wheels have had. The packager asks
// before anything crosses the gap, and the installer asks again.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>

#include "sealift/bundle/wheel/wheel.hpp"

namespace sealift::bundle {

class PackageOwners {
 public:
  // Notes that `wheel`, named in messages, installs `path` below site-packages; `empty` when the file has no bytes.
  void claim(const std::string& path, const std::string& wheel, bool empty = false);

  // Notes what `wheel`'s .pth files do: nobody else may have files in a folder of the module path, or a native module
  // of the name of a namespace, which would be run to make it.
  void claim(const StartupEffects& startup, const std::string& wheel);

  // Throws Conflict, naming both wheels.
  void check() const;

 private:
  struct Owner {
    std::string wheel;
    bool empty;  // its __init__.py
  };
  // What a wheel has directly in a package; folders end with '/'.
  using Inner = std::set<std::string>;
  bool are_apart(const std::string& package, const std::string& owner, const std::string& guest) const;

  std::map<std::string, Owner> owners_;                               // package -> wheel with its __init__.py
  std::map<std::pair<std::string, std::string>, Inner> inner_;        // package, wheel
  std::map<std::string, std::map<std::string, std::string>> guests_;  // package -> wheel -> one of its files
  struct Module {
    std::string wheel, path;
    bool native;
  };
  void claim_module(const std::string& path, const std::string& wheel);
  void check_namespaces() const;

  std::map<std::string, Module> modules_;          // "six", "google/auth"; of the deeper ones, the native
  std::map<std::string, std::string> namespaces_;  // "google/cloud" -> wheel
  std::map<std::string, std::pair<Module, Module>> twins_;
  std::string last_package_, last_wheel_, last_inner_;  // that were claimed last
};

}  // namespace sealift::bundle
