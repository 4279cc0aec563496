// SPDX-License-Identifier: Apache-2.0
// PREFIX/generations: complete environments, and `current`, the link to the one in use. A generation gets its number by
// a rename once it is complete, and is never edited afterwards. What it consists of is in generation_record.hpp.
#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include "installer/disk/disk.hpp"
#include "installer/prefix/prefix.hpp"

namespace sealift::installer {

// The numbers of names like 0003 in `folder`, ascending; none when there is no such folder.
std::vector<unsigned> numbers_in(const std::filesystem::path& folder);
// The numbers of all generations, ascending.
std::vector<unsigned> generation_numbers(const Prefix& prefix);
// The generation that `current` points at; nothing when there is no such link. Throws Conflict for another kind of
// file.
std::optional<unsigned> current_generation(const Prefix& prefix);

// Throws Missing, listing the existing ones, when there is no such generation.
void require_generation(const Prefix& prefix, unsigned number);

// Makes the folder `built` the generation `number`; durable before it has the name.
void publish_generation(const Prefix& prefix, unsigned number, const std::filesystem::path& built, Disk& disk);
// One rename of a new link over `current`; the generation must be durable. `staging` is a folder for the new link.
void point_current_at(const Prefix& prefix, unsigned number, const std::filesystem::path& staging, Disk& disk);

}  // namespace sealift::installer
