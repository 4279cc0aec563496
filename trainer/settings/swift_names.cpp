// SPDX-License-Identifier: Apache-2.0
// See swift_names.hpp.
#include "trainer/settings/swift_names.hpp"

#include "trainer/settings/refuse.hpp"
#include "trainer/settings/swift_table.hpp"

#include <fnmatch.h>

#include <algorithm>

namespace sealift::trainer {
namespace {

bool matches(const std::string& pattern, const std::string& key) {
  return fnmatch(pattern.c_str(), key.c_str(), 0) == 0;
}

std::string quoted(const std::vector<std::string>& values) {
  std::string text;
  for (const auto& value : values) text += (text.empty() ? "" : " or ") + (value.empty() ? "nothing" : value);
  return text;
}

/// The three keys by which ms-swift says a dtype, as our one. Weights in float32 say nothing against computing in
/// another, which bf16 and fp16, read before torch_dtype, may have said: ms-swift itself adds fp16 to such weights.
void set_precision(const std::string& key, const std::string& text, const std::string& source, Texts& texts) {
  static const std::map<std::string, std::string> dtypes = {
      {"float32", "fp32"}, {"bfloat16", "bf16"}, {"float16", "fp16"}};
  std::string precision;
  if (key == "torch_dtype") {
    if (text.empty() || text == "auto") return;
    const auto known = dtypes.find(text.starts_with("torch.") ? text.substr(6) : text);
    if (known == dtypes.end()) refuse(source + ": torch_dtype is '" + text + "'; use float32, bfloat16 or float16");
    precision = known->second;
    if (precision == "fp32") {
      texts.emplace("precision", precision);
      return;
    }
  } else {
    if (text != "true") return;
    precision = key;
  }
  const auto [other, is_new] = texts.emplace("precision", precision);
  if (!is_new && other->second != precision) {
    refuse(source + ": " + key + " means precision " + precision + ", but another key means " + other->second +
           "; give one of torch_dtype, bf16, fp16, precision");
  }
}

/// A key that does not pass as it is; false: it does.
bool translate(const std::string& key, const std::string& text, const std::string& source, TakenOver& result) {
  if (key == "torch_dtype" || key == "bf16" || key == "fp16") {
    set_precision(key, text, source, result.texts);
    return true;
  }
  if (key == "quant_bits" || key == "load_in_4bit") {
    if (text == "4" || text == "true") {
      result.texts["quant_bits"] = "4";
    } else if (!text.empty() && text != "0" && text != "false") {
      refuse(source + ": quant_bits is '" + text + "'; the base is quantized to 4 bits (tuner = qlora) or not at all");
    }
    return true;
  }
  // ms-swift writes this behind it for models that may think, of whose empty thoughts data_format says what becomes.
  constexpr std::string_view kEmptyThoughts = "+ignore_empty_think";
  if (key == "loss_scale" && text.ends_with(kEmptyThoughts)) {
    result.texts[key] = text.substr(0, text.size() - kEmptyThoughts.size());
    return true;
  }
  if (key == "tuner_type" && text == "full") {
    result.texts[key] = "none";
    return true;
  }
  if (key == "max_steps" && text == "-1") return true;
  if (key == "warmup_steps" && text.find('.') != std::string::npos) {  // transformers 5: below 1, a part of the steps
    if (text != "0.0") result.texts.emplace("warmup_ratio", text);
    return true;
  }
  for (const auto& each : swift_only()) {
    if (!matches(each.key, key)) continue;
    if (std::find(each.values.begin(), each.values.end(), text) == each.values.end()) {
      refuse(source + ": " + key + " is '" + text + "'; here it can only be " + quoted(each.values) + ": " +
             each.remedy);
    }
    return true;
  }
  for (const auto& each : swift_without_effect()) {
    if (!matches(each.key, key)) continue;
    result.ignored.push_back(key);
    return true;
  }
  return false;
}

}  // namespace

std::string reason_of(const std::string& key) {
  for (const auto& each : swift_without_effect()) {
    if (matches(each.key, key)) return each.reason;
  }
  return "it is what is always done";
}

TakenOver take_over(const Texts& texts, const std::string& source) {
  TakenOver result;
  std::map<std::string, std::string> given_as;
  const auto take = [&](const std::string& given, const std::string& text) {
    const auto alias = swift_aliases().find(given);
    const auto& key = alias == swift_aliases().end() ? given : alias->second;
    if (translate(key, text, source, result)) return;
    const auto [other, is_new] = result.texts.emplace(key, text);
    const auto& first = given_as.emplace(key, given).first->second;
    if (!is_new && other->second != text) {
      if (key == "precision") refuse(source + ": precision is " + text + ", but another key means " + other->second);
      refuse(source + ": " + (given == key ? first : given) + " is another name of " + key +
             ", and both are given; leave one out");
    }
  };
  for (const auto& [given, text] : texts) {
    try {
      take(given, text);
    } catch (const std::invalid_argument& problem) {
      result.problems.emplace_back(problem.what());
    }
  }
  return result;
}

}  // namespace sealift::trainer
