// SPDX-License-Identifier: Apache-2.0
// A payload's volumes as open files, found in the folders of a VolumeSources and reopened when somebody brings a better
// copy. File sizes are compared with the signed ones here; the bytes are checked by whoever reads them.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "bundle/payload/volume_input.hpp"
#include "sealift/bundle/payload/volumes.hpp"

namespace sealift::bundle {

// Safe from several threads: one of them asks for a volume, the others wait.
class OpenVolumes {
 public:
  using File = std::shared_ptr<const VolumeInput>;

  // Opens what is there. Throws Missing or Digest, naming the volume, when there is nobody to ask for another one.
  // `remedy` is what its messages say to do instead of another copy; may be empty.
  OpenVolumes(VolumeSources sources, std::vector<Volume> volumes, std::string remedy = {});

  // Whether every volume was there at the beginning.
  bool all_there() const { return all_there_; }

  // Volume number `index`, asked for until it is there.
  File get(std::size_t index);

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
  bool all_there_ = true;
};

}  // namespace sealift::bundle
