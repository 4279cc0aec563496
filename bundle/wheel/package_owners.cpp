// SPDX-License-Identifier: Apache-2.0
#include "sealift/bundle/wheel/package_owners.hpp"

#include <algorithm>
#include <string_view>

#include "sealift/bundle/core/error.hpp"
#include "sealift/bundle/core/safe_path.hpp"

namespace sealift::bundle {

namespace {

// "google/auth" for google/auth/__init__.py, google/auth.py and google/__pycache__/auth.cpython-311.pyc; empty for what
// Python does not import.
std::string module_of(std::string_view path) {
  if (!path.ends_with(".py") && !path.ends_with(".so") && !path.ends_with(".pyc")) return {};
  const std::size_t slash = path.rfind('/');
  std::string_view folder = slash == path.npos ? std::string_view() : path.substr(0, slash);
  const std::string_view name = path.substr(slash + 1), stem = name.substr(0, name.find('.'));
  if (folder == "__pycache__") folder = {};
  if (folder.ends_with("/__pycache__")) folder.remove_suffix(std::string_view("/__pycache__").size());
  if (stem == "__init__") return std::string(folder);
  return folder.empty() ? std::string(stem) : std::string(folder).append("/").append(stem);
}

[[noreturn]] void refuse(const std::string& what, const std::string& path, const std::string& owner,
                         const std::string& guest) {
  throw Error(ErrorCode::Conflict, {.what = what,
                                    .where = SafePath::printable(path),
                                    .expected = "files of " + owner + " only",
                                    .got = "a file of " + guest,
                                    .next = "leave one of them out of the job file and pack again"});
}

}  // namespace

void PackageOwners::claim(const std::string& path, const std::string& wheel, bool empty) {
  claim_module(path, wheel);
  const std::size_t slash = path.find('/');
  if (slash == path.npos) return;
  const std::string package = path.substr(0, slash);
  const std::string_view rest = std::string_view(path).substr(slash + 1), inner = rest.substr(0, rest.find('/') + 1);
  if (rest == "__init__.py") owners_.emplace(package, Owner{.wheel = wheel, .empty = empty});
  if (package == last_package_ && wheel == last_wheel_ && inner == last_inner_ && !inner.empty()) return;
  guests_[package].try_emplace(wheel, path);
  inner_[{package, wheel}].emplace(inner.empty() ? rest : inner);
  last_package_ = package;
  last_wheel_ = wheel;
  last_inner_ = inner;
}

// Whether `owner` has but an empty __init__.py and folders in `package`, and `guest` is in none of these folders.
bool PackageOwners::are_apart(const std::string& package, const std::string& owner, const std::string& guest) const {
  if (!owners_.at(package).empty) return false;
  const auto theirs = inner_.find({package, guest});
  const Inner& own = inner_.at({package, owner});
  return std::all_of(own.begin(), own.end(), [&](const std::string& name) {
    return name == "__init__.py" || (name.ends_with('/') && (theirs == inner_.end() || !theirs->second.contains(name)));
  });
}

void PackageOwners::claim_module(const std::string& path, const std::string& wheel) {
  const bool native = path.ends_with(".so");
  if (!native && std::count(path.begin(), path.end(), '/') > 3) return;  // no module of two names lies so deep
  const std::string module = module_of(path);
  if (module.empty() || (!native && std::count(module.begin(), module.end(), '/') > 1)) return;
  const Module claimed{.wheel = wheel, .path = path, .native = native};
  const auto [known, fresh] = modules_.emplace(module, claimed);
  if (fresh) return;
  if (known->second.wheel != wheel) twins_.emplace(module, std::pair(known->second, claimed));
  known->second.native = known->second.native || native;
}

void PackageOwners::claim(const StartupEffects& startup, const std::string& wheel) {
  for (const std::string& folder : startup.folders) {
    const std::string top = folder.substr(0, folder.find('/'));
    owners_.insert_or_assign(top, Owner{.wheel = wheel, .empty = false});
    guests_[top].try_emplace(wheel, top);
  }
  for (std::string module : startup.namespaces) {
    std::replace(module.begin(), module.end(), '.', '/');
    namespaces_.emplace(std::move(module), wheel);
  }
}

void PackageOwners::check_namespaces() const {
  for (const auto& [module, wheel] : namespaces_)
    if (const auto known = modules_.find(module); known != modules_.end() && known->second.native)
      refuse("a native module would be run when Python starts, to make a namespace of its name", known->second.path,
             wheel, known->second.wheel);
}

void PackageOwners::check() const {
  check_namespaces();
  for (const auto& [module, twins] : twins_)
    refuse("a wheel puts a module beside one of another wheel that has the same name", twins.second.path,
           twins.first.wheel, twins.second.wheel);
  for (const auto& [package, owner] : owners_)
    for (const auto& [wheel, path] : guests_.at(package))
      if (wheel != owner.wheel && !are_apart(package, owner.wheel, wheel))
        throw Error(ErrorCode::Conflict, {.what = "a wheel puts a file into the package of another one",
                                          .where = SafePath::printable(path),
                                          .expected = "files of " + owner.wheel + " only, which owns " + package,
                                          .got = "a file of " + wheel,
                                          .next = "leave one of them out of the job file and pack again"});
}

}  // namespace sealift::bundle
