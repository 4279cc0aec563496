// SPDX-License-Identifier: Apache-2.0
// auto_map and relative imports, read as transformers' dynamic_module_utils reads them; see remote_code.hpp.
#include "packager/models/remote_code.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <set>

#include "sealift/bundle/core/byte_source.hpp"
#include "sealift/bundle/core/safe_path.hpp"
#include "sealift/safetensors.hpp"

namespace sealift::packager {

namespace {

using safetensors::Json;

constexpr std::uint64_t kMaxModelText = std::uint64_t{16} << 20;
constexpr const char* kConfigs[] = {"config.json", "tokenizer_config.json", "processor_config.json",
                                    "preprocessor_config.json"};

// "module.Class", "repo--module.Class", or a list of those with nulls.
void add_references(const Json& value, std::vector<std::string>& out) {
  if (value.is_string()) out.push_back(value.get<std::string>());
  if (value.is_array())
    for (const Json& item : value) add_references(item, out);
}

// The modules of `from .name import` and `import .name`.
std::vector<std::string> relative_imports(std::string_view text) {
  std::vector<std::string> out;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    std::string_view line = text.substr(begin, end - begin);
    begin = end + 1;
    line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
    for (const std::string_view word : {"from .", "import ."}) {
      if (!line.starts_with(word)) continue;
      const std::string_view rest = line.substr(word.size());
      const std::string_view name = rest.substr(0, rest.find_first_of(" \t\r;#"));
      if (!name.empty() && name.front() != '.') out.emplace_back(name);
    }
  }
  return out;
}

std::string path_of_module(std::string name) {
  std::replace(name.begin(), name.end(), '.', '/');
  return name;
}

}  // namespace

void check_remote_code(const std::map<std::string, std::filesystem::path>& files, std::vector<std::string>& faults,
                       std::vector<std::string>& warnings) {
  std::set<std::string> code;
  std::deque<std::pair<std::string, std::string>> wanted;  // a module's path without suffix, and what imports it
  for (const std::string config : kConfigs) {
    const auto found = files.find(config);
    if (found == files.end() || found->second.empty()) continue;
    std::vector<std::string> references;
    try {
      const Json json = safetensors::parse_json(bundle::read_text(found->second, kMaxModelText), 64, config);
      if (json.is_object() && json.contains("auto_map") && json["auto_map"].is_object())
        for (const auto& [loader, value] : json["auto_map"].items()) add_references(value, references);
      else if (json.is_object() && json.contains("auto_map"))
        add_references(json["auto_map"], references);
    } catch (const safetensors::FormatError& error) {  // Python also reads NaN and Infinity
      warnings.push_back(fmt::format("whether it has code of its own cannot be told: {}", error.what()));
      continue;
    }
    for (const std::string& reference : references) {
      const std::size_t dashes = reference.find("--");
      if (dashes != reference.npos)
        faults.push_back(fmt::format("{}: auto_map names code of another repository, which is not carried: {}", config,
                                     bundle::SafePath::printable(reference)));
      else
        wanted.emplace_back(path_of_module(reference.substr(0, reference.rfind('.'))), config);
    }
  }
  std::set<std::string> seen;
  while (!wanted.empty()) {
    const auto [module, who] = wanted.front();
    wanted.pop_front();
    if (!seen.insert(module).second) continue;
    auto file = files.find(module + ".py");
    if (file == files.end()) file = files.find(module + "/__init__.py");
    if (file == files.end()) {
      faults.push_back(fmt::format("{} needs {}.py, which is missing", who, bundle::SafePath::printable(module)));
      continue;
    }
    code.insert(file->first);
    if (file->second.empty()) continue;
    const std::string folder = file->first.substr(0, file->first.rfind('/') + 1);
    for (const std::string& name : relative_imports(bundle::read_text(file->second, kMaxModelText)))
      wanted.emplace_back(folder + path_of_module(name), file->first);
  }
  if (code.empty()) return;
  std::string names;
  for (const std::string& name : code) names += (names.empty() ? "" : ", ") + name;
  warnings.push_back("it has code, which trust_remote_code=True runs: " + names);
}

}  // namespace sealift::packager
