// SPDX-License-Identifier: Apache-2.0
// Checks and verdicts as JSON, both ways: report.json, and what a stopped run has recorded.
// The only place that knows the names of its keys; docs/verify.md describes them.
// Reading is strict: a report that was changed by hand, or is of another version, is refused by the key at fault.
#pragma once

#include "verify/verdict/verdict.hpp"

#include <nlohmann/json.hpp>

namespace sealift::verify {

/// {"en", "zh"}
nlohmann::ordered_json to_json(const Phrase& phrase);
nlohmann::ordered_json to_json(const Figure& figure);
nlohmann::ordered_json to_json(const Check& check);
nlohmann::ordered_json to_json(const Verdict& verdict);

/// Throw bundle::Error (Format) naming the key, what is expected and what is there. A name without its Chinese, as
/// reports had them that were made before, is the same in both languages.
Check check_from(const nlohmann::json& json);
Verdict verdict_from(const nlohmann::json& json);
/// Of to_json, or of a text that is the same in both languages.
Phrase phrase_from(const nlohmann::json& json);

/// "PASS", "FAIL", "NOT RUN"; "quick" …; "machine" …
std::string name_of(Outcome outcome);
std::string name_of(Level level);
std::string name_of(Part part);

}  // namespace sealift::verify
