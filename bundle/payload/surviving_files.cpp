// SPDX-License-Identifier: Apache-2.0
#include "bundle/payload/surviving_files.hpp"

#include <algorithm>
#include <system_error>

namespace sealift::bundle {
namespace {

Error missing(const std::filesystem::path& path, const Volume& file) {
  return {ErrorCode::Missing,
          {.what = "a volume is missing",
           .where = path.string(),
           .expected = std::to_string(file.size) + " bytes",
           .next = "copy " + file.name + " from its source"}};
}

Error wrong_size(const InputFile& copy, const Volume& file) {
  return {ErrorCode::Digest,
          {.what = copy.size() < file.size ? "a volume is cut short" : "a volume is too long",
           .where = copy.path().string(),
           .expected = std::to_string(file.size) + " bytes",
           .got = std::to_string(copy.size()) + " bytes",
           .next = "copy " + file.name + " again from its source"}};
}

}  // namespace

SurvivingFiles::SurvivingFiles(const std::vector<std::filesystem::path>& folders, const std::vector<Volume>& files)
    : names_(files), copies_(files.size()), faults_(files.size()) {
  for (std::size_t number = 0; number < files.size(); ++number) {
    for (const std::filesystem::path& folder : folders) look(folder / files[number].name, files[number], number);
    const bool whole = std::any_of(copies_[number].begin(), copies_[number].end(),
                                   [&](const InputFile& copy) { return copy.size() == files[number].size; });
    if (whole)
      faults_[number].reset();
    else if (!faults_[number])
      faults_[number] = missing(folders.front() / files[number].name, files[number]);
  }
}

void SurvivingFiles::look(const std::filesystem::path& path, const Volume& file, std::size_t number) {
  std::error_code ignored;
  if (!std::filesystem::exists(std::filesystem::symlink_status(path, ignored))) return;
  try {
    InputFile copy(path);
    if (copy.size() != file.size && !faults_[number]) faults_[number] = wrong_size(copy, file);
    copies_[number].push_back(std::move(copy));
  } catch (const Error& fault) {
    if (!faults_[number]) faults_[number] = fault;
  }
}

bool SurvivingFiles::reaches(const SignedRange& range, std::uint64_t size) const {
  return std::any_of(copies_[range.file].begin(), copies_[range.file].end(), [&](const InputFile& copy) {
    return copy.size() >= range.offset && copy.size() - range.offset >= size;
  });
}

std::optional<Error> SurvivingFiles::read(const SignedRange& range, std::span<std::byte> out, DigestAlgorithm algorithm,
                                          const std::string& what, std::optional<Error>* passed_over) const {
  std::optional<Error> fault = faults_[range.file];
  for (const InputFile& copy : copies_[range.file]) try {
      if (copy.size() < range.offset || copy.size() - range.offset < out.size()) continue;
      copy.read_exactly(range.offset, out);
      const Digest digest = digest_of(out, algorithm);
      if (digest == range.digest) {
        if (passed_over != nullptr) *passed_over = fault;
        return std::nullopt;
      }
      if (!fault)
        fault = Error(ErrorCode::Digest, {.what = what + " differs from what was signed",
                                          .where = copy.path().string() + " at offset " + std::to_string(range.offset),
                                          .expected = name_of(algorithm) + " " + range.digest.hex(),
                                          .got = name_of(algorithm) + " " + digest.hex(),
                                          .next = "copy " + names_[range.file].name + " again from its source"});
    } catch (const Error& error) {  // another copy may be readable
      if (!fault) fault = error.within(what);
    }
  return fault;
}

void SurvivingFiles::will_need(const SignedRange& range, std::uint64_t size) const {
  for (const InputFile& copy : copies_[range.file]) return copy.will_need(range.offset, size);
}

}  // namespace sealift::bundle
