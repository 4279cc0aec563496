// SPDX-License-Identifier: Apache-2.0
// Which GPUs the CUDA code inside an ELF file is made for. Packager and installer both ask here whether a GPU has a
// kernel to run. Only the headers of fat binaries are read, never code, so compressed images cost nothing.
// Format: NVIDIA's fatbinary.h as CUDA 11.8 to 13.2 write it; the flags of `a` and `f` as seen in what nvcc 13.0 makes.
#pragma once

#include <compare>
#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "sealift/bundle/core/byte_source.hpp"

namespace sealift::bundle {

// One image of a fat binary, in nvcc's words: machine code "sm_90", "sm_90a", "sm_100f"; PTX "compute_90".
struct GpuImage {
  enum class Kind { Code, Ptx, Other };  // Other: of a kind that is not known here, so it is said to run everywhere
  enum class Scope {
    Forward,       // newer GPUs run it: machine code within its major version, PTX without end
    Family,        // `f`: only GPUs of the same major version, from this one on
    Architecture,  // `a`: only this very architecture
  };

  unsigned architecture = 0;  // 10 x major + minor of the compute capability: 75, 103
  Kind kind = Kind::Code;
  Scope scope = Scope::Forward;

  std::string text() const;
  // Nothing for what text() does not write.
  static std::optional<GpuImage> parse(std::string_view text);
  // Whether a GPU of this compute capability (90 for 9.0) runs it; PTX once the driver has compiled it.
  // Source: CUDA Programming Guide, "Binary compatibility", "PTX compatibility" and "Family-specific features".
  bool runs_on(unsigned capability) const;
  auto operator<=>(const GpuImage&) const = default;
};

using GpuImages = std::set<GpuImage>;

bool runs_on(const GpuImages& images, unsigned capability);
std::string text_of(const GpuImages& images);  // "sm_75 sm_80 compute_90"
std::optional<GpuImages> parse_gpu_images(std::string_view text);

// The fat binaries of one file. Each holds the same kernels for several architectures, and a program uses the one image
// that fits its GPU.
struct GpuCode {
  std::map<GpuImages, std::size_t> binaries;  // images -> fat binaries that hold exactly those

  bool empty() const { return binaries.empty(); }
  std::size_t count() const;
  std::size_t count_on(unsigned capability) const;  // parts with an image for such a GPU
  GpuImages images() const;                         // of all of them
  bool operator==(const GpuCode&) const = default;
};

// Of the sections .nv_fatbin, by the section table: a file without one has nothing here. Fat binaries without a kernel,
// as nvcc leaves them in files that have none, are left out. Throws Format when the tables are broken.
GpuCode read_gpu_code(ByteSource& elf);

}  // namespace sealift::bundle
