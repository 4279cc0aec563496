// SPDX-License-Identifier: Apache-2.0
// The variables that a generation sets: what its bundle carried in share/sealift/environment.
// For activation and status; sealift-start reads the same file by itself.
#pragma once

#include <filesystem>

#include "installer/generations/generation_record.hpp"
#include "installer/prefix/prefix.hpp"
#include "sealift/bundle/manifest/variables.hpp"

namespace sealift::installer {

// What a shell that uses the generation gets: these, what the site has told this prefix, and where Python writes
// bytecode. Throws what variables_of and site_settings throw.
bundle::Variables variables_for(const Prefix& prefix, const GenerationRecord& record);

// None where the generation has no such file. Throws Format for one that is damaged.
bundle::Variables variables_of(const std::filesystem::path& generation);

}  // namespace sealift::installer
