// SPDX-License-Identifier: Apache-2.0
// The story of `sealift-install verify --volume`: one volume, or recovery file, against the signed manifest and chunk
// list, without the others. A media desk has one disc in its hand; it learns which bytes are bad and what they belong
// to, and burns it again.
#pragma once

#include <optional>

#include "sealift/bundle/host/progress.hpp"
#include "sealift/bundle/verified_bundle.hpp"

namespace sealift::installer {

// Bad chunks that follow each other, for one reason.
struct BadRange {
  std::uint64_t offset = 0;  // in the volume, bytes
  std::uint64_t size = 0;    // bytes
  std::uint64_t first_chunk = 0;
  std::uint64_t chunks = 0;
  std::vector<std::string> entries;  // paths of entries with bytes here, in payload order
  bundle::Error fault;
};

struct VolumeCheck {
  std::string name;
  std::uint64_t version = 0;
  std::string channel;
  bundle::Digest identity;
  bundle::RootName root;
  std::vector<std::string> warnings;
  std::string volume;  // its signed name
  std::filesystem::path file;
  bool recovery = false;      // it is a recovery file, and its chunks are recovery chunks
  std::uint64_t number = 0;   // from 1
  std::uint64_t volumes = 0;  // of the bundle; of a recovery file as many as are recovery files
  std::uint64_t chunks = 0;   // of this volume
  std::uint64_t bytes = 0;    // as signed
  std::optional<bundle::Error> wrong_size;
  std::vector<BadRange> bad;  // by offset; empty, without wrong_size: the volume is whole

  std::vector<bundle::Error> failures() const;
};

// `file` is judged by its name, size and chunks; `opened` needs no volume. Throws what bundle::verify throws, Conflict
// for a name that the bundle does not have, and what InputFile throws.
VolumeCheck check_volume(bundle::OpenBundle opened, const std::filesystem::path& file, const bundle::Trust& trust,
                         bundle::Time now, unsigned threads, bundle::Progress& progress);

}  // namespace sealift::installer
