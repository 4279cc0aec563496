// SPDX-License-Identifier: Apache-2.0
// The safetensors container: 8 bytes of header length, a JSON header, the tensors' bytes. Parsed and written only here.
// A leaf that both halves may include: it knows neither LibTorch nor a bundle, only two other leaves.
// Stricter than upstream's reader (duplicate keys are refused), so whatever passes here opens there.
#pragma once

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "sealift/safetensors_values.hpp"
#include "sealift/strict_json.hpp"

namespace sealift::safetensors {

using Json = nlohmann::json;  // sorted keys: looking one up stays cheap however many a hostile file has

inline constexpr std::uint64_t kMaxHeaderBytes = 100'000'000;  ///< upstream's own limit
inline constexpr std::size_t kMaxDimensions = 64;
inline constexpr std::size_t kMaxJsonValues = 1'000'000;  ///< about 100000 tensors; each value costs memory

/// Bits of one element; nothing for a dtype that the format does not know.
inline std::optional<std::uint64_t> bits_of(std::string_view dtype) {
  static const std::map<std::string_view, std::uint64_t> kBits = {
      {"F4", 4},          {"F6_E2M3", 6}, {"F6_E3M2", 6}, {"BOOL", 8}, {"U8", 8},          {"I8", 8},
      {"F8_E5M2", 8},     {"F8_E4M3", 8}, {"F8_E8M0", 8}, {"I16", 16}, {"F8_E4M3FNUZ", 8}, {"U16", 16},
      {"F8_E5M2FNUZ", 8}, {"F16", 16},    {"BF16", 16},   {"I32", 32}, {"U32", 32},        {"F32", 32},
      {"C64", 64},        {"F64", 64},    {"I64", 64},    {"U64", 64}};
  const auto found = kBits.find(dtype);
  return found == kBits.end() ? std::nullopt : std::optional(found->second);
}

namespace detail {

[[noreturn]] inline void refuse(std::string_view where, const std::string& what) {
  throw FormatError(std::string(where) + ": " + what);
}

/// A name from a file, short enough for a message and harmless to a terminal.
inline std::string in_quotes(std::string_view name) {
  auto end = std::min<std::size_t>(name.size(), 80);
  while (end > 0 && end < name.size() && (static_cast<unsigned char>(name[end]) & 0xc0) == 0x80)
    --end;  // whole letters
  std::string text(name.substr(0, end));
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  }
  return "'" + text + (end < name.size() ? "...'" : "'");
}

}  // namespace detail

/// Bytes of a tensor; throws for an unknown dtype, a size beyond 64 bits or a last byte that is not full.
inline std::uint64_t bytes_of(std::string_view dtype, const std::vector<std::uint64_t>& shape, std::string_view where) {
  const auto bits = bits_of(dtype);
  if (!bits) detail::refuse(where, "dtype is " + detail::in_quotes(dtype) + "; expected one of the format's, as F32");
  std::uint64_t total = *bits;
  // A zero anywhere makes the product zero, however large the others are.
  if (std::find(shape.begin(), shape.end(), 0u) != shape.end()) return 0;
  for (const auto size : shape) {
    if (__builtin_mul_overflow(total, size, &total)) detail::refuse(where, "the shape has more bits than 64 can count");
  }
  if (total % 8 != 0) detail::refuse(where, "the tensor has " + std::to_string(total) + " bits; expected whole bytes");
  return total / 8;
}

/// Parses JSON in which no key of an object stands twice and nothing is nested deeper than `max_depth`.
inline Json parse_json(std::string_view text, int max_depth, std::string_view where) {
  try {
    return parse_strict_json(text, {.max_depth = max_depth, .max_values = kMaxJsonValues, .integers_only = false});
  } catch (const StrictJsonError& error) {
    detail::refuse(where, std::string("the JSON is not acceptable: ") + error.what() +
                              (error.got().empty() ? "" : ": " + detail::in_quotes(error.got())));
  }
}

namespace detail {

inline std::uint64_t unsigned_of(const Json& value, std::string_view where, std::string_view what) {
  if (!value.is_number_unsigned()) {
    refuse(where, std::string(what) + " has " + value.dump().substr(0, 40) + "; expected whole numbers, not negative");
  }
  return value.get<std::uint64_t>();
}

inline Tensor parse_tensor(const std::string& name, const Json& entry, std::string_view file) {
  const auto where = std::string(file) + ", tensor " + in_quotes(name);
  const auto field = [&](const char* key) -> const Json& {
    const auto found = entry.is_object() ? entry.find(key) : entry.end();
    if (!entry.is_object() || found == entry.end()) refuse(where, std::string("it has no ") + key);
    return *found;
  };
  const auto& dtype = field("dtype");
  const auto& shape = field("shape");
  const auto& offsets = field("data_offsets");
  if (!dtype.is_string()) refuse(where, "its dtype is no text");
  if (!shape.is_array() || shape.size() > kMaxDimensions) refuse(where, "its shape is no list of at most 64 sizes");
  if (!offsets.is_array() || offsets.size() != 2) refuse(where, "its data_offsets are not two numbers");
  Tensor tensor{.name = name, .dtype = dtype.get<std::string>()};
  for (const auto& size : shape) tensor.shape.push_back(unsigned_of(size, where, "its shape"));
  tensor.begin = unsigned_of(offsets[0], where, "data_offsets");
  tensor.end = unsigned_of(offsets[1], where, "data_offsets");
  if (tensor.begin > tensor.end) refuse(where, "its data ends before it begins");
  const auto expected = bytes_of(tensor.dtype, tensor.shape, where);
  if (tensor.bytes() != expected) {
    refuse(where, "its dtype and shape make " + std::to_string(expected) + " bytes but its data has " +
                      std::to_string(tensor.bytes()));
  }
  return tensor;
}

}  // namespace detail

/// Parses a header's JSON, for a file with `data_bytes` bytes of data after it. `where` is for messages.
inline Header parse_header(std::string_view text, std::uint64_t data_bytes, std::string_view where) {
  const auto start = std::min(text.find_first_not_of(" \t\r\n"), text.size());
  if (!text.substr(start).starts_with('{')) detail::refuse(where, "the header does not start with '{'");
  const auto json = parse_json(text, 3, where);
  Header header{.data_begin = 8 + text.size(), .padded = start > 0};
  for (const auto& [name, entry] : json.items()) {
    if (name != "__metadata__") {
      header.tensors.push_back(detail::parse_tensor(name, entry, where));
      continue;
    }
    if (!entry.is_object()) detail::refuse(where, "__metadata__ is no object");
    for (const auto& [key, value] : entry.items()) {
      if (!value.is_string()) detail::refuse(where, "__metadata__ has no text under " + detail::in_quotes(key));
      header.metadata.emplace(key, value.get<std::string>());
    }
  }
  std::sort(header.tensors.begin(), header.tensors.end(), [](const Tensor& left, const Tensor& right) {
    return std::pair(left.begin, left.end) < std::pair(right.begin, right.end);
  });
  std::uint64_t end = 0;
  for (const auto& tensor : header.tensors) {
    if (tensor.begin != end) {
      detail::refuse(where, "tensor " + detail::in_quotes(tensor.name) + " begins at byte " +
                                std::to_string(tensor.begin) + " of the data; expected " + std::to_string(end) +
                                (tensor.begin > end ? ", so there is a hole" : ", so two tensors overlap"));
    }
    end = tensor.end;
  }
  if (end != data_bytes) {
    detail::refuse(where, "the tensors have " + std::to_string(end) + " bytes but the file has " +
                              std::to_string(data_bytes) + " after its header; it was cut or something was added");
  }
  return header;
}

namespace detail {

/// What another kind of file is, by its first bytes; empty when they say nothing.
inline std::string_view kind_of(std::string_view start) {
  using namespace std::string_view_literals;
  static constexpr std::pair<std::string_view, std::string_view> kKinds[] = {
      {"PK\x03\x04"sv, "a zip archive, as torch.save and numpy.savez write them"},
      {"\x80\x02"sv, "a pickle, as older torch.save writes them"},
      {"\x80\x03"sv, "a pickle"},
      {"\x80\x04"sv, "a pickle"},
      {"\x80\x05"sv, "a pickle"},
      {"\x89HDF"sv, "an HDF5 file, as Keras writes them"},
      {"\x93NUMPY"sv, "a NumPy array"},
      {"GGUF"sv, "a GGUF file"},
      {"\x1f\x8b"sv, "a gzip file"},
      {"\x28\xb5\x2f\xfd"sv, "a zstd file"},
      {"version "sv, "a pointer of Git LFS; the file itself was not fetched"},
      {"<!DOCTY"sv, "a web page"},
      {"<html"sv, "a web page"}};
  for (const auto& [bytes, kind] : kKinds) {
    if (start.starts_with(bytes)) return kind;
  }
  return {};
}

}  // namespace detail

/// Reads and checks the header of a file of `file_bytes`; `read(offset, data, bytes)` must fill all of it or throw.
inline Header read_header(std::uint64_t file_bytes, const std::function<void(std::uint64_t, char*, std::size_t)>& read,
                          std::string_view where) {
  std::array<char, 8> prefix{};
  if (file_bytes < prefix.size()) {
    detail::refuse(where, "it has " + std::to_string(file_bytes) + " bytes; a safetensors file has at least 8");
  }
  read(0, prefix.data(), prefix.size());
  std::uint64_t size = 0;
  for (std::size_t i = prefix.size(); i-- > 0;) size = size << 8 | static_cast<unsigned char>(prefix[i]);
  const auto kind = detail::kind_of({prefix.data(), prefix.size()});
  if (!kind.empty() && (size > kMaxHeaderBytes || size > file_bytes - prefix.size())) {
    detail::refuse(where, "this is " + std::string(kind) + "; expected a safetensors file");
  }
  if (size > kMaxHeaderBytes) {
    detail::refuse(where, "its header has " + std::to_string(size) + " bytes; expected at most " +
                              std::to_string(kMaxHeaderBytes) + ", so this is no safetensors file");
  }
  if (size > file_bytes - prefix.size()) {
    detail::refuse(where, "its header has " + std::to_string(size) + " bytes but the file ends after " +
                              std::to_string(file_bytes - prefix.size()) + " of them");
  }
  std::string text(size, '\0');
  read(prefix.size(), text.data(), text.size());
  return parse_header(text, file_bytes - prefix.size() - size, where);
}

/// Places the tensors of `header` (names, dtypes, shapes, metadata are given), widest elements first so that all are
/// aligned, and returns the bytes that go before the data.
inline std::string write_header(Header& header) {
  std::stable_sort(header.tensors.begin(), header.tensors.end(), [](const Tensor& left, const Tensor& right) {
    return bits_of(left.dtype).value_or(0) > bits_of(right.dtype).value_or(0);
  });
  Json json = Json::object();
  if (!header.metadata.empty()) json["__metadata__"] = header.metadata;
  std::uint64_t end = 0;
  for (auto& tensor : header.tensors) {
    tensor.begin = end;
    const auto bytes = bytes_of(tensor.dtype, tensor.shape, tensor.name);
    if (__builtin_add_overflow(end, bytes, &end)) detail::refuse(tensor.name, "the file would exceed 64 bits");
    tensor.end = end;
    json[tensor.name] = {{"dtype", tensor.dtype}, {"shape", tensor.shape}, {"data_offsets", {tensor.begin, end}}};
  }
  const bool taken = std::any_of(header.tensors.begin(), header.tensors.end(),
                                 [](const Tensor& tensor) { return tensor.name == "__metadata__"; });
  if (taken || json.size() != header.tensors.size() + (header.metadata.empty() ? 0 : 1)) {
    detail::refuse("header", "two tensors have the same name, or one is called __metadata__");
  }
  std::string text;
  try {
    text = json.dump();
  } catch (const Json::exception& error) {  // a name with invalid UTF-8
    detail::refuse("header", error.what());
  }
  text.resize((text.size() + 7) / 8 * 8, ' ');
  if (text.size() > kMaxHeaderBytes) detail::refuse("header", "it would be larger than readers accept");
  header.data_begin = 8 + text.size();
  std::string prefix;
  for (int i = 0; i < 8; ++i) prefix.push_back(static_cast<char>(text.size() >> (8 * i)));
  return prefix + text;
}

}  // namespace sealift::safetensors
