// SPDX-License-Identifier: Apache-2.0
// Rows F01 to F10: weights of another format, or a safetensors file that lies.
#pragma once

#include "tests/support/hostile/hostile_case.hpp"

namespace sealift::test {

inline std::string safetensors_of(const std::string& header, std::size_t data_bytes = 0,
                                  std::optional<std::uint64_t> claimed = {}) {
  std::string out;
  for (int i = 0; i < 8; ++i) out.push_back(static_cast<char>(claimed.value_or(header.size()) >> (8 * i)));
  return out + header + std::string(data_bytes, '\0');
}

inline HostileCases hostile_safetensors() {
  using namespace std::string_literals;
  HostileCases cases;
  const auto add = [&](const char* row, const std::string& name, std::string bytes, const char* word) {
    cases.push_back({.row = row, .name = name, .bytes = std::move(bytes), .word = word, .file = "model.safetensors"});
  };
  const auto header = [&](const char* row, const char* name, const std::string& text, const char* word,
                          std::size_t data = 4) { add(row, name, safetensors_of(text, data), word); };
  const auto tensor = [&](const char* row, const char* name, const std::string& body, const char* word,
                          std::size_t data = 4) { header(row, name, "{\"w\":{" + body + "}}", word, data); };
  const std::string good = "\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]";

  add("F01", "nothing", "", "at least 8");
  add("F01", "seven-bytes", "1234567", "at least 8");
  add("F01", "no-header", safetensors_of(""), "does not start");
  add("F01", "header-beyond-the-file", safetensors_of("{}", 0, 3), "the file ends after 2");
  add("F01", "header-of-everything", safetensors_of("{}", 0, ~std::uint64_t{0}), "at most 100000000");
  add("F01", "header-one-above-the-limit", safetensors_of("{}", 0, 100'000'001), "at most 100000000");
  header("F02", "not-utf-8", "{\"\xff\":1}", "does not parse");
  header("F02", "not-json", "{hello}", "does not parse");
  header("F02", "a-list", "[]", "does not start");
  header("F02", "deep", "{\"a\":" + std::string(100'000, '['), "nested deeper");
  header("F02", "text-after-the-json", "{}x", "does not parse");
  header("F02", "byte-order-mark", "\xef\xbb\xbf{}", "does not start");
  header("F03", "tensor-twice", "{\"w\":{" + good + "},\"w\":{" + good + "}}", "stands twice");
  header("F03", "metadata-twice", "{\"__metadata__\":{},\"__metadata__\":{}}", "stands twice");
  header("F03", "dtype-twice", "{\"w\":{\"dtype\":\"F32\"," + good + "}}", "stands twice");
  const auto two = [&](const char* name, const char* first, const char* second, const char* word, std::size_t data) {
    header("F05", name,
           "{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":"s + first +
               "},\"b\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":" + second + "}}",
           word, data);
  };
  two("overlap", "[0,4]", "[3,7]", "overlap", 7);
  two("same-bytes", "[0,4]", "[0,4]", "overlap", 4);
  two("hole", "[0,4]", "[5,9]", "hole", 9);
  two("hole-in-front", "[1,5]", "[5,9]", "hole", 9);
  two("past-the-end", "[0,4]", "[4,8]", "8 bytes but the file has 7", 7);
  two("tail", "[0,4]", "[4,8]", "8 bytes but the file has 100", 100);
  tensor("F05", "ends-before-it-begins", "\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,0]", "before it begins");
  tensor("F06", "shape-that-wraps", "\"dtype\":\"U8\",\"shape\":[4294967296,4294967296],\"data_offsets\":[0,0]",
         "more bits", 0);
  tensor("F06", "bits-that-wrap", "\"dtype\":\"F32\",\"shape\":[576460752303423488],\"data_offsets\":[0,0]",
         "more bits", 0);
  tensor("F06", "negative-dimension", "\"dtype\":\"F32\",\"shape\":[-1],\"data_offsets\":[0,4]", "not negative");
  tensor("F06", "dimension-beyond-64-bits", "\"dtype\":\"F32\",\"shape\":[18446744073709551616],\"data_offsets\":[0,4]",
         "whole numbers");
  tensor("F06", "fraction", "\"dtype\":\"F32\",\"shape\":[1.0],\"data_offsets\":[0,4]", "whole numbers");
  tensor(
      "F06", "sixty-five-dimensions",
      "\"dtype\":\"F32\",\"shape\":[1" +
          [] {
            std::string ones;
            for (int i = 0; i < 64; ++i) ones += ",1";
            return ones;
          }() +
          "],\"data_offsets\":[0,4]",
      "at most 64");
  tensor("F07", "other-size", "\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,4]", "make 8 bytes");
  tensor("F07", "unknown-dtype", "\"dtype\":\"F33\",\"shape\":[1],\"data_offsets\":[0,4]", "F33");
  tensor("F07", "half-a-byte", "\"dtype\":\"F4\",\"shape\":[7],\"data_offsets\":[0,4]", "whole bytes");
  header("F08", "metadata-number", "{\"__metadata__\":{\"a\":1}}", "no text under 'a'", 0);
  header("F08", "metadata-list", "{\"__metadata__\":[]}", "no object", 0);
  std::string many = "{";
  for (int i = 0; i < 200'000; ++i)
    many += (i == 0 ? "\"" : ",\"") + std::to_string(i) + "\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}";
  header("F08", "two-hundred-thousand-tensors", many + "}", "values", 0);
  for (const auto& [name, bytes, word] : std::vector<std::tuple<const char*, std::string, const char*>>{
           {"torch-zip", "PK\x03\x04\0\0\x08\x08"s, "a zip archive"},
           {"pickle-2", "\x80\x02\x8a\nl\xfc\x9c\x46\xf9"s, "a pickle"},
           {"pickle-4", "\x80\x04\x95\x0b\0\0\0\0\0\0"s, "a pickle"},
           {"hdf5", "\x89HDF\r\n\x1a\n"s, "an HDF5 file"},
           {"numpy", "\x93NUMPY\x01\0v\0{"s, "a NumPy array"},
           {"gguf", "GGUF\x03\0\0\0\x01\x02\0\0"s, "a GGUF file"},
           {"gzip", "\x1f\x8b\x08\0\0\0\0\0\0\x03"s, "a gzip file"},
           {"git-lfs-pointer", "version https://git-lfs.example/spec/v1\noid sha256:"s, "Git LFS"},
           {"web-page", "<!DOCTYPE html><html>"s, "a web page"}})
    add("F10", name, bytes + std::string(64, '\0'), word);
  return cases;
}

}  // namespace sealift::test
