// SPDX-License-Identifier: Apache-2.0
// METADATA -> facts.
#include "packager/documents/wheel_facts.hpp"

#include <algorithm>

#include "bundle/core/unicode.hpp"
#include "packager/host/url.hpp"
#include "packager/resolve/metadata_headers.hpp"
#include "sealift/bundle/core/safe_path.hpp"
#include "sealift/bundle/wheel/wheel_name.hpp"

namespace sealift::packager {

namespace {

constexpr std::size_t kMaxRequirements = 2000;
constexpr std::size_t kMaxLicenceNames = 20;
constexpr std::string_view kWord = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_";

// Could be SPDX: its letters only, and short. Whether the names are on SPDX's list is not judged here.
bool looks_like_spdx(std::string_view text) {
  return !text.empty() && text.size() <= 200 && std::all_of(text.begin(), text.end(), [](char c) {
    return (kWord.find(c) != kWord.npos && c != '_') || std::string_view(" .-+():").find(c) != std::string_view::npos;
  });
}

std::vector<WheelRequirement> requirements_of(const std::vector<std::string>& texts) {
  std::vector<WheelRequirement> requirements;
  for (const std::string& text : texts) {
    if (requirements.size() == kMaxRequirements) break;
    if (WheelRequirement requirement = read_requirement(text); !requirement.project.empty())
      requirements.push_back(std::move(requirement));
  }
  return requirements;
}

// License may be a name or a whole text. A short line is a name; the classifiers are better than a text's first line.
std::vector<std::string> licence_names(const MetadataHeaders& headers) {
  std::vector<std::string> names;
  const auto add = [&names](std::string_view text) {
    const std::string name = shown(text);
    if (!name.empty() && names.size() < kMaxLicenceNames && std::find(names.begin(), names.end(), name) == names.end())
      names.push_back(name);
  };
  std::string licence = headers.first("License");
  if (bundle::case_folded(licence) == "unknown") licence.clear();
  if (!licence.empty() && licence.size() <= 100 && licence.find('\n') == licence.npos) add(licence);
  for (const std::string& classifier : headers.all("Classifier")) {
    if (!names.empty() && names.front() == shown(licence)) break;
    if (!classifier.starts_with("License ::")) continue;
    std::string name = classifier.substr(classifier.rfind("::") + 2);
    name.erase(0, name.find_first_not_of(' '));
    if (name != "OSI Approved") add(name);
  }
  if (names.empty()) add(licence.substr(0, licence.find('\n')));
  return names;
}

}  // namespace

std::string WheelFacts::licence() const {
  std::string out = expression;
  for (const std::string& name : licences) out += (out.empty() ? "" : ", ") + name;
  return out;
}

WheelFacts read_wheel_facts(std::string_view metadata) {
  const MetadataHeaders headers(metadata);
  WheelFacts facts{.project = shown(headers.first("Name")), .version = shown(headers.first("Version"))};
  const std::string expression = headers.first("License-Expression");
  if (looks_like_spdx(expression))
    facts.expression = expression;
  else if (!expression.empty())
    facts.licences.push_back(shown(expression));
  else
    facts.licences = licence_names(headers);
  facts.requires_dist = requirements_of(headers.all("Requires-Dist"));
  facts.licence_files = headers.all("License-File");
  return facts;
}

std::string shown(std::string_view text) {
  return bundle::SafePath::printable(text);
}

std::string purl_of(std::string_view type, std::string_view name, std::string_view version) {
  return "pkg:" + std::string(type) + "/" + percent_encoded(name) + "@" + percent_encoded(version);
}

}  // namespace sealift::packager
