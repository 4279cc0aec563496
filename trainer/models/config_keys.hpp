// SPDX-License-Identifier: Apache-2.0
// A JSON object whose keys are taken one by one, so that unknown keys can be told.
// Below what reads a config.json: types and bounds are checked here, what the values mean is decided there.
// All members throw c10::Error with the file, the key, what was expected and what was found.
#pragma once

#include <sealift/safetensors.hpp>

#include <cstdint>
#include <optional>
#include <set>
#include <string>

namespace sealift::trainer {

class ConfigKeys {
 public:
  using Json = safetensors::Json;
  /// The largest whole number that any key may have.
  static constexpr std::int64_t kMost = (std::int64_t{1} << 31) - 1;

  /// `json` must outlive this; `where` names it in messages.
  ConfigKeys(const Json& json, std::string where);

  const std::string& where() const { return where_; }

  /// The value, unless it is missing or null, which mean the same to transformers.
  const Json* find(const std::string& key);
  /// Whether the key stands there, be it null.
  bool has(const std::string& key) const { return json_.contains(key); }
  void ignore(const std::string& key) { taken_.insert(key); }

  [[noreturn]] void refuse(const std::string& key, const std::string& expected, const std::string& next = "") const;

  /// The value; `otherwise` where there is none. Without `otherwise` the key must be there.
  std::int64_t integer(const std::string& key, std::int64_t least, std::int64_t most,
                       std::optional<std::int64_t> otherwise = {});
  double number(const std::string& key, double least, double most, std::optional<double> otherwise = {});
  bool flag(const std::string& key, bool otherwise);
  /// At most 200 bytes.
  std::string text(const std::string& key, const std::string& otherwise);

  /// Throws if a key is left that was not taken and has a value.
  void check_all_taken() const;

 private:
  const Json& json_;
  std::string where_;
  std::set<std::string> taken_;
};

}  // namespace sealift::trainer
