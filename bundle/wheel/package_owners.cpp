// SPDX-License-Identifier: Apache-2.0
#include "sealift/bundle/wheel/package_owners.hpp"

#include <algorithm>
#include <string_view>
#include <vector>

#include "sealift/bundle/core/error.hpp"
#include "sealift/bundle/core/safe_path.hpp"

namespace sealift::bundle {

namespace {

// A native module's name without the endings that Pythons import: "_core" for _core.cpython-311-x86_64-linux-gnu.so,
// _core.abi3.so and _core.so. Empty where a dot is left, as in _ir.cu13.cpython-311-x86_64-linux-gnu.so: no import
// statement leads to such a file, only its package's own code, by path.
std::string_view native_stem(std::string_view name) {
  name.remove_suffix(std::string_view(".so").size());
  const std::size_t dot = name.rfind('.');
  const std::string_view tag = dot == name.npos ? std::string_view() : name.substr(dot + 1);
  for (const std::string_view known : {"cpython-", "abi3", "pypy", "graalpy"})
    if (tag.starts_with(known)) return name.substr(0, dot).find('.') == name.npos ? name.substr(0, dot) : "";
  return dot == name.npos ? name : "";
}

// "google/auth" for google/auth/__init__.py, google/auth.py and google/__pycache__/auth.cpython-311.pyc; empty for what
// Python does not import.
std::string module_of(std::string_view path) {
  if (!path.ends_with(".py") && !path.ends_with(".so") && !path.ends_with(".pyc")) return {};
  const std::size_t slash = path.rfind('/');
  std::string_view folder = slash == path.npos ? std::string_view() : path.substr(0, slash);
  const std::string_view name = path.substr(slash + 1);
  const std::string_view stem = name.ends_with(".so") ? native_stem(name) : name.substr(0, name.find('.'));
  if (stem.empty()) return {};
  if (folder == "__pycache__") folder = {};
  if (folder.ends_with("/__pycache__")) folder.remove_suffix(std::string_view("/__pycache__").size());
  if (stem == "__init__") return std::string(folder);
  return folder.empty() ? std::string(stem) : std::string(folder).append("/").append(stem);
}

struct Clash {
  std::string what, path, owner, guest;
};

constexpr std::size_t kMostTold = 20;

// The first as a sentence, and what else there is, so that one run tells all.
void refuse(const std::vector<Clash>& clashes) {
  if (clashes.empty()) return;
  const Clash& first = clashes.front();
  std::string got = "a file of " + first.guest;
  for (std::size_t i = 1; i < std::min(clashes.size(), kMostTold); ++i)
    got += "\n            likewise " + SafePath::printable(clashes[i].path) + " of " + clashes[i].guest + " beside " +
           clashes[i].owner;
  if (clashes.size() > kMostTold) got += "\n            and " + std::to_string(clashes.size() - kMostTold) + " more";
  throw Error(ErrorCode::Conflict,
              {.what = first.what,
               .where = SafePath::printable(first.path),
               .expected = "files of " + first.owner + " only",
               .got = got,
               .next = "leave one of each two out, require a version without that file, or leave one out that others "
                       "ask for: [python] excludes = [\"NAME\"]"});
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
      refuse({{.what = "a native module would be run when Python starts, to make a namespace of its name",
               .path = known->second.path,
               .owner = wheel,
               .guest = known->second.wheel}});
}

void PackageOwners::check() const {
  check_namespaces();
  std::vector<Clash> clashes;
  for (const auto& [module, twins] : twins_)
    clashes.push_back({.what = "a wheel puts a module beside one of another wheel that has the same name",
                       .path = twins.second.path,
                       .owner = twins.first.wheel,
                       .guest = twins.second.wheel});
  for (const auto& [package, owner] : owners_)
    for (const auto& [wheel, path] : guests_.at(package))
      if (wheel != owner.wheel && !are_apart(package, owner.wheel, wheel))
        clashes.push_back({.what = "a wheel puts a file into the package of another one",
                           .path = path,
                           .owner = owner.wheel,
                           .guest = wheel});
  refuse(clashes);
}

}  // namespace sealift::bundle
