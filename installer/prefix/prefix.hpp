// SPDX-License-Identifier: Apache-2.0
// The names inside a prefix, and nothing else: where trust pins, store, generations, staging and lock are.
// Written once here, so that no other file of the installer builds such a path by hand.
#pragma once

#include <cstdio>
#include <filesystem>
#include <string>

namespace sealift::installer {

class Prefix {
 public:
  // Made absolute, since the working folder may change while we run.
  explicit Prefix(const std::filesystem::path& root) : root_(normal(root)) {}

  const std::filesystem::path& root() const { return root_; }
  std::filesystem::path trust() const { return root_ / "trust"; }
  std::filesystem::path store() const { return root_ / "store"; }
  std::filesystem::path generations() const { return root_ / "generations"; }
  std::filesystem::path pins() const { return root_ / "pins"; }
  std::filesystem::path staging() const { return root_ / "staging"; }
  std::filesystem::path staged_items() const { return staging() / "items"; }
  std::filesystem::path failed() const { return root_ / "failed"; }
  std::filesystem::path receipts() const { return root_ / "receipts"; }
  std::filesystem::path lock() const { return root_ / "lock"; }
  std::filesystem::path current() const { return root_ / "current"; }
  std::filesystem::path generation(unsigned number) const { return generations() / generation_name(number); }

  // 3 is "0003", so that a listing sorts.
  static std::string generation_name(unsigned number) {
    char text[16];
    std::snprintf(text, sizeof text, "%04u", number);
    return text;
  }

 private:
  static std::filesystem::path normal(const std::filesystem::path& root) {
    std::filesystem::path path = std::filesystem::absolute(root).lexically_normal();
    return path.has_filename() || !path.has_relative_path() ? path : path.parent_path();  // no slash at the end
  }

  std::filesystem::path root_;
};

}  // namespace sealift::installer
