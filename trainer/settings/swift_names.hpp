// SPDX-License-Identifier: Apache-2.0
// What ms-swift's keys mean here: the same, another name's, one value only, or nothing.
// Between a file or a command line and the table of settings; most keys pass, since the table has ms-swift's names.
// A key is never dropped in silence: what cannot change the numbers is listed, what could is refused with the remedy.
#pragma once

#include "trainer/settings/settings.hpp"

namespace sealift::trainer {

/// Texts by the names of `fine_tune_settings`, and the keys that were left out.
struct TakenOver {
  Texts texts;
  std::vector<std::string> ignored;
  std::vector<std::string> problems;  ///< a message for each key that cannot be taken
};

/// Why a key that `take_over` leaves out changes nothing.
std::string reason_of(const std::string& key);

/// A problem for each key whose value asks for what there is not; `source` is where it was written. Keys that nobody
/// knows pass, for the table to refuse.
TakenOver take_over(const Texts& texts, const std::string& source);

}  // namespace sealift::trainer
