// SPDX-License-Identifier: Apache-2.0
// A Graph as SVG: curves told apart by marks and greys as well as by colours, expected ones dashed.
// Between a check and the page; the SVG stands inside the HTML and needs no script.
// More curves than a reader can follow are drawn as their lowest, median and highest.
#pragma once

#include "verify/wording/words.hpp"

namespace sealift::verify {

/// A <figure> with the picture, its legend and what could not be drawn.
std::string graph_picture(const Graph& graph, Language language);

}  // namespace sealift::verify
