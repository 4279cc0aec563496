// SPDX-License-Identifier: Apache-2.0
// What a safetensors file holds, and what is thrown of one that does not: values alone, for headers.
// A leaf that both halves may include; safetensors.hpp reads and writes them.
// Apart, since a header that names them need not bring the JSON behind them, which costs a second to compile.
#pragma once

#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace sealift::safetensors {

/// A file that is not what it should be; the message says what, where, expected and got.
class FormatError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// One tensor of a file; `begin` and `end` count bytes from the start of the data, which follows the header.
struct Tensor {
  std::string name;
  std::string dtype;  ///< as the format spells it: F32, BF16, I64, ...
  std::vector<std::uint64_t> shape;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;

  std::uint64_t bytes() const { return end - begin; }
};

/// What a file's header says, in the order of the data.
struct Header {
  std::vector<Tensor> tensors;
  std::map<std::string, std::string> metadata;
  std::uint64_t data_begin = 0;  ///< first byte of the data, from the start of the file
  bool padded = false;           ///< white space stands before the '{': not as the format says, but upstream reads it

  std::uint64_t data_bytes() const { return tensors.empty() ? 0 : tensors.back().end; }
  std::uint64_t file_bytes() const { return data_begin + data_bytes(); }
};

}  // namespace sealift::safetensors
