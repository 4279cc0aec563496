// SPDX-License-Identifier: Apache-2.0
// Pieces of SVG that all pictures are made of.
// Below graph_picture and matrix_picture.
// A tenth of a pixel is finer than paper, and keeps a long curve short.
#pragma once

#include <string>

namespace sealift::verify {

/// "12.5"
std::string px(double value);

/// <text> at a place; `anchor`: "start", "middle" or "end"; `more`: attributes.
std::string text_at(double x, double y, const char* anchor, const std::string& text, const std::string& more = {});

}  // namespace sealift::verify
