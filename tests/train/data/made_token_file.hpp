// SPDX-License-Identifier: Apache-2.0
// Token files for tests, byte by byte as docs/token_files.md has them, whether they are right or not.
// For the reader's tests, the batches' and the fuzz corpus.
// Written by hand and not by the script, so that reader and writer are held to the page and not to each other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sealift::test {

struct MadeTokenFile {
  std::uint32_t kind = 1, token_bytes = 2;
  std::uint64_t vocabulary = 100;
  std::vector<std::vector<std::uint32_t>> sequences;
  std::vector<std::vector<bool>> counts;  ///< as `sequences`
  std::vector<float> values = {};         ///< of kinds 2 and 3

  std::string bytes() const {
    std::string file = "SLTOKENS";
    for (const std::uint32_t number : {1U, kind, token_bytes, 0U}) put(file, number);
    std::uint64_t tokens = 0;
    for (const auto& sequence : sequences) tokens += sequence.size();
    const std::uint64_t examples = kind == 2 ? sequences.size() / 2 : sequences.size();
    for (const std::uint64_t number : {vocabulary, examples, std::uint64_t{sequences.size()}, tokens, std::uint64_t{0}})
      put(file, number);
    file.append(96, '\0');
    std::uint64_t begin = 0;
    put(file, begin);
    for (const auto& sequence : sequences) put(file, begin += sequence.size());
    for (const auto value : values) put(file, value);
    pad(file);
    put_mask(file);
    pad(file);
    for (const auto& sequence : sequences) {
      for (const auto token : sequence) {
        if (token_bytes == 2) put(file, static_cast<std::uint16_t>(token));
        if (token_bytes == 4) put(file, token);
      }
    }
    return file;
  }

 private:
  template <class Number>
  static void put(std::string& file, Number number) {
    file.append(reinterpret_cast<const char*>(&number), sizeof number);
  }
  static void pad(std::string& file) { file.append((8 - file.size() % 8) % 8, '\0'); }

  void put_mask(std::string& file) const {
    std::vector<bool> bits;
    for (const auto& sequence : counts) bits.insert(bits.end(), sequence.begin(), sequence.end());
    std::string mask((bits.size() + 7) / 8, '\0');
    for (std::size_t at = 0; at < bits.size(); ++at)
      if (bits[at]) mask[at / 8] = static_cast<char>(mask[at / 8] | 1 << at % 8);
    file += mask;
  }
};

/// `file` with the `size` bytes of `number` at `at`.
template <class Number>
std::string patched(std::string file, std::size_t at, Number number) {
  return file.replace(at, sizeof number, reinterpret_cast<const char*>(&number), sizeof number);
}

inline std::span<const std::byte> as_bytes(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

/// Three chats of 3, 9 and 1 tokens; the last tokens of the first two count.
inline MadeTokenFile made_chats() {
  return {.sequences = {{1, 2, 3}, {4, 5, 6, 7, 8, 9, 10, 11, 12}, {99}},
          .counts = {{false, false, true}, {false, false, false, true, true, false, false, true, true}, {false}}};
}

/// Two preferences, of 2 + 3 and 4 + 2 tokens.
inline MadeTokenFile made_preferences() {
  return {.kind = 2,
          .token_bytes = 4,
          .vocabulary = 70000,
          .sequences = {{1, 2}, {1, 3, 4}, {5, 6, 7, 8}, {5, 69999}},
          .counts = {{false, true}, {false, true, true}, {false, false, true, true}, {false, true}},
          .values = {0.5F, -1.0F}};
}

}  // namespace sealift::test
