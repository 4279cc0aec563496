// SPDX-License-Identifier: Apache-2.0
// Container images as values: what [[image]] of a job asks for, and what a lock pins of it. An image is carried as it
// is; nothing here installs or changes one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sealift/bundle/core/digest.hpp"

namespace sealift::packager {

struct ImageSpec {
  std::string name;    // of its repository inside: "org/app"
  std::string tag;     // "1.0"
  std::string source;  // as skopeo names it: "docker://HOST/org/app:1.0", "oci:/DIR:REF"; files by absolute paths

  // For messages: what people call it.
  std::string title() const { return name + ":" + tag; }
  bool operator==(const ImageSpec&) const = default;
};

struct JobImage {
  ImageSpec spec;
  std::optional<bundle::Digest> digest;  // which the source names, of its manifest or of its list of platforms
};

struct LockedBlob {
  bundle::Digest sha256;
  std::uint64_t size = 0;  // bytes
  std::string media_type;  // as the image says

  bool operator==(const LockedBlob&) const = default;
};

struct LockedImage {
  std::string name;
  std::string tag;
  std::string reference;          // "HOST/org/app@sha256:…"; empty: it came from a file of the packing machine
  LockedBlob manifest;            // for the target's platform
  std::vector<LockedBlob> blobs;  // configuration and layers; sorted by digest, each once

  std::uint64_t size() const {
    std::uint64_t sum = manifest.size;
    for (const LockedBlob& blob : blobs) sum += blob.size;
    return sum;
  }
  bool operator==(const LockedImage&) const = default;
};

}  // namespace sealift::packager
