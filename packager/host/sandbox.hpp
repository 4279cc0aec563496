// SPDX-License-Identifier: Apache-2.0
// Where code of packages runs while a bundle is made: builds, and the rehearsal. bubblewrap's namespaces hold it, so
// that it reads the system's programs and what the step gives it, writes only its own folders, and reaches no network,
// no other process, no home, no key and no cache. What cannot be held so is not run, unless the packer asks for it.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "packager/host/process.hpp"

namespace sealift::packager {

// How code of packages is run. `None` only where the packer said --unsandboxed-builds; the lock records it.
enum class Isolation { Sandbox, None };

struct SandboxedRun {
  std::vector<std::string> command;                // the program first
  std::map<std::string, std::string> environment;  // all that there is
  std::vector<std::filesystem::path> readable;     // besides the system's programs and libraries; absolute
  std::vector<std::filesystem::path> writable;
  std::filesystem::path folder = "/";               // where it starts
  std::vector<std::filesystem::path> devices = {};  // of /dev, beside null, zero, random and terminals; absolute
  Watch watch = {};
};

// A system in place of this machine's own, of which only programs and libraries are there.
struct OtherSystem {
  std::filesystem::path root;                              // is read; needs a folder mnt, and dev
  std::map<std::string, std::filesystem::path> below_mnt;  // name there -> folder here, which is written
  std::map<std::string, std::filesystem::path> read_below_mnt;
};

// Throws CannotCheck, with the remedy `next`, where this machine cannot hold a process so: bwrap is missing, namespaces
// are forbidden, or a network device is left. Asked once. `what` is to be run.
void require_sandbox(const std::string& next, const std::string& what = "code of packages");

// Runs it and returns how it ended, as run_process does. require_sandbox() comes before.
ProcessResult run_sandboxed(const SandboxedRun& run);
// In another system: every folder of `run` is named as it is there.
ProcessResult run_sandboxed(const SandboxedRun& run, const OtherSystem& system);

}  // namespace sealift::packager
