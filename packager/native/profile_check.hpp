// SPDX-License-Identifier: Apache-2.0
// Does the machine that the profile describes have what the bundle asks of it: driver, GPUs, processor, kernel, room?
// `lock` asks with what it knows, `create` with everything, so that no medium leaves for a machine that must refuse it.
// Pure: needs and profile -> findings. A job overrules a check by its name; the manifest says which.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "packager/native/native_check.hpp"
#include "sealift/bundle/native/gpu_code.hpp"

namespace sealift::packager {

struct MachineNeeds {
  struct Need {
    std::string value;  // empty: nothing is asked
    std::string who;    // the component that asks for most
  };

  std::optional<unsigned> cuda;                                       // the major version that is carried
  std::string cuda_of;                                                // by which component
  std::optional<unsigned> oldest_cuda;                                // for `lock`, which has no code to look at
  Need cpu;                                                           // "x86-64-v3"
  Need kernel;                                                        // "3.2.0"
  std::uint64_t bytes = 0;                                            // on the target's disk; at least these
  std::map<std::string, std::map<std::string, bundle::GpuCode>> gpu;  // component -> file -> its code
  std::map<std::string, std::string> gpu_faults;                      // file -> why its code cannot be read
};

// Of all files for `arch`; `bytes` is left to the caller.
MachineNeeds machine_needs(const NativeFiles& files, const std::string& arch, std::optional<unsigned> cuda);

// Whatever the profile does not say is not compared. A refusal that `overruled` names is a warning.
std::vector<NativeFinding> profile_findings(const MachineNeeds& needs, const bundle::Target& profile,
                                            const std::vector<std::string>& overruled);

// As the manifest carries it: "torch-2.11.0" -> "sm_75 sm_80".
std::map<std::string, std::string> gpu_code_of(const MachineNeeds& needs);

}  // namespace sealift::packager
