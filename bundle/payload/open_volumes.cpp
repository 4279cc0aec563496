// SPDX-License-Identifier: Apache-2.0
#include "bundle/payload/open_volumes.hpp"

#include <chrono>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "bundle/payload/changed_names.hpp"

namespace sealift::bundle {

OpenVolumes::OpenVolumes(VolumeSources sources, std::vector<Volume> volumes, std::string remedy)
    : sources_(std::move(sources)), volumes_(std::move(volumes)), remedy_(std::move(remedy)), open_(volumes_.size()) {
  for (std::size_t index = 0; index < volumes_.size(); ++index) try {
      open_[index] = find(volumes_[index]);
    } catch (const Error& fault) {
      if (!first_fault_) first_fault_ = fault;
    }
}

OpenVolumes::File OpenVolumes::get(std::size_t index) {
  const std::lock_guard lock(guard_);
  while (!open_[index]) try {
      open_[index] = find(volumes_[index]);
    } catch (const Error& fault) {
      ask(index, fault);
    }
  return open_[index];
}

OpenVolumes::File OpenVolumes::get_if_there(std::size_t index, std::optional<Error>& fault) {
  const std::lock_guard lock(guard_);
  if (!open_[index]) try {
      open_[index] = find(volumes_[index]);
    } catch (const Error& error) {
      fault = error;
    }
  return open_[index];
}

void OpenVolumes::replace(std::size_t index, File bad, const Error& fault) {
  const std::weak_ptr<const VolumeInput> was = bad;
  bad.reset();  // before waiting for the lock: its holder, who asks, waits for all readers to let go
  const std::lock_guard lock(guard_);
  const bool still_open = open_[index] && !open_[index].owner_before(was) && !was.owner_before(open_[index]);
  if (still_open) ask(index, fault);  // otherwise another thread has replaced it since
}

std::vector<std::filesystem::path> OpenVolumes::folders() const {
  const std::lock_guard lock(guard_);
  return sources_.folders;
}

OpenVolumes::File OpenVolumes::if_open(std::size_t index) const {
  const std::lock_guard lock(guard_);
  return open_[index];
}

// Closes all files first, even while other threads read from them: a disc with an open file cannot be taken out.
void OpenVolumes::ask(std::size_t index, const Error& fault) {
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

OpenVolumes::File OpenVolumes::find(const Volume& volume) const {
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
    } catch (const Error& error) {  // another folder may have an intact one
      if (!fault) fault = error;
    }
  }
  if (fault) throw *fault;
  std::optional<ChangedName> changed;
  for (const std::filesystem::path& folder : sources_.folders)
    if (!changed) changed = changed_name(folder, volume.name);
  throw Error(ErrorCode::Missing,
              {.what = "a volume is missing",
               .where = (sources_.folders.front() / volume.name).string(),
               .expected = std::to_string(volume.size) + " bytes",
               .got = changed                       ? changed->got
                      : sources_.folders.size() > 1 ? looked
                                                    : "",
               .next = changed ? changed->next : "copy " + volume.name + " into the bundle's folder" + remedy_});
}

OpenVolumes::File OpenVolumes::open(const std::filesystem::path& path, const Volume& volume) const {
  auto file = std::make_shared<const VolumeInput>(path, sources_.read_once);
  if (file->size() != volume.size)
    throw Error(ErrorCode::Digest,
                {.what = file->size() < volume.size ? "a volume is cut short" : "a volume is too long",
                 .where = path.string(),
                 .expected = std::to_string(volume.size) + " bytes",
                 .got = std::to_string(file->size()) + " bytes",
                 .next = "copy " + volume.name + " again from its source" + remedy_});
  return file;
}

}  // namespace sealift::bundle
