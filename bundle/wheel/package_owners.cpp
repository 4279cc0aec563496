// SPDX-License-Identifier: Apache-2.0
#include "sealift/bundle/wheel/package_owners.hpp"

#include <algorithm>
#include <string_view>
#include <vector>

#include "sealift/bundle/core/error.hpp"
#include "sealift/bundle/core/safe_path.hpp"
#include "sealift/bundle/wheel/wheel_name.hpp"

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

constexpr std::size_t kMostTold = 20;

// What can be pasted into the job file.
std::string shared_rule(const std::string& folder, const std::string& wheel) {
  const auto name = parse_wheel_name(std::string_view(wheel).substr(wheel.rfind('/') + 1));
  if (!name) return {};
  return "\n            [[shared]]\n            package = \"" + normalized_project_name(name->name) +
         "\"\n            into = \"" + SafePath::printable(folder) + "\"";
}

}  // namespace

std::string common_folder(const std::vector<std::string>& files) {
  std::string common = files.front().substr(0, files.front().rfind('/'));
  for (const std::string& file : files)
    while (!file.starts_with(common + "/")) common.erase(common.rfind('/'));
  return common;
}

// The first as a sentence, and what else there is, so that one run tells all.
void PackageOwners::refuse(const std::vector<Clash>& clashes) {
  if (clashes.empty()) return;
  const Clash& first = clashes.front();
  std::string got = "a file of " + first.guest, rules;
  for (std::size_t i = 1; i < std::min(clashes.size(), kMostTold); ++i)
    got += "\n            likewise " + SafePath::printable(clashes[i].path) + " of " + clashes[i].guest + " beside " +
           clashes[i].owner;
  if (clashes.size() > kMostTold) got += "\n            and " + std::to_string(clashes.size() - kMostTold) + " more";
  for (std::size_t i = 0; i < std::min(clashes.size(), kMostTold); ++i)
    if (!clashes[i].shareable.empty()) rules += shared_rule(clashes[i].shareable, clashes[i].guest);
  throw Error(ErrorCode::Conflict,
              {.what = first.what,
               .where = SafePath::printable(first.path),
               .expected = "files of " + first.owner + " only",
               .got = got,
               .next = "leave one of each two out, require a version without that file, or leave one out that others "
                       "ask for: [python] excludes = [\"NAME\"]" +
                       (rules.empty() ? rules : ", or allow it in the job file:" + rules)});
}

void PackageOwners::claim(std::string_view path, const std::string& wheel, bool empty) {
  claim_module(path, wheel);
  const std::size_t slash = path.find('/');
  if (slash == path.npos) return;
  const std::string_view package = path.substr(0, slash), rest = path.substr(slash + 1),
                         inner = rest.substr(0, rest.find('/') + 1);
  if (rest == "__init__.py") owners_.emplace(std::string(package), Owner{.wheel = wheel, .empty = empty});
  if (package != last_package_ || wheel != last_wheel_) {
    last_part_ = &packages_[std::string(package)][wheel];
    last_package_ = package;
    last_wheel_ = wheel;
    last_inner_.clear();
  }
  last_part_->files.emplace_back(path);
  if (inner == last_inner_ && !inner.empty()) return;
  last_part_->inner.emplace(inner.empty() ? rest : inner);
  last_inner_ = inner;
}

void PackageOwners::share(const std::string& wheel, const std::string& into) {
  shared_[wheel].insert(into);
}

// Whether `owner` has but an empty __init__.py and folders in `package`, and the guest is in none of these folders.
bool PackageOwners::are_apart(const std::string& package, const std::string& owner, const Part& guest) const {
  if (!owners_.at(package).empty) return false;
  const Part& own = packages_.at(package).at(owner);
  return std::all_of(own.inner.begin(), own.inner.end(), [&](const std::string& name) {
    return name == "__init__.py" || (name.ends_with('/') && !guest.inner.contains(name));
  });
}

bool PackageOwners::is_shared(const std::string& wheel, std::string_view path) const {
  const auto folders = shared_.find(wheel);
  return folders != shared_.end() &&
         std::any_of(folders->second.begin(), folders->second.end(), [&](const std::string& into) {
           return path.starts_with(into) && path.size() > into.size() && path[into.size()] == '/';
         });
}

std::vector<PackageOwners::Guest> PackageOwners::guests() const {
  std::vector<Guest> guests;
  for (const auto& [package, owner] : owners_) {
    const auto parts = packages_.find(package);
    if (parts == packages_.end()) continue;
    for (const auto& [wheel, part] : parts->second) {
      if (wheel == owner.wheel || (!owner.path && are_apart(package, owner.wheel, part))) continue;
      Guest guest{.package = package, .owner = owner.wheel, .wheel = wheel, .files = {}, .may_share = !owner.path};
      for (const std::string& file : part.files)
        if (owner.path || !is_shared(wheel, file)) guest.files.push_back(file);
      if (!guest.files.empty()) guests.push_back(std::move(guest));
    }
  }
  return guests;
}

// Modules of one name at any depth of a package that is shared: a guest's folder beside the owner's module of that name
// would be imported in its place.
void PackageOwners::find_twins(const std::string& package, std::vector<Clash>& clashes) const {
  std::map<std::string, std::pair<std::string_view, std::string_view>> modules;  // -> wheel, path
  for (const auto& [wheel, part] : packages_.at(package))
    for (const std::string& file : part.files) {
      const std::string module = module_of(file);
      if (module.empty() || twins_.contains(module)) continue;
      const auto [known, fresh] = modules.try_emplace(module, wheel, file);
      if (!fresh && known->second.first != wheel)
        clashes.push_back({.what = "a wheel puts a module beside one of another wheel that has the same name",
                           .path = file,
                           .owner = std::string(known->second.first),
                           .guest = wheel});
    }
}

void PackageOwners::claim_module(std::string_view path, const std::string& wheel) {
  const bool native = path.ends_with(".so");
  if (!native && std::count(path.begin(), path.end(), '/') > 3) return;  // no module of two names lies so deep
  const std::string module = module_of(path);
  if (module.empty() || (!native && std::count(module.begin(), module.end(), '/') > 1)) return;
  const Module claimed{.wheel = wheel, .path = std::string(path), .native = native};
  const auto [known, fresh] = modules_.emplace(module, claimed);
  if (fresh) return;
  if (known->second.wheel != wheel) twins_.emplace(module, std::pair(known->second, claimed));
  known->second.native = known->second.native || native;
}

void PackageOwners::claim(const StartupEffects& startup, const std::string& wheel) {
  for (const std::string& folder : startup.folders) {
    const std::string top = folder.substr(0, folder.find('/'));
    owners_.insert_or_assign(top, Owner{.wheel = wheel, .empty = false, .path = true});
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
  for (const Guest& guest : guests())
    clashes.push_back({.what = "a wheel puts a file into the package of another one",
                       .path = guest.files.front(),
                       .owner = guest.owner,
                       .guest = guest.wheel,
                       .shareable = guest.may_share ? common_folder(guest.files) : ""});
  std::set<std::string> shared;
  for (const auto& [wheel, folders] : shared_)
    for (const std::string& folder : folders)
      if (const std::string package = folder.substr(0, folder.find('/')); packages_.contains(package))
        shared.insert(package);
  for (const std::string& package : shared) find_twins(package, clashes);
  refuse(clashes);
}

}  // namespace sealift::bundle
