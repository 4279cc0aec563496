// SPDX-License-Identifier: Apache-2.0
// The job file: what people write to say what to pack, and for which machine. First step of `lock`.
// Everything is checked before anything is resolved; relative paths are relative to the job file.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "packager/job/apt.hpp"
#include "packager/job/model.hpp"
#include "packager/job/owner_rules.hpp"
#include "packager/job/python_inputs.hpp"
#include "sealift/bundle/core/digest.hpp"
#include "sealift/bundle/manifest/target.hpp"

namespace sealift::packager {

struct JobProgram {
  std::filesystem::path source;
  std::string into;  // its path in the generation; a SafePath's text
  bool executable = true;
};

struct Job {
  std::filesystem::path file;
  std::string name;
  std::uint64_t version = 0;
  std::uint64_t rollback_floor = 0;  // sites that take this in refuse versions below
  std::string channel = "stable";
  bundle::DigestAlgorithm payload_digest = bundle::DigestAlgorithm::Sha256;  // of the payload's chunks
  bundle::Target target;
  bool carries_runtime = false;                      // glibc travels along, because the target's is too old
  std::string python;                                // "3.11"
  std::string interpreter = "auto";                  // "auto", or an absolute path
  std::optional<bundle::Digest> interpreter_sha256;  // of an archive
  PythonInputs inputs;                               // which packages
  std::vector<std::string> imports;                  // what the self-test imports
  std::vector<JobProgram> programs;
  std::vector<JobModel> models;   // and data
  JobApt apt;                     // Debian packages
  std::vector<OwnerRule> owners;  // of paths that two packages bring
};

// Throws Usage naming file, line and key.
Job read_job(const std::filesystem::path& file);

}  // namespace sealift::packager
