// SPDX-License-Identifier: Apache-2.0
// The Python environment that a build runs in: uv makes it, and every package in it is pinned by hash.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "packager/builds/build_order.hpp"
#include "packager/host/process.hpp"

namespace sealift::packager {

class BuildEnvironment {
 public:
  // In `place`/environment. All must outlive this.
  BuildEnvironment(const BuildOrder& order, const BuildTools& tools, const std::filesystem::path& place)
      : order_(order), tools_(tools), place_(place) {}

  // The requirements with all their dependencies, each with version and hashes. Wheels only: one lock does not hold
  // what it takes to repeat a build that first builds its own tools. Throws what uv's refusal means.
  std::vector<std::string> pinned(const std::vector<std::string>& wanted) const;
  // Makes it of these packages, and of no other ones.
  void install(const std::vector<std::string>& pins);
  const std::vector<std::string>& installed() const { return installed_; }

  std::filesystem::path folder() const { return place_ / "environment"; }
  std::filesystem::path site_packages() const;

 private:
  ProcessResult run_uv(std::vector<std::string> words) const;
  void uv(const std::vector<std::string>& words, const char* what) const;
  void make_environment() const;
  void require_one_release(const std::vector<std::string>& pins) const;
  void fetch(const std::vector<std::string>& pins) const;

  const BuildOrder& order_;
  const BuildTools& tools_;
  const std::filesystem::path& place_;
  std::vector<std::string> installed_;
};

}  // namespace sealift::packager
