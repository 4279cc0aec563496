// SPDX-License-Identifier: Apache-2.0
// The control groups that this process is in: a container's, a Slurm job's, a systemd service's, and those above them.
// Below `host_share`, which reads limits in them: a controller's name comes in, folders leave, the own group first.
// Every reader takes the root folder of the files that the kernel offers, so that tests make their own.
#pragma once

#include <sealift/train/bodies.hpp>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace sealift::train::host {

/// A group as a folder; `unified`: of version 2, whose files have other names than those of version 1.
struct ControlGroup {
  std::filesystem::path folder;
  bool unified = false;
};

/// From this process's own group to the top of its tree, of the trees in which `controller` ("memory", "cpu", "pids")
/// may have limits. Empty where the kernel does not tell. A group above the container's own root cannot be seen.
std::vector<ControlGroup> control_groups(const std::string& controller, const std::filesystem::path& root = "/");

/// The first number of a file; nothing where there is no such file, or it begins with "max".
std::optional<double> number_in(const std::filesystem::path& file);

/// The number behind `key` in a file of lines "key number", as memory.stat and cpu.stat are.
std::optional<double> number_of(const std::filesystem::path& file, const std::string& key);

/// The text of a small file's first line; empty where it cannot be read.
std::string line_of(const std::filesystem::path& file);

}  // namespace sealift::train::host

#ifdef SEALIFT_TRAIN_BODIES
#include <sealift/train/launch/control_groups_inl.hpp>
#endif
