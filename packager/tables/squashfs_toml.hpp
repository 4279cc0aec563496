// SPDX-License-Identifier: Apache-2.0
// [squashfs]: the bundle carries its environment as one image, too, which is mounted where the bundle lies. Written in
// the job file, kept in the lock. Not [[image]]: those are container images.
#pragma once

#include <optional>
#include <string>

#include "packager/tables/toml_file.hpp"

namespace sealift::packager {

// What a job asks of the image.
struct SquashfsRule {
  bool wheels = true;  // false: what the image was made of is listed, and not carried

  bool operator==(const SquashfsRule&) const = default;
};

// For a job file or a lock; nothing where it has no such table. Throws the document's fault with line and key.
std::optional<SquashfsRule> read_squashfs(TomlTable& document);
std::string write_squashfs(const std::optional<SquashfsRule>& rule);

}  // namespace sealift::packager
