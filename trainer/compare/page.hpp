// SPDX-License-Identifier: Apache-2.0
// A comparison as a page: the advice, a bar for each run and number, the table.
// Above shown.hpp, whose columns it draws. One file of HTML without scripts or anything from elsewhere, so that it
// shows where there is no network.
#pragma once

#include "trainer/compare/comparison.hpp"

namespace sealift::trainer::compare {

/// The page in one language. `title`: what was compared.
std::string page_of(const Comparison& comparison, const std::string& title, plan::Language language);

}  // namespace sealift::trainer::compare
