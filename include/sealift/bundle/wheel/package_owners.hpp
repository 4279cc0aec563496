// SPDX-License-Identifier: Apache-2.0
// Who owns a package folder of site-packages: a wheel must not put modules into a package that another one brings, as
// they would be imported as if they belonged to it; nor a module beside another one's of the same name, which Python
// might prefer for its ending. Folders without __init__.py are namespaces and may be shared; so may a folder of which
// the owner has nothing but an empty __init__.py and folders of its own, as nvidia-* wheels have had; and so may what
// the bundle says is shared. The packager asks before anything crosses the gap, and the installer asks again.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sealift/bundle/wheel/wheel.hpp"

namespace sealift::bundle {

// The folder that holds all of these files, which are in one top-level folder.
std::string common_folder(const std::vector<std::string>& files);

class PackageOwners {
 public:
  // A wheel with files in the package of another one.
  struct Guest {
    std::string package, owner, wheel;
    std::vector<std::string> files;  // below site-packages, without allowed ones
    bool may_share = true;           // false: the owner adds the folder to the module path
  };

  // Notes that `wheel`, named in messages, installs `path` below site-packages; `empty` when the file has no bytes.
  void claim(std::string_view path, const std::string& wheel, bool empty = false);

  // Notes what `wheel`'s .pth files do: nobody else may have files in a folder of the module path, or a native module
  // of the name of a namespace, which would be run to make it.
  void claim(const StartupEffects& startup, const std::string& wheel);

  // Notes that `wheel` may have files of new names below `into`, a folder below site-packages.
  void share(const std::string& wheel, const std::string& into);

  // Who has files in whose package so far, without what is shared.
  std::vector<Guest> guests() const;

  // Throws Conflict, naming both wheels.
  void check() const;

 private:
  struct Owner {
    std::string wheel;
    bool empty;         // its __init__.py
    bool path = false;  // its .pth file adds the folder to the module path
  };
  struct Clash {
    std::string what, path, owner, guest;
    std::string shareable = {};  // the folder that a rule could name
  };
  // What a wheel has in a package: the names directly in it, folders with a '/' at the end, and all files.
  struct Part {
    std::set<std::string, std::less<>> inner;
    std::vector<std::string> files;
  };
  bool are_apart(const std::string& package, const std::string& owner, const Part& guest) const;
  bool is_shared(const std::string& wheel, std::string_view path) const;
  void find_twins(const std::string& package, std::vector<Clash>& clashes) const;
  static void refuse(const std::vector<Clash>& clashes);

  std::map<std::string, Owner> owners_;                                       // package -> wheel with its __init__.py
  std::map<std::string, std::map<std::string, Part>, std::less<>> packages_;  // package -> wheel -> its part
  std::map<std::string, std::set<std::string>> shared_;                       // wheel -> folders
  struct Module {
    std::string wheel, path;
    bool native;
  };
  void claim_module(std::string_view path, const std::string& wheel);
  void check_namespaces() const;

  std::map<std::string, Module> modules_;          // "six", "google/auth"; of the deeper ones, the native
  std::map<std::string, std::string> namespaces_;  // "google/cloud" -> wheel
  std::map<std::string, std::pair<Module, Module>> twins_;
  Part* last_part_ = nullptr;  // that was claimed last
  std::string last_package_, last_wheel_, last_inner_;
};

}  // namespace sealift::bundle
