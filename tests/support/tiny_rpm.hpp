// SPDX-License-Identifier: Apache-2.0
// The smallest rpm package that its reader takes: lead, an empty signature header, a header with a few tags.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace sealift::test {

struct RpmTag {
  std::uint32_t tag;
  std::uint32_t type;  // 4: INT32, 6: STRING
  std::string value;   // as it stands in the store
};

inline std::string rpm_number(std::uint32_t value) {
  std::string out;
  for (int shift = 24; shift >= 0; shift -= 8) out.push_back(static_cast<char>(value >> shift));
  return out;
}

// `rows` and `bytes` are written where they are not 0, whatever is there.
inline std::string rpm_section(const std::vector<RpmTag>& tags, std::uint32_t rows = 0, std::uint32_t bytes = 0) {
  std::string index, store;
  for (const RpmTag& tag : tags) {
    index += rpm_number(tag.tag) + rpm_number(tag.type) + rpm_number(static_cast<std::uint32_t>(store.size())) +
             rpm_number(1);
    store += tag.value;
  }
  return std::string("\x8e\xad\xe8\x01\0\0\0\0", 8) +
         rpm_number(rows != 0 ? rows : static_cast<std::uint32_t>(tags.size())) +
         rpm_number(bytes != 0 ? bytes : static_cast<std::uint32_t>(store.size())) + index + store;
}

inline std::vector<RpmTag> rpm_tags(const std::string& name = "tool") {
  const auto text = [](const std::string& value) { return value + std::string(1, '\0'); };
  return {{1000, 6, text(name)},      {1001, 6, text("2.0")},
          {1002, 6, text("1.el9")},   {1003, 4, rpm_number(1)},
          {1011, 6, text("Fixture")}, {1014, 6, text("MIT and Zlib")},
          {1022, 6, text("noarch")},  {1044, 6, text("tool-2.0-1.el9.src.rpm")}};
}

inline std::string rpm_of(const std::string& header, const std::string& payload = "payload") {
  std::string out = std::string("\xed\xab\xee\xdb\x03\0", 6) + std::string(90, '\0') + rpm_section({});
  out.resize((out.size() + 7) / 8 * 8, '\0');
  return out + header + payload;
}

inline std::string tiny_rpm(const std::string& name = "tool") {
  return rpm_of(rpm_section(rpm_tags(name)));
}

}  // namespace sealift::test
