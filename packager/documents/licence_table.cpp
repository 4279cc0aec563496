// SPDX-License-Identifier: Apache-2.0
// Rows of fields between tabs; see licence_table.hpp. shown() leaves no tab and no line break in any field.
#include "packager/documents/licence_table.hpp"

namespace sealift::packager {

namespace {

// What a spreadsheet would take for a formula gets an apostrophe.
std::string cell(const std::string& text) {
  return !text.empty() && std::string_view("=+-@").find(text.front()) != std::string_view::npos ? "'" + text : text;
}

}  // namespace

std::string licence_table(const BundleFacts& facts) {
  std::string out = "component\tversion\tlicence\tfiles\tleft out\n";
  const auto joined = [](const std::vector<std::string>& texts, const std::string& prefix) {
    std::string line;
    for (const std::string& text : texts) line += (line.empty() ? "" : "; ") + prefix + text;
    return line;
  };
  for (const auto& [path, wheel] : facts.wheels)
    out += cell(wheel.facts.project) + "\t" + cell(wheel.facts.version) + "\t" +
           cell(wheel.carried ? wheel.facts.licence() : "not carried") + "\t" +
           joined(wheel.licences.files, wheel.folder + "/") + "\t" + cell(joined(wheel.licences.left_out, "")) + "\n";
  for (const BundledModel& model : facts.models)
    out += cell(shown(model.name)) + "\t" + cell(model.commit) + "\t" +
           cell(model.licence_known ? model.stated.text() : "not carried") + "\t" +
           joined(model.licences.files, model.folder + "/") + "\t" + cell(joined(model.licences.left_out, "")) + "\n";
  for (const auto& [path, deb] : facts.debs)
    out += cell(deb.name) + "\t" + cell(deb.version) + "\t\t\tusr/share/doc/" + deb.name + "/copyright in " +
           shown(path.substr(path.rfind('/') + 1)) + ": not opened\n";
  for (const auto& [path, rpm] : facts.rpms)
    out += cell(rpm.name) + "\t" + cell(rpm.version) + "\t" + cell(rpm.licence) + "\t\ttexts in " +
           shown(path.substr(path.rfind('/') + 1)) + ": not opened\n";
  return out;
}

}  // namespace sealift::packager
