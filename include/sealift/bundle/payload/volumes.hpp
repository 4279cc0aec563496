// SPDX-License-Identifier: Apache-2.0
// The files that a payload is cut into, wherever they lie: in several folders, in any order, or on a disc that somebody
// has yet to put in. Sizes are compared here, bytes by who reads them.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "sealift/bundle/manifest/manifest.hpp"
#include "sealift/bundle/payload/volume_input.hpp"

namespace sealift::bundle {

// Asked for a volume that is not there, is cut short, or holds a chunk that differs from what was signed. Returns a
// further folder to look in, an empty path to look again where it was, nothing to give up: then the fault stands.
using VolumeAsker = std::function<std::optional<std::filesystem::path>(const Volume& volume, const Error& fault)>;

struct VolumeSources {
  std::vector<std::filesystem::path> folders;  // looked at in this order
  VolumeAsker ask = {};                        // nobody to ask: everything must be there from the beginning
  bool read_once = false;                      // past the system's cache
};

// Safe from several threads; one of them asks, the others wait.
class Volumes {
 public:
  using File = std::shared_ptr<const VolumeInput>;

  // Opens what is there. Throws Missing or Digest, naming the volume, when there is nobody to ask for another one.
  Volumes(VolumeSources sources, std::vector<Volume> volumes)
      : sources_(std::move(sources)), volumes_(std::move(volumes)), open_(volumes_.size()) {
    for (std::size_t index = 0; index < volumes_.size(); ++index) try {
        open_[index] = find(volumes_[index]);
      } catch (const Error&) {
        if (!sources_.ask) throw;
        all_there_ = false;
      }
  }

  // Whether every volume was there at the beginning.
  bool all_there() const { return all_there_; }

  File get(std::size_t index) {
    const std::lock_guard lock(guard_);
    while (!open_[index]) try {
        open_[index] = find(volumes_[index]);
      } catch (const Error& fault) {
        ask(index, fault);
      }
    return open_[index];
  }

  // What `bad` gave was no good: lets go of it, and the next get() opens another file. Throws `fault` when nobody has
  // one.
  void replace(std::size_t index, File bad, const Error& fault) {
    const std::weak_ptr<const VolumeInput> was = bad;
    bad.reset();  // before waiting: who asks waits for all readers to let go
    const std::lock_guard lock(guard_);
    const bool first = open_[index] && !open_[index].owner_before(was) && !was.owner_before(open_[index]);
    if (first) ask(index, fault);  // else somebody has, since
  }

  // For messages and hints: nullptr while it is not open.
  File if_open(std::size_t index) const {
    const std::lock_guard lock(guard_);
    return open_[index];
  }

 private:
  // Lets go of all files first, or a disc could not be taken out: also of those that other threads still read from.
  void ask(std::size_t index, const Error& fault) {
    if (!sources_.ask) throw fault;
    std::vector<std::weak_ptr<const VolumeInput>> readers;
    for (File& file : open_) {
      readers.push_back(file);
      file.reset();
    }
    for (const auto& reader : readers)
      while (!reader.expired()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    const std::optional<std::filesystem::path> folder = sources_.ask(volumes_[index], fault);
    if (!folder) throw fault;
    if (!folder->empty()) sources_.folders.insert(sources_.folders.begin(), *folder);
  }

  File find(const Volume& volume) const {
    std::optional<Error> fault;
    std::string looked;
    for (const std::filesystem::path& folder : sources_.folders) {
      const std::filesystem::path path = folder / volume.name;
      std::error_code ignored;
      if (!std::filesystem::exists(std::filesystem::symlink_status(path, ignored))) {
        looked += (looked.empty() ? "not in " : ", ") + folder.string();
        continue;
      }
      try {
        return open(path, volume);
      } catch (const Error& error) {  // a whole one may lie in another folder
        if (!fault) fault = error;
      }
    }
    if (fault) throw *fault;
    throw Error(ErrorCode::Missing, {.what = "a volume is missing",
                                     .where = (sources_.folders.front() / volume.name).string(),
                                     .expected = std::to_string(volume.size) + " bytes",
                                     .got = sources_.folders.size() > 1 ? looked : "",
                                     .next = "copy " + volume.name + " into the bundle's folder"});
  }

  File open(const std::filesystem::path& path, const Volume& volume) const {
    auto file = std::make_shared<const VolumeInput>(path, sources_.read_once);
    if (file->size() != volume.size)
      throw Error(ErrorCode::Digest,
                  {.what = file->size() < volume.size ? "a volume is cut short" : "a volume is too long",
                   .where = path.string(),
                   .expected = std::to_string(volume.size) + " bytes",
                   .got = std::to_string(file->size()) + " bytes",
                   .next = "copy " + volume.name + " again from its source"});
    return file;
  }

  mutable std::mutex guard_;
  VolumeSources sources_;
  std::vector<Volume> volumes_;
  std::vector<File> open_;
  bool all_there_ = true;
};

}  // namespace sealift::bundle
