// SPDX-License-Identifier: Apache-2.0
// Numbers as people read them, in reasons, facts, tables and pictures.
// Below every judge and every page; files for machines have their own forms.
// One way for all, so that a figure and the sentence about it never say two numbers.
#pragma once

#include <string>

namespace sealift::verify {

/// `digits` significant ones: 4 of what was measured, 9 or 17 where the last bit counts. "0.3333", "1234", "1.5e-09",
/// "inf"; the whole part below 10^15 always in full.
std::string number_text(double value, int digits = 4);

/// All of a number that should have been another: whole ones whole, others with the digits that read back to the same
/// bits. "1000001", "0.10000000149011612", "nan".
std::string exact_text(double value);

/// A share of 1: "12.5 %".
std::string percent_text(double share);

/// A tick of an axis: "250", "10 k", "1 M", "2e-05".
std::string tick_text(double value);

/// "4.2 s", "12 min 5 s".
std::string seconds_text(double seconds);

}  // namespace sealift::verify
