// SPDX-License-Identifier: Apache-2.0
// Which build variant of a kernel's repository the loader (the package `kernels`) takes on a machine: its own rules, in
// its own order, so that what is carried is what it would have fetched. Pure; tests/packager/kernels/variants.txt has
// the answers of three releases of the loader.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "packager/lock/lock.hpp"
#include "sealift/bundle/core/version.hpp"

namespace sealift::packager {

// What the loader looks at.
struct KernelSystem {
  bundle::Version loader;                // 0.15.2
  std::optional<bundle::Version> torch;  // major and minor alone
  bool cxx11 = true;                     // which ABI of C++ torch was compiled with
  std::optional<bundle::Version> tvm_ffi;
  std::string backend = "cpu";  // as variants name it: "cpu", "cu128", "rocm64"
  std::string arch;             // "x86_64"

  std::string text() const;  // for messages: "torch 2.11 (cu128), x86_64, kernels 0.15.2"
};

// For these wheels on this kind of processor; nothing where no loader is among them.
std::optional<KernelSystem> kernel_system(const std::vector<LockedWheel>& wheels, const std::string& arch);

// The one of `variants` that is loaded; nothing when none fits. Malformed names fit nowhere.
std::optional<std::string> choose_variant(const std::vector<std::string>& variants, const KernelSystem& system);

}  // namespace sealift::packager
