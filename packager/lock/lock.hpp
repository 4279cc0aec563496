// SPDX-License-Identifier: Apache-2.0
// The lock file as a plain value with one writer and one reader: a job resolved to digests, and the contract between
// `lock` and `create`. It pins everything that goes into the bundle; in the file, paths are relative to it.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "packager/lock/locked_indexes.hpp"
#include "packager/tables/apt.hpp"
#include "packager/tables/image.hpp"
#include "packager/tables/kernel.hpp"
#include "packager/tables/model.hpp"
#include "packager/tables/owner_rules.hpp"
#include "packager/tables/rpm.hpp"
#include "packager/tables/shared_rules.hpp"
#include "packager/tables/squashfs_toml.hpp"
#include "packager/tables/startup_rules.hpp"
#include "packager/toolchain/toolchain.hpp"
#include "sealift/bundle/core/digest.hpp"
#include "sealift/bundle/manifest/manifest.hpp"
#include "sealift/bundle/manifest/variables.hpp"

namespace sealift::packager {

// The source of a package that has no wheel.
enum class SourceKind { Archive, Git, Folder };

std::string_view name_of(SourceKind kind);  // "archive", "git", "folder"

// How a wheel was built here, so that it can be built again and compared.
struct LockedBuild {
  SourceKind kind = SourceKind::Archive;
  std::string url;  // of the archive or the repository; empty for a folder
  std::string commit;
  std::string subdirectory;
  bundle::Digest sha256;                  // of the archive; for a repository or folder, of its tar in the cache
  std::vector<std::string> requirements;  // all that the build had: "NAME==VERSION --hash=sha256:…"
  std::string python;                     // "3.11.2"
  std::string tools;                      // uv and compiler, for people who compare
  std::map<std::string, std::string> variables = {};  // that the job gave it
  bool sandboxed = true;  // false: --unsandboxed-builds, so it could reach all that its packer can

  bool operator==(const LockedBuild&) const = default;
};

struct LockedWheel {
  std::string name;
  std::string version;
  std::string file_name;
  std::string url;
  bundle::Digest sha256;
  std::uint64_t size = 0;                                // bytes; 0 when nobody said
  std::optional<LockedBuild> built_from = std::nullopt;  // then there is no url

  bool operator==(const LockedWheel&) const = default;
};

// A tar in the cache: interpreter, standard library, and the native libraries that interpreter and programs need.
struct LockedInterpreter {
  std::string description;
  std::string version;  // "3.11.2"
  bundle::Digest sha256;
  std::uint64_t size = 0;
  std::vector<std::string> libraries;  // carried native libraries, by file name

  bool operator==(const LockedInterpreter&) const = default;
};

struct LockedProgram {
  std::filesystem::path source;  // absolute once read
  bundle::Digest sha256;
  std::uint64_t size = 0;
  std::string into;
  bool executable = true;
  std::vector<std::string> from_wheels;  // libraries that some wheel must bring

  bool operator==(const LockedProgram&) const = default;
};

// The entry of the C++ core is this, its version and ".tar".
inline constexpr std::string_view kSdkPrefix = "sdk/sealift-";

// The C++ core as a tar in the cache: headers, CMake package, licence.
struct LockedSdk {
  std::string version;  // "0.1.0"
  bundle::Digest sha256;
  std::uint64_t size = 0;

  bool operator==(const LockedSdk&) const = default;
};

struct Lock {
  std::string name;
  std::uint64_t version = 0;
  std::string channel;
  std::uint64_t rollback_floor = 0;
  std::string created;                                                       // RFC 3339, UTC
  bundle::DigestAlgorithm payload_digest = bundle::DigestAlgorithm::Sha256;  // of the payload's chunks
  bundle::Target target;
  std::vector<std::string> overruled = {};       // checks against the target that refuse nothing; sorted
  std::vector<std::string> host_libraries = {};  // names and patterns of what the target has itself; sorted
  std::filesystem::path system = {};             // as the job names it: where the target's glibc is read; empty: here
  bundle::GlibcVersion glibc_floor;
  std::string python;  // "3.11"; empty: without an interpreter and packages for it
  std::vector<std::string> imports;
  LockedIndexes indexes;
  std::vector<std::string> warnings = {};  // about what was chosen, by uv and by us
  LockedInterpreter interpreter;
  std::optional<bundle::CarriedRuntime> runtime;  // part of the interpreter's tar
  std::vector<LockedProgram> programs;
  std::vector<LockedWheel> wheels;              // sorted by file name
  std::vector<LockedModel> models;              // and data
  std::vector<LockedKernel> kernels = {};       // of a hub, for the package kernels
  std::vector<LockedImage> images = {};         // container images; sorted by name and tag
  std::optional<LockedSdk> sdk = {};            // the C++ core
  LockedApt apt;                                // Debian packages
  LockedRpm rpm = {};                           // packages of rpm systems
  std::vector<OwnerRule> owners;                // rules for paths that two wheels bring
  std::vector<SharedRule> shared;               // rules for files in another one's package
  std::vector<StartupRule> startup_files = {};  // .pth files that may run code when Python starts
  Toolchain toolchain = {};                     // its launcher is made by `create`
  bundle::Variables variables = {};             // what programs inside get
  std::optional<SquashfsRule> squashfs = {};    // the environment as one image, too

  std::string stem() const { return name + "-" + std::to_string(version); }
  bool operator==(const Lock&) const = default;
};

// Deterministic text. `folder` is where the lock will stand.
std::string write_lock(const Lock& lock, const std::filesystem::path& folder);

// Throws Format naming file, line and key, CannotCheck for a lock of another format.
Lock read_lock(const std::filesystem::path& file);

}  // namespace sealift::packager
