// SPDX-License-Identifier: Apache-2.0
// The manifest as strict JSON: its one reader and its one writer, so that there is one spelling of it.
// It is read only after its signature held; even so every number is bounded and every path is a SafePath. Each field is
// judged here, what one field means for another by manifest_check.hpp.
#pragma once

#include <string>
#include <string_view>

#include "sealift/bundle/manifest/manifest.hpp"

namespace sealift::bundle {

// Throws Format, or CannotCheck for what a later version may know; `where` is the seal's file name.
Manifest parse_manifest(std::string_view text, const std::string& where);

// Deterministic: the same value gives the same bytes.
std::string write_manifest(const Manifest& manifest);

}  // namespace sealift::bundle
