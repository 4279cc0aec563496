// SPDX-License-Identifier: Apache-2.0
// See lora_targets.hpp. Rules: peft.tuners.tuners_utils.check_target_module_exists, peft.utils.other.get_pattern_key.
// Python's expressions are read as ECMAScript's, which have the same parts but for what is refused here.
#include "trainer/tuning/lora_targets.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
#include <regex>
#include <set>

namespace sealift::trainer {
namespace {

using Targets = std::vector<std::pair<std::string, ProjectionImpl*>>;

bool takes_all(const LoraOptions& options) {
  return options.target_modules == std::vector<std::string>{"all-linear"};
}

bool any_names(const std::vector<std::string>& names, const std::string& path) {
  return std::any_of(names.begin(), names.end(), [&](const auto& name) { return names_path(name, path); });
}

Targets projections_of(torch::nn::Module& model) {
  Targets result;
  for (const auto& item : model.named_modules()) {
    if (auto* projection = dynamic_cast<ProjectionImpl*>(item.value().get())) {
      result.emplace_back(item.key(), projection);
    }
  }
  return result;
}

/// `key`: whose expression it is; `whole` is made of it.
std::regex compiled(const std::string& key, const std::string& expression, const std::string& whole) {
  constexpr std::size_t kLongest = 1000;  // std::regex recurses
  TORCH_CHECK(expression.size() <= kLongest, key, " has ", expression.size(), " characters; expected at most ",
              kLongest);
  const auto refused = [&](const std::string& why) {
    TORCH_CHECK(false, key, " '", expression, "' is no expression of ECMAScript's: ", why,
                "; name the projections instead");
  };
  for (const char* own : {"\\A", "\\Z", "\\z"}) {  // std::regex takes them for letters
    if (expression.find(own) != std::string::npos) refused(std::string("it has Python's ") + own);
  }
  try {
    return std::regex(whole);
  } catch (const std::regex_error& error) {
    refused(error.what());
  }
  return {};
}

/// Modules whose whole path matches `expression`.
Targets matching(Targets all, const std::string& expression) {
  const auto regex = compiled("target_regex", expression, expression);
  const auto example = all.empty() ? std::string() : all.front().first;
  std::erase_if(all, [&](const auto& each) { return !std::regex_match(each.first, regex); });
  TORCH_CHECK(!all.empty(), "target_regex '", expression, "' matches no projection; a whole path is ", example);
  return all;
}

std::optional<std::int64_t> layer_number(const std::string& text) {
  std::int64_t number = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), number);
  return fault != std::errc() || end != text.data() + text.size() ? std::nullopt : std::optional(number);
}

/// The number of the layer that `path` is in: of a name in `layer_names`, else the first that follows two names.
std::optional<std::int64_t> layer_of(const std::string& path, const std::vector<std::string>& layer_names) {
  const std::vector<std::string> any = {R"([^.]*\.[^.]*)"};
  for (const auto& name : layer_names.empty() ? any : layer_names) {
    const auto before = layer_names.empty() ? R"((?:[^.]*\.)*?)" : R"((?:^|.*?\.))";
    const auto regex = compiled("layers_pattern", name, before + name + R"(\.(\d+)\..*)");
    std::smatch match;
    if (std::regex_match(path, match, regex)) return layer_number(match[1]);
  }
  return {};
}

/// Takes away what exclude_modules and layers_to_transform leave out.
void choose(Targets& found, const LoraPatterns& patterns) {
  if (!patterns.excluded_regex.empty()) {
    const auto regex = compiled("exclude_modules", patterns.excluded_regex, patterns.excluded_regex);
    std::erase_if(found, [&](const auto& each) { return std::regex_match(each.first, regex); });
  }
  std::erase_if(found, [&](const auto& each) { return any_names(patterns.excluded, each.first); });
  if (patterns.layers.empty()) return;
  std::erase_if(found, [&](const auto& each) {
    const auto layer = layer_of(each.first, patterns.layer_names);
    return !layer || std::find(patterns.layers.begin(), patterns.layers.end(), *layer) == patterns.layers.end();
  });
}

/// Whether `path` is what a pattern's expression says, or ends in a dot and it. One of letters and dots alone has a
/// length, so no expression is made of it: EVA writes one for each module.
bool fits(const std::string& expression, const char* key, const std::string& path) {
  if (expression.find_first_of(R"(\^$*+?()[]{}|)") != std::string::npos) {
    return std::regex_match(path, compiled(key, expression, R"((?:.*\.)?(?:)" + expression + ")"));
  }
  if (expression.empty() || expression.size() > path.size()) return false;
  const auto begin = path.size() - expression.size();
  const auto same = [](char wanted, char is) { return wanted == '.' || wanted == is; };
  return (begin == 0 || path[begin - 1] == '.') &&
         std::equal(expression.begin(), expression.end(), path.begin() + static_cast<std::ptrdiff_t>(begin), same);
}

template <typename Value>
Value value_at(const std::vector<std::pair<std::string, Value>>& pattern, const char* key, const std::string& path,
               Value otherwise) {
  for (const auto& [expression, value] : pattern) {
    if (fits(expression, key, path)) return value;
  }
  return otherwise;
}

/// For a saved adapter: throws where it has factors beside a table, which PEFT can make and this cannot.
void refuse_tables(torch::nn::Module& model, const LoraOptions& options) {
  if (!options.may_name_others || takes_all(options)) return;
  for (const auto& item : model.named_modules()) {
    const auto& path = item.key();
    const auto parameters = item.value()->named_parameters(/*recurse=*/false);
    if (dynamic_cast<ProjectionImpl*>(item.value().get()) || !parameters.contains("weight")) continue;
    const bool is_named = parameters["weight"].dim() == 2 && any_names(options.target_modules, path) &&
                          !any_names(options.patterns.excluded, path);
    TORCH_CHECK(!is_named, "target_modules has ", path, ", beside which there is no adapter here, only beside ",
                "projections; merge the adapter into its base by PEFT's merge_and_unload() and go on from that model");
  }
}

}  // namespace

std::string last_part(const std::string& path) {
  return path.substr(path.rfind('.') + 1);
}

bool names_path(const std::string& name, const std::string& path) {
  return path == name || path.ends_with("." + name);
}

Targets find_targets(torch::nn::Module& model, const LoraOptions& options) {
  refuse_tables(model, options);
  auto found = projections_of(model);
  std::set<std::string> names;
  for (const auto& [path, projection] : found) names.insert(last_part(path));
  const auto there_are = "there are: " + c10::Join(", ", std::vector<std::string>(names.begin(), names.end()));
  if (!options.target_regex.empty()) {
    found = matching(std::move(found), options.target_regex);
  } else {
    for (const auto& target : options.target_modules) {
      if (takes_all(options) || options.may_name_others) break;
      TORCH_CHECK(
          std::any_of(found.begin(), found.end(), [&](const auto& each) { return names_path(target, each.first); }),
          "target_modules has '", target, "'; the model has no projection of this name; ", there_are,
          ", or all-linear");
    }
    std::erase_if(found, [&](const auto& each) {
      return takes_all(options) ? last_part(each.first) == "lm_head" : !any_names(options.target_modules, each.first);
    });
  }
  TORCH_CHECK(!found.empty(), "target_modules names no projection of the model; ", there_are);
  choose(found, options.patterns);
  TORCH_CHECK(!found.empty(), "exclude_modules and layers_to_transform leave no projection of target_modules");
  return found;
}

LoraOptions options_at(const LoraOptions& options, const std::string& path) {
  auto own = options;
  own.rank = value_at(options.patterns.ranks, "rank_pattern", path, options.rank);
  own.alpha = value_at(options.patterns.alphas, "alpha_pattern", path, options.alpha);
  return own;
}

}  // namespace sealift::trainer
