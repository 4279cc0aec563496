// SPDX-License-Identifier: Apache-2.0
// The pages that an auditor files: report.html and report.txt in English and Chinese, report.json.
// Last in the flow: a Verdict in, texts out; nothing is read from anywhere else.
// One self-contained page each: it prints on A4 and needs no script to be read.
#pragma once

#include "verify/verdict/verdict.hpp"
#include "verify/wording/words.hpp"

namespace sealift::verify {

/// An HTML document, and a plain text; both in UTF-8, both whole for a Verdict of any contents.
std::string html_page(const Verdict& verdict, Language language);
std::string text_page(const Verdict& verdict, Language language);

}  // namespace sealift::verify
