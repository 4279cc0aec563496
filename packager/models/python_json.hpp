// SPDX-License-Identifier: Apache-2.0
// The JSON of a model's configs as Python's json takes it, which knows NaN and Infinity. Shared by all readers of
// configs: what one of them can read, all can.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "sealift/safetensors.hpp"

namespace sealift::packager {

constexpr std::uint64_t kMaxConfig = std::uint64_t{16} << 20;

// NaN and Infinity as 0: models were saved with them.
std::string with_plain_numbers(std::string_view text);

// The object in `file`; null where there is none that can be read, which is told elsewhere. `file` may be empty.
safetensors::Json python_object(const std::filesystem::path& file);

}  // namespace sealift::packager
