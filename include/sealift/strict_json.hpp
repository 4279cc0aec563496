// SPDX-License-Identifier: Apache-2.0
// JSON from a stranger, read into nlohmann's value within bounds: no key twice, not too deep, not too many values.
// A leaf that both halves may include. It builds the value itself, since nlohmann's parser with a callback takes
// quadratic time on long arrays, and takes a NUL for the end of the text.
#pragma once

#include <nlohmann/json.hpp>

#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace sealift {

/// What a text is refused for; `got` is the part of it that shows the fault, or nlohmann's own message.
class StrictJsonError : public std::runtime_error {
 public:
  StrictJsonError(const std::string& what, std::string got) : std::runtime_error(what), got_(std::move(got)) {}
  const std::string& got() const { return got_; }

 private:
  std::string got_;
};

struct JsonLimits {
  int max_depth = 32;
  std::size_t max_values = 1'000'000;  ///< objects and arrays count too; each costs memory, however short it is written
  bool integers_only = true;           ///< and of 53 bits at most, which every reader has
};

/// Takes each whole element of the arrays that stand in the root object, under the array's key, in the order of the
/// text. What it takes is not kept: the arrays that come back are empty, so a long text costs little memory.
using TakeJsonElement = std::function<void(const std::string& key, nlohmann::json element)>;

namespace detail {

/// nlohmann's parser calls these in the order of the text. Pointers stay valid: an object is a map, and an array gets
/// no further element while one of its elements is open.
class StrictJsonBuilder {
 public:
  using Json = nlohmann::json;

  StrictJsonBuilder(const JsonLimits& limits, const TakeJsonElement& take_element)
      : limits_(limits), take_element_(take_element) {}

  Json take() { return std::move(root_); }

  bool null() { return put_whole(nullptr); }
  bool boolean(bool value) { return put_whole(value); }
  bool number_integer(std::int64_t value) {
    if (limits_.integers_only && value < -kMaxInteger) refuse("an integer is below -(2^53-1)", std::to_string(value));
    return put_whole(value);
  }
  bool number_unsigned(std::uint64_t value) {
    if (limits_.integers_only && value > static_cast<std::uint64_t>(kMaxInteger))
      refuse("an integer is above 2^53-1", std::to_string(value));
    return put_whole(value);
  }
  bool number_float(double value, const std::string& text) {
    if (limits_.integers_only) refuse("it has a number that is no integer of 53 bits", text.substr(0, 80));
    return put_whole(value);
  }
  bool string(std::string& value) { return put_whole(std::move(value)); }
  bool binary(Json::binary_t&) { refuse("it has bytes", {}); }
  bool start_object(std::size_t) { return open(Json::object()); }
  bool start_array(std::size_t) { return open(Json::array()); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }
  bool key(std::string& name) {
    const auto [place, fresh] = open_.back()->get_ref<Json::object_t&>().emplace(std::move(name), nullptr);
    if (!fresh) refuse("a key stands twice", place->first.substr(0, 80));
    member_ = &place->second;
    if (open_.size() == 1) section_ = &place->first;
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const Json::exception& error) {
    refuse("it does not parse", error.what());
  }

 private:
  static constexpr std::int64_t kMaxInteger = (std::int64_t{1} << 53) - 1;

  template <class Value>
  Json* put(Value&& value) {
    if (++values_ > limits_.max_values)
      refuse("it has more than " + std::to_string(limits_.max_values) + " values", {});
    if (open_.empty()) {
      root_ = std::forward<Value>(value);
      return &root_;
    }
    if (open_.back()->is_array())
      return &open_.back()->get_ref<Json::array_t&>().emplace_back(std::forward<Value>(value));
    *member_ = std::forward<Value>(value);
    return member_;
  }
  template <class Value>
  bool put_whole(Value&& value) {
    put(std::forward<Value>(value));
    return hand_over();
  }
  bool open(Json value) {
    if (open_.size() >= static_cast<std::size_t>(limits_.max_depth))
      refuse("it is nested deeper than " + std::to_string(limits_.max_depth) + " levels", {});
    open_.push_back(put(std::move(value)));
    return true;
  }
  bool close() {
    open_.pop_back();
    return hand_over();
  }
  // What was put last is whole; if it is an element of an array of the root object, it goes.
  bool hand_over() {
    if (!take_element_ || open_.size() != 2 || !open_.front()->is_object() || !open_.back()->is_array()) return true;
    auto& elements = open_.back()->get_ref<Json::array_t&>();
    take_element_(*section_, std::move(elements.back()));
    elements.pop_back();
    return true;
  }
  [[noreturn]] static void refuse(const std::string& what, std::string got) {
    throw StrictJsonError(what, std::move(got));
  }

  const JsonLimits& limits_;
  const TakeJsonElement& take_element_;
  Json root_;
  std::vector<Json*> open_;               // the objects and arrays around the place that is being read
  Json* member_ = nullptr;                // of the innermost object: where its next value goes
  const std::string* section_ = nullptr;  // the root object's key that was read last
  std::size_t values_ = 0;
};

}  // namespace detail

/// Parses UTF-8 text; throws StrictJsonError.
inline nlohmann::json parse_strict_json(std::string_view text, const JsonLimits& limits,
                                        const TakeJsonElement& take_element = {}) {
  if (text.starts_with("\xef\xbb\xbf")) throw StrictJsonError("it starts with a byte order mark", {});
  if (const std::size_t nul = text.find('\0'); nul != text.npos)
    throw StrictJsonError("it does not parse", "a NUL at offset " + std::to_string(nul));
  detail::StrictJsonBuilder builder(limits, take_element);
  nlohmann::json::sax_parse(text.begin(), text.end(), &builder);
  return builder.take();
}

}  // namespace sealift
