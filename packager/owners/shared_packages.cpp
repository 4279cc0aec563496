// SPDX-License-Identifier: Apache-2.0
// Rules first, then what the wheels say of each other; see shared_packages.hpp.
#include "packager/owners/shared_packages.hpp"

#include <algorithm>

#include "sealift/bundle/wheel/wheel_name.hpp"

namespace sealift::packager {

namespace {

constexpr std::string_view kLitterFolders[] = {"tests",    "test",    "docs",       "doc",
                                               "examples", "example", "benchmarks", "benchmark"};
constexpr std::string_view kLitterFiles[] = {"LICENSE", "LICENCE", "COPYING",   "NOTICE", "README",
                                             "CHANGES", "AUTHORS", "CHANGELOG", "HISTORY"};

std::string project_of(const std::string& wheel) {
  const auto name = bundle::parse_wheel_name(wheel);
  return name ? bundle::normalized_project_name(name->name) : wheel;
}

std::string_view folder_of(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return slash == path.npos ? std::string_view() : path.substr(0, slash);
}

bool lies_below(std::string_view path, std::string_view folder) {
  return path.starts_with(folder) && path.size() > folder.size() && path[folder.size()] == '/';
}

// A library that others may ask for by its name; a module of Python's is asked for by its package alone.
bool is_library(std::string_view path) {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  if (name.find(".cpython-") != name.npos || name.ends_with(".abi3.so")) return false;
  return name.ends_with(".so") || name.find(".so.") != name.npos;
}

}  // namespace

bool is_litter(std::string_view path) {
  const std::string_view top = path.substr(0, path.find('/'));
  if (top.size() != path.size())
    return std::find(std::begin(kLitterFolders), std::end(kLitterFolders), top) != std::end(kLitterFolders);
  const std::string_view stem = top.substr(0, top.find_first_of(".-_"));
  const bool code = top.ends_with(".py") || top.ends_with(".so") || top.ends_with(".pth");
  return !code && std::find(std::begin(kLitterFiles), std::end(kLitterFiles), stem) != std::end(kLitterFiles);
}

void SharedPackages::note_needs(const std::string& wheel, const std::set<std::string>& needs) {
  needs_[project_of(wheel)] = needs;
}

void SharedPackages::note_file(std::string_view path, const std::string& wheel) {
  if (is_library(path)) libraries_[std::string(folder_of(path))].insert(wheel);
}

void SharedPackages::note_left_out(std::string_view path, const std::string& wheel) {
  left_out_[project_of(wheel)].emplace_back(path);
}

bool SharedPackages::had_files(const SharedRule& rule) const {
  const auto files = left_out_.find(rule.package);
  return files != left_out_.end() && std::any_of(files->second.begin(), files->second.end(),
                                                 [&](const std::string& file) { return lies_below(file, rule.into); });
}

// By a chain of requirements: apache-airflow-providers-ftp requires apache-airflow, and that its core. Or the owner
// asks for the guest itself: transformer-engine[core-cu12] for transformer-engine-cu12.
bool SharedPackages::requires_it(const std::string& guest, const std::string& owner) const {
  if (const auto needs = needs_.find(owner); needs != needs_.end() && needs->second.contains(guest)) return true;
  std::set<std::string> seen{guest};
  std::vector<std::string> todo{guest};
  while (!todo.empty()) {
    const auto needs = needs_.find(todo.back());
    todo.pop_back();
    if (needs == needs_.end()) continue;
    for (const std::string& project : needs->second) {
      if (project == owner) return true;
      if (seen.insert(project).second) todo.push_back(project);
    }
  }
  return false;
}

// A library in a folder that has another wheel's, or that is named as such folders are.
bool SharedPackages::is_searched(std::string_view path, const std::string& wheel) const {
  if (!is_library(path)) return false;
  const std::string_view folder = folder_of(path), name = folder.substr(folder.rfind('/') + 1);
  if (name == "lib" || name == "lib64" || name.ends_with("libs")) return true;
  const auto there = libraries_.find(folder);
  return there != libraries_.end() && std::any_of(there->second.begin(), there->second.end(),
                                                  [&](const std::string& other) { return other != wheel; });
}

Shares SharedPackages::settle(bundle::PackageOwners& packages) const {
  Shares shares;
  std::vector<bool> used(rules_.size());
  for (const bundle::PackageOwners::Guest& guest : packages.guests()) {
    if (!guest.may_share) continue;
    const std::string project = project_of(guest.wheel);
    std::vector<std::string> left = guest.files;
    for (std::size_t i = 0; i < rules_.size(); ++i) {
      if (rules_[i].package != project) continue;
      const auto covered = [&](std::string_view file) { return lies_below(file, rules_[i].into); };
      if (std::none_of(guest.files.begin(), guest.files.end(), covered)) continue;
      used[i] = true;
      shares[guest.wheel].insert(rules_[i].into);
      std::erase_if(left, covered);
    }
    if (left.empty()) continue;
    const bool searched =
        std::any_of(left.begin(), left.end(), [&](std::string_view file) { return is_searched(file, guest.wheel); });
    if (namespaces_.contains(guest.package) || is_litter(guest.package + "/") ||
        (!searched && requires_it(project, project_of(guest.owner))))
      shares[guest.wheel].insert(bundle::common_folder(left));
  }
  std::string faults;
  for (std::size_t i = 0; i < rules_.size(); ++i)
    if (!used[i] && !had_files(rules_[i]))
      faults += fault_line(rules_[i], "it has no file there in a package of another one's");
  if (!faults.empty()) refuse_shared_rules(faults);
  for (const auto& [wheel, folders] : shares)
    for (const std::string& folder : folders) packages.share(wheel, folder);
  return shares;
}

}  // namespace sealift::packager
