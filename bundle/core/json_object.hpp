// SPDX-License-Identifier: Apache-2.0
// Reads one JSON object field by field, each of the type and within the bounds that its reader asks for. It needs no
// more of nlohmann than the name of its value, so headers that only pass objects on stay cheap to compile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "sealift/bundle/core/digest.hpp"
#include "sealift/bundle/core/error.hpp"
#include "sealift/bundle/core/safe_path.hpp"

namespace sealift::bundle {

using Json = nlohmann::json;  // object keys are kept sorted, so writing is deterministic

inline constexpr int kMaxJsonDepth = 32;
inline constexpr std::size_t kMaxJsonValues = 2'000'000;  // each costs memory, however few bytes it is written in
inline constexpr std::uint64_t kMaxJsonInteger = (std::uint64_t{1} << 53) - 1;

// Throws Format: the text is JSON, but not of the document that it claims to be.
[[noreturn]] void refuse_json(std::string_view where, const std::string& why, const std::string& got = {});

// Every reader throws Format naming `where` and the key; done() refuses fields that nobody asked for. `value` must
// outlive it.
class JsonObject {
 public:
  JsonObject(const Json& value, std::string where);

  const std::string& where() const { return where_; }
  bool has(const std::string& key) const;

  const Json& at(const std::string& key);
  std::string string(const std::string& key, std::size_t max_size = 4096);
  std::uint64_t integer(const std::string& key, std::uint64_t max = kMaxJsonInteger);
  bool boolean(const std::string& key);
  Digest digest(const std::string& key);
  const Json& array(const std::string& key, std::size_t max_size);
  JsonObject object(const std::string& key);

  void done() const;

 private:
  std::string path(const std::string& key) const { return where_ + "." + key; }

  const Json& value_;
  std::string where_;
  std::vector<const std::string*> seen_;  // keys of value_
};

}  // namespace sealift::bundle
