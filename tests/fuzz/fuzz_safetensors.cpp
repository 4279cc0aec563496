// SPDX-License-Identifier: Apache-2.0
// A header that is accepted covers its data without hole or overlap, and is written and read back as the same tensors.
#include "tests/fuzz/fuzz.hpp"
#include "tests/support/hostile/read_hostile.hpp"

using namespace sealift;
using namespace sealift::test;

FUZZ(text) {
  accepted([&] {
    safetensors::Header header = read_safetensors(text, "weights");
    must(header.file_bytes() == text.size(), "every byte belongs to header or data");
    std::uint64_t end = 0;
    std::map<std::string, std::uint64_t> sizes;
    for (const safetensors::Tensor& tensor : header.tensors) {
      must(tensor.begin == end, "no hole, no overlap");
      must(tensor.bytes() == safetensors::bytes_of(tensor.dtype, tensor.shape, ""), "the size is the shape's");
      must(sizes.emplace(tensor.name, tensor.bytes()).second, "a name stands once");
      end = tensor.end;
    }
    const std::string written = write_header(header) + std::string(header.data_bytes(), '\0');
    const safetensors::Header again = read_safetensors(written, "written");
    must(again.metadata == header.metadata && again.tensors.size() == sizes.size(), "what was written reads back");
    for (const safetensors::Tensor& tensor : again.tensors)
      must(sizes.at(tensor.name) == tensor.bytes(), "what was written reads back");
  });
}
