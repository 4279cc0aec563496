// SPDX-License-Identifier: Apache-2.0
// A payload's volumes as open files, found in the folders of a VolumeSources and reopened when somebody brings a better
// copy. File sizes are compared with the signed ones here; readers check the bytes.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "bundle/payload/volume_input.hpp"
#include "sealift/bundle/payload/volumes.hpp"

namespace sealift::bundle {

// Safe from several threads: one of them asks for a volume, the others wait.
class OpenVolumes {
 public:
  using File = std::shared_ptr<const VolumeInput>;

  // Opens what is there. `remedy` is what its messages say to do instead of another copy; may be empty.
  OpenVolumes(VolumeSources sources, std::vector<Volume> volumes, std::string remedy = {});

  // Missing or Digest, naming the volume: the first that was not there, or not of its size, at the beginning.
  const std::optional<Error>& first_fault() const { return first_fault_; }
  // Whether there is somebody who may bring another one.
  bool asks() const { return static_cast<bool>(sources_.ask); }

  // Where it looks now: more than at the beginning where somebody has named further folders.
  std::vector<std::filesystem::path> folders() const;

  // Volume number `index`, asked for until it is there. Throws why it is not when there is nobody to ask.
  File get(std::size_t index);
  // The same without asking: nullptr, and why in `fault`.
  File get_if_there(std::size_t index, std::optional<Error>& fault);

  // Closes the file `bad`, in which `fault` was found, so that the next get() opens another one. Throws `fault` when
  // nobody has one.
  void replace(std::size_t index, File bad, const Error& fault);

  // The volume's file, for messages and hints; nullptr while it is not open.
  File if_open(std::size_t index) const;

 private:
  void ask(std::size_t index, const Error& fault);
  File find(const Volume& volume) const;
  File open(const std::filesystem::path& path, const Volume& volume) const;

  mutable std::mutex guard_;
  VolumeSources sources_;
  std::vector<Volume> volumes_;
  std::string remedy_;
  std::vector<File> open_;
  std::optional<Error> first_fault_;
};

}  // namespace sealift::bundle
