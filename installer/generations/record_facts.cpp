// SPDX-License-Identifier: Apache-2.0
// A step that did not run is printed as "not run", with its reason; it never reads like a passed one.
#include "installer/generations/record_facts.hpp"

#include "sealift/bundle/core/human_text.hpp"

namespace sealift::installer {

std::string facts_of(const Audit& audit) {
  return std::to_string(audit.files) + " files in " + std::to_string(audit.folders) + " folders, " +
         bundle::human_size(audit.bytes) + ", " + std::to_string(audit.shared) + " shared with the store; " +
         std::to_string(audit.wheels) + " wheels, " + std::to_string(audit.record_rows) + " RECORD rows";
}

std::string facts_of(const SelfCheck& check) {
  std::string text;
  for (const std::string& module : check.imports) text += (text.empty() ? "imported " : ", ") + module;
  text = check.imports.empty() ? "no imports asked for" : text + " in " + std::to_string(check.milliseconds) + " ms";
  for (const SelfCheck::Step& step : check.steps)
    text += "\n            " + step.name + (step.passed ? ": passed, " : ": not run, ") + step.detail;
  for (const SelfCheck::Waived& file : check.waived)
    text += "\n            waived: " + file.path + " does not load (" + file.fault + "); reason: " + file.reason;
  return text;
}

}  // namespace sealift::installer
