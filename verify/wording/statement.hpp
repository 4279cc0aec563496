// SPDX-License-Identifier: Apache-2.0
// The verdict in one line: a PASS says in the same breath what it does not stand on.
// For the head of each page, the terminal, and the list that is signed.
#pragma once

#include "verify/verdict/verdict.hpp"
#include "verify/wording/words.hpp"

namespace sealift::verify {

/// What a PASS leaves open: "with 2 checks not run: communication.bandwidth, communication.pairs; not part of this run
/// (--level, --only): 11". Empty where nothing is open, and for other outcomes.
std::string reservation(const Verdict& verdict, Language language);

/// "PASS", "PASS, with 2 checks not run: ...", "FAIL".
std::string statement(const Verdict& verdict, Language language);

}  // namespace sealift::verify
