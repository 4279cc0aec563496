// SPDX-License-Identifier: Apache-2.0
// One page for the people who decide what may cross the gap, in English and Chinese, as HTML and as text: what it is,
// how big, whose, under which licences, with which hashes. The HTML has no script, loads nothing, and says so to the
// browser in a policy; all that comes from the bundle is escaped.
#pragma once

#include <string>

#include "packager/documents/bundle_facts.hpp"

namespace sealift::packager {

enum class Language { English, Chinese };

std::string review_html(const BundleFacts& facts, Language language);
std::string review_text(const BundleFacts& facts, Language language);

}  // namespace sealift::packager
