// SPDX-License-Identifier: Apache-2.0
// Values one behind the other as they lie in memory: for a cache that only this machine reads, and whose checksum the
// caller checks. Tens of thousands of them are read in a few milliseconds.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>

namespace sealift::installer {

template <class Value>
void put_value(std::string& text, const Value& value) {
  static_assert(std::is_trivially_copyable_v<Value>);
  text.append(reinterpret_cast<const char*>(&value), sizeof value);
}

inline void put_text(std::string& text, std::string_view value) {
  put_value(text, std::uint64_t{value.size()});
  text += value;
}

// Takes values off the front of a text; zeros and nothing more once it was too short.
class ValueTaker {
 public:
  explicit ValueTaker(std::string_view text) : text_(text) {}

  std::string_view bytes(std::uint64_t count) {
    if (count > text_.size()) return text_ = {}, failed_ = true, std::string_view();
    const std::string_view taken = text_.substr(0, static_cast<std::size_t>(count));
    text_.remove_prefix(taken.size());
    return taken;
  }
  template <class Value>
  void take(Value& value) {
    static_assert(std::is_trivially_copyable_v<Value>);
    const std::string_view taken = bytes(sizeof value);
    if (!taken.empty()) std::memcpy(&value, taken.data(), sizeof value);
  }
  std::string_view text() {
    std::uint64_t size = 0;
    take(size);
    return bytes(size);
  }
  // A number of elements that follow, each of at least `least` bytes; 0 when there is no room for so many.
  std::uint64_t count(std::uint64_t least) {
    std::uint64_t number = 0;
    take(number);
    if (number <= text_.size() / least) return number;
    failed_ = true;
    return 0;
  }
  bool more() const { return !text_.empty(); }
  bool failed() const { return failed_; }

 private:
  std::string_view text_;
  bool failed_ = false;
};

}  // namespace sealift::installer
