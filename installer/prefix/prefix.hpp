// SPDX-License-Identifier: Apache-2.0
// The paths inside a prefix: trust, store, generations, staging, lock and the rest.
// Written only here, so that no other file of the installer builds such a path by hand.
#pragma once

#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

namespace sealift::installer {

class Prefix {
 public:
  // Made absolute, since the working folder may change while we run.
  explicit Prefix(const std::filesystem::path& folder) : folder_(normal(folder)) {}

  const std::filesystem::path& folder() const { return folder_; }
  std::filesystem::path trust() const { return folder_ / "trust"; }
  std::filesystem::path store() const { return folder_ / "store"; }
  std::filesystem::path generations() const { return folder_ / "generations"; }
  std::filesystem::path pins() const { return folder_ / "pins"; }
  std::filesystem::path venvs() const { return folder_ / "venvs"; }
  std::filesystem::path site() const { return folder_ / "site"; }
  std::filesystem::path modulefiles() const { return folder_ / "modulefiles"; }
  std::filesystem::path kernels() const { return folder_ / "kernels"; }
  std::filesystem::path staging() const { return folder_ / "staging"; }
  std::filesystem::path staged_items() const { return staging() / "items"; }
  std::filesystem::path failed() const { return folder_ / "failed"; }
  std::filesystem::path receipts() const { return folder_ / "receipts"; }
  std::filesystem::path lock() const { return folder_ / "lock"; }
  std::filesystem::path stamps() const { return folder_ / "stamps"; }
  std::filesystem::path current() const { return folder_ / "current"; }
  // All folders right below it.
  std::vector<std::filesystem::path> folders() const {
    return {trust(), store(), generations(), staging(),     failed(), receipts(),
            pins(),  venvs(), site(),        modulefiles(), kernels()};
  }
  std::filesystem::path generation(unsigned number) const { return generations() / generation_name(number); }

  // 3 is "0003", so that a listing sorts.
  static std::string generation_name(unsigned number) {
    char text[16];
    std::snprintf(text, sizeof text, "%04u", number);
    return text;
  }

 private:
  static std::filesystem::path normal(const std::filesystem::path& folder) {
    std::filesystem::path path = std::filesystem::absolute(folder).lexically_normal();
    return path.has_filename() || !path.has_relative_path() ? path : path.parent_path();  // no slash at the end
  }

  std::filesystem::path folder_;
};

}  // namespace sealift::installer
