// SPDX-License-Identifier: Apache-2.0
// Reads and writes [squashfs]; see squashfs_toml.hpp.
#include "packager/tables/squashfs_toml.hpp"

namespace sealift::packager {

std::optional<SquashfsRule> read_squashfs(TomlTable& document) {
  if (document.is_table("image"))
    document.refuse("image", "an environment as one image is [squashfs], and container images are [[image]]",
                    "[squashfs], or [[image]] with a source", "[image]",
                    "write [squashfs] for an image that `sealift-install mount` shows");
  if (!document.has("squashfs")) return std::nullopt;
  TomlTable table = document.table("squashfs");
  const SquashfsRule rule{.wheels = table.boolean_or("wheels", true)};
  table.done();
  return rule;
}

std::string write_squashfs(const std::optional<SquashfsRule>& rule) {
  if (!rule) return {};
  return std::string("\n[squashfs]\n") + (rule->wheels ? "" : "wheels = false\n");
}

}  // namespace sealift::packager
