// SPDX-License-Identifier: Apache-2.0
// The job file, in which people write what to pack and for which machine. First step of `lock`.
// Everything is checked before anything is resolved; relative paths are relative to the job file.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "packager/job/golden_file.hpp"
#include "packager/job/own_programs.hpp"
#include "packager/job/python_inputs.hpp"
#include "packager/tables/apt.hpp"
#include "packager/tables/image.hpp"
#include "packager/tables/model.hpp"
#include "packager/tables/owner_rules.hpp"
#include "packager/tables/rpm.hpp"
#include "packager/tables/shared_rules.hpp"
#include "packager/tables/squashfs_toml.hpp"
#include "packager/tables/startup_rules.hpp"
#include "packager/toolchain/toolchain.hpp"
#include "sealift/bundle/core/digest.hpp"
#include "sealift/bundle/manifest/target.hpp"

namespace sealift::packager {

// The C++ core, for programs that are built inside.
struct JobSdk {
  std::filesystem::path from;  // an installation; empty: the one of the running program
};

struct Job {
  std::filesystem::path file;
  std::string name;
  std::uint64_t version = 0;
  std::uint64_t rollback_floor = 0;  // a site that installs this bundle refuses versions below
  std::string channel = "stable";
  bundle::DigestAlgorithm payload_digest = bundle::DigestAlgorithm::Sha256;  // of the payload's chunks
  bundle::Target target;
  std::vector<std::string> overruled = {};       // checks against the target that refuse nothing (profile_check.hpp)
  std::vector<std::string> host_libraries = {};  // patterns of what the target has itself (host_libraries.hpp)
  std::vector<std::string> fleet_floors = {};    // of a profile of many machines: who lowers what, for people
  bool carries_runtime = false;                  // the bundle has a glibc, because the target's is too old
  std::filesystem::path system = {};             // a root that libraries are taken from; empty: this machine's own
  std::string python;                            // "3.11"; empty: no interpreter, and no packages for it
  std::string interpreter = "auto";              // "auto", or an absolute path
  std::optional<bundle::Digest> interpreter_sha256;  // of an archive
  PythonInputs inputs;                               // the Python packages
  std::vector<std::string> imports;                  // modules that the self-test imports
  std::vector<JobProgram> programs;
  std::vector<JobModel> models;                 // and data
  std::vector<ModelSpec> kernels = {};          // of a hub, for the package kernels
  std::vector<JobImage> images = {};            // container images
  std::vector<JobGolden> goldens = {};          // results recorded outside; their files are among programs
  std::optional<JobSdk> sdk = {};               // nothing: it is not carried
  Toolchain toolchain = {};                     // its wheel is among the requirements
  JobApt apt;                                   // Debian packages
  JobRpm rpm = {};                              // packages of rpm systems
  std::vector<OwnerRule> owners;                // for paths that two packages install
  std::vector<SharedRule> shared;               // for packages with files in another one's
  std::vector<StartupRule> startup_files = {};  // .pth files that may run code when Python starts
  std::optional<SquashfsRule> squashfs = {};    // the environment as one image, too
  // What programs inside get; nothing: what Sealift would set is left out.
  std::map<std::string, std::optional<std::string>> variables = {};
};

// Throws Usage naming file, line and key.
Job read_job(const std::filesystem::path& file);

}  // namespace sealift::packager
