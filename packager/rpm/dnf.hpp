// SPDX-License-Identifier: Apache-2.0
// Asks dnf's solver which packages a bare system of the target's kind would get. dnf reads and checks the indexes of
// the job's repositories and nothing else of this machine; it fetches no package.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "packager/tables/rpm.hpp"

namespace sealift::packager {

// A package as its repository's index describes it.
struct IndexedRpm {
  std::string name;
  std::string epoch;
  std::string version;
  std::string release;
  std::string arch;
  std::string repository;
  std::string url;
  std::uint64_t size = 0;
  bundle::Digest sha256;

  // "NAME-VERSION-RELEASE.ARCH.rpm", whatever the mirror calls it.
  std::string file() const { return name + "-" + version + "-" + release + "." + arch + ".rpm"; }
  std::string evr() const { return (epoch == "0" ? "" : epoch + ":") + version + "-" + release; }
};

// The closure of the job's packages in an empty root, sorted by file; `arch` is as uname prints it, and dnf's state
// lies below `scratch`, which exists. Throws Missing without dnf, Usage for unknown packages (naming all), Network when
// a repository does not answer, Signature when its index is not signed by its keys, Conflict when the dependencies
// cannot be resolved, CannotCheck for a dnf or an index of another kind, Format for an index that no repository has.
std::vector<IndexedRpm> resolve_rpms(const JobRpm& job, const std::string& arch, const std::filesystem::path& scratch);

}  // namespace sealift::packager
