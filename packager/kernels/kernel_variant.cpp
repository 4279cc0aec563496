// SPDX-License-Identifier: Apache-2.0
// Names of variants -> order of preference; see kernel_variant.hpp. Source: kernels/variants.py and backends.py of the
// wheels 0.13.0, 0.15.2 and 0.17.2.
#include "packager/kernels/kernel_variant.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "sealift/bundle/wheel/wheel_name.hpp"

namespace sealift::packager {

using bundle::Version;

namespace {

// Smaller is taken first. Of the same meaning as the loader's own sort key.
using Rank = std::array<int, 4>;

std::vector<std::string> parts_of(const std::string& text) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == '-')
      parts.emplace_back();
    else
      parts.back() += c;
  }
  return parts;
}

bool is_number(std::string_view text) {
  return !text.empty() && text.size() <= 6 &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

unsigned number(std::string_view text) {
  unsigned value = 0;
  for (const char c : text) value = value * 10 + static_cast<unsigned>(c - '0');
  return value;
}

// 2.11 of "torch211": one digit, then the others.
std::optional<Version> version_behind(std::string_view word, std::string_view name) {
  if (!name.starts_with(word) || name.size() < word.size() + 2) return std::nullopt;
  const std::string_view digits = name.substr(word.size());
  if (!is_number(digits)) return std::nullopt;
  return Version{.major = number(digits.substr(0, 1)), .minor = number(digits.substr(1))};
}

// 12.8 of "cu128": all but the last digit, then that.
std::optional<Version> cuda_of(std::string_view backend) {
  if (!backend.starts_with("cu") || backend.size() < 4 || !is_number(backend.substr(2))) return std::nullopt;
  const std::string_view digits = backend.substr(2);
  return Version{.major = number(digits.substr(0, digits.size() - 1)),
                 .minor = number(digits.substr(digits.size() - 1))};
}

// -minor of the CUDA that a variant is for, 0 for other backends that fit, nothing where it does not.
std::optional<int> backend_rank(const std::string& backend, const KernelSystem& system) {
  const std::optional<Version> wanted = cuda_of(backend), had = cuda_of(system.backend);
  if (!wanted || !had) return backend == system.backend ? std::optional(0) : std::nullopt;
  if (wanted->major != had->major || wanted->minor > had->minor) return std::nullopt;
  return -static_cast<int>(wanted->minor);
}

// FRAMEWORK-BACKEND-CPU-OS; `first` is the position of BACKEND.
std::optional<int> arch_rank(const std::vector<std::string>& parts, std::size_t first, const KernelSystem& system) {
  if (parts.size() != first + 3 || parts[first + 1] != system.arch || parts[first + 2] != "linux") return std::nullopt;
  return backend_rank(parts[first], system);
}

// torch-stable-abi210-cu128-x86_64-linux: of this torch or an older one.
std::optional<Rank> stable_rank(const std::vector<std::string>& parts, const KernelSystem& system) {
  if (system.loader < Version{.minor = 15, .patch = 1}) return std::nullopt;
  const std::optional<Version> abi = version_behind("abi", parts[2]);
  const std::optional<int> backend = arch_rank(parts, 3, system);
  if (!abi || !backend || !system.torch || *abi > *system.torch) return std::nullopt;
  return Rank{0, -static_cast<int>(abi->major * 1'000'000 + abi->minor), *backend, 0};
}

std::optional<Rank> torch_rank(const std::vector<std::string>& parts, const KernelSystem& system) {
  const bool tagged = parts.size() > 1 && (parts[1] == "cxx11" || parts[1] == "cxx98");
  if (tagged && (parts[1] == "cxx11") != system.cxx11) return std::nullopt;
  const std::optional<Version> torch = version_behind("torch", parts[0]);
  const std::optional<int> backend = arch_rank(parts, tagged ? 2 : 1, system);
  if (!torch || !backend || torch != system.torch) return std::nullopt;
  return Rank{1, tagged ? 1 : 0, *backend, 0};
}

std::optional<Rank> tvm_rank(const std::vector<std::string>& parts, const KernelSystem& system) {
  const std::optional<Version> ffi = version_behind("ffi", parts[1]);
  const std::optional<int> backend = arch_rank(parts, 2, system);
  if (!ffi || !backend || ffi != system.tvm_ffi) return std::nullopt;
  return Rank{2, 0, *backend, 0};
}

// torch-cuda, torch-cpu, torch-universal: Python alone.
std::optional<Rank> python_rank(const std::string& backend, const KernelSystem& system) {
  if (backend == "universal") return Rank{3, 1, 0, 0};
  const std::string name = cuda_of(system.backend)              ? "cuda"
                           : system.backend.starts_with("rocm") ? "rocm"
                                                                : system.backend;
  return backend == name ? std::optional(Rank{3, 0, 0, 0}) : std::nullopt;
}

std::optional<Rank> rank_of(const std::string& variant, const KernelSystem& system) {
  const std::vector<std::string> parts = parts_of(variant);
  if (variant.starts_with("torch-stable-abi") && parts.size() > 2) return stable_rank(parts, system);
  if (parts[0] == "torch") return parts.size() == 2 ? python_rank(parts[1], system) : std::nullopt;
  if (parts[0].starts_with("torch")) return torch_rank(parts, system);
  if (parts[0] == "tvm" && parts.size() > 1) return tvm_rank(parts, system);
  return std::nullopt;
}

Version major_minor(const std::string& text) {
  const Version all = Version::leading(text);
  return {.major = all.major, .minor = all.minor};
}

// Of torch's own label ("+cu128", "+cpu"); without one by the CUDA runtime that it requires, as releases of an index
// are that everybody uses.
std::string backend_of(const std::string& torch, const std::map<std::string, std::string>& versions) {
  if (const std::size_t plus = torch.find('+'); plus != torch.npos) {
    std::string label = torch.substr(plus + 1);
    std::erase(label, '.');
    return label;
  }
  for (const auto& [name, version] : versions)
    if (name.starts_with("nvidia-cuda-runtime")) {
      const Version cuda = Version::leading(version);
      return fmt::format("cu{}{}", cuda.major, cuda.minor);
    }
  return "cpu";
}

}  // namespace

std::string KernelSystem::text() const {
  return fmt::format("{} ({}), {}, kernels {}", torch ? "torch " + torch->text() : "no torch", backend, arch,
                     loader.text());
}

std::optional<KernelSystem> kernel_system(const std::vector<LockedWheel>& wheels, const std::string& arch) {
  std::map<std::string, std::string> versions;
  for (const LockedWheel& wheel : wheels) versions[bundle::normalized_project_name(wheel.name)] = wheel.version;
  if (!versions.contains("kernels")) return std::nullopt;
  KernelSystem system{.loader = Version::leading(versions["kernels"]), .torch = {}, .tvm_ffi = {}, .arch = arch};
  if (versions.contains("apache-tvm-ffi")) system.tvm_ffi = major_minor(versions["apache-tvm-ffi"]);
  if (const auto torch = versions.find("torch"); torch != versions.end()) {
    system.torch = major_minor(torch->second);
    system.backend = backend_of(torch->second, versions);
    // Releases up to 2.5 have the older ABI; of 2.6 those for CUDA 12.6 have the newer one.
    system.cxx11 = *system.torch >= Version{.major = 2, .minor = 7} ||
                   (*system.torch == Version{.major = 2, .minor = 6} && system.backend == "cu126");
  }
  return system;
}

std::optional<std::string> choose_variant(const std::vector<std::string>& variants, const KernelSystem& system) {
  std::optional<std::pair<Rank, std::string>> best;
  for (const std::string& variant : variants)
    if (const std::optional<Rank> rank = rank_of(variant, system); rank && (!best || std::pair(*rank, variant) < *best))
      best = {*rank, variant};
  return best ? std::optional(best->second) : std::nullopt;
}

}  // namespace sealift::packager
