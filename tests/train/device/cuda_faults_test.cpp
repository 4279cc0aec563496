// SPDX-License-Identifier: Apache-2.0
// Cards, drivers and cuDNNs that do not do: one line each, with the next step. Facts are made up.
#include "trainer/ranks/cuda_faults.hpp"

#include "trainer/ranks/loaded_library.hpp"

#include <doctest/doctest.h>

using namespace sealift::trainer;

TEST_CASE("a driver for an older CUDA is told from one that runs LibTorch's, newer minor numbers included") {
  CHECK(driver_fault({.version = "535.104", .cuda = "12.2"}, 13000) ==
        "the driver 535.104 runs CUDA 12.2 and LibTorch is for 13.0: install driver 580 or newer, or a LibTorch for "
        "CUDA 12");
  CHECK(driver_fault({.cuda = "11.8"}, 12080).find("install driver 525.60.13 or newer") != std::string::npos);
  CHECK(driver_fault({.cuda = "13.0"}, 13020).empty());
  CHECK(driver_fault({.cuda = "14.1"}, 13000).empty());
  CHECK(driver_fault({}, 13000).empty());  // not told
}

TEST_CASE("a half that is not loaded says what to install, and of cuDNN what may shadow it") {
  CHECK(load_fault("libx.so: no such file") ==
        "CUDA's half cannot be loaded (libx.so: no such file): install a LibTorch with CUDA beside the program");
  CHECK(load_fault("libcudnn.so.9: cannot open shared object file: No such file or directory")
            .find("take folders with a cuDNN out of LD_LIBRARY_PATH") != std::string::npos);
}

TEST_CASE("a card that computes nothing, or wrongly, is refused by its capability; an old one that computes is noted") {
  const CudaDevice old{.name = "Tesla T4", .capability = "7.5"};
  CHECK(first_kernel_fault(at::kCPU).empty());
  const auto fault = card_fault(old, first_kernel_fault(at::kMeta));
  CHECK(fault.starts_with("LibTorch does not compute on it (capability 7.5: "));
  CHECK(fault.ends_with("): install a LibTorch that is built for this card"));
  CHECK(fault.find('\n') == std::string::npos);
  CHECK(card_fault(old, "").empty());

  CHECK(card_note(old).starts_with("note: Tesla T4 has capability 7.5, which is before flash and cuDNN attention"));
  for (const char* fine : {"8.0", "9.0", "12.1", ""}) CHECK(card_note({.capability = fine}).empty());
}

TEST_CASE("an older cuDNN before LibTorch's own is said with both numbers and its path; a newer one is not") {
  CHECK(
      cudnn_note({.built = 91900, .loaded = 91002, .library = "/usr/lib/libcudnn.so.9"}) ==
      "note: cuDNN 9.10.2 (/usr/lib/libcudnn.so.9) is loaded before the 9.19.0 that LibTorch is built with: attention "
      "may run by other kernels, slower and as right; take that folder out of LD_LIBRARY_PATH");
  CHECK(cudnn_note({.built = 91900, .loaded = 91900}).empty());
  CHECK(cudnn_note({.built = 91900, .loaded = 92201}).empty());
  CHECK(cudnn_note({}).starts_with("note: LibTorch has no cuDNN"));
}

TEST_CASE("a library that is loaded has a path, another none") {
  CHECK(loaded_library("libc.so").find("/libc.so") != std::string::npos);
  CHECK(loaded_library("libno-such.so").empty());
}
