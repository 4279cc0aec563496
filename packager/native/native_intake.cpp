// SPDX-License-Identifier: Apache-2.0
// See native_intake.hpp.
#include "packager/native/native_intake.hpp"

#include <elf.h>

#include <algorithm>
#include <set>

#include "bundle/core/unicode.hpp"
#include "sealift/bundle/core/error.hpp"
#include "sealift/bundle/host/interrupt.hpp"

namespace sealift::packager {

using bundle::Error;

namespace {

// Whether ld.so may be asked to load it: no objects for a linker, no code for a GPU (which has e_machine values of its
// own).
bool is_loadable(const bundle::ElfFile& elf) {
  static constexpr std::string_view kDevices[] = {"machine 190", "machine 224", "machine 247"};  // CUDA, AMD GPU, BPF
  static constexpr std::string_view kDeviceSystems[] = {"for system 51", "for system 64", "for system 65",
                                                        "for system 66"};  // CUDA, AMD's HSA, PAL, MESA3D
  const auto among = [&](const auto& list) {
    return std::find(std::begin(list), std::end(list), elf.arch) != std::end(list);
  };
  if (among(kDevices) || among(kDeviceSystems)) return false;
  return elf.type == ET_DYN || elf.type == ET_EXEC || elf.type == 0;
}

// Names end up on screens and in JSON.
bool is_plain(std::string_view text) {
  return bundle::is_utf8(text) &&
         std::none_of(text.begin(), text.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; });
}

bool is_plain(const bundle::ElfFile& elf) {
  const auto plain = [](const auto& names) {
    return std::all_of(names.begin(), names.end(), [](const std::string& name) { return is_plain(name); });
  };
  return is_plain(elf.soname) && is_plain(elf.rpath) && is_plain(elf.runpath) && is_plain(elf.interpreter) &&
         plain(elf.needed) && plain(elf.offered_versions) &&
         std::all_of(elf.wanted_versions.begin(), elf.wanted_versions.end(),
                     [&](const auto& wanted) { return is_plain(wanted.first) && plain(wanted.second); });
}

void read_gpu(bundle::ByteSource& source, NativeFile& file) {
  try {
    file.gpu = bundle::read_gpu_code(source);
  } catch (const Error& error) {
    file.gpu_fault = error.facts().what;
  }
}

}  // namespace

bool is_elf(std::string_view start) {
  return start.starts_with(std::string_view(ELFMAG, SELFMAG));
}

void NativeIntake::begin() {
  std::filesystem::remove(scratch_);
  out_.emplace(scratch_);
  scan_ = NameScan();
}

void NativeIntake::feed(bundle::ByteView piece) {
  bundle::stop_if_interrupted();
  out_->write(piece);
  scan_.feed(piece);
}

void NativeIntake::end(NativeFile file, std::vector<NativeFile>& files) {
  out_.reset();
  const std::set<std::string> names = scan_.finish();
  file.names.assign(names.begin(), names.end());
  bundle::FileSource source(scratch_);
  try {
    file.elf = bundle::read_elf(source).value();
    if (!is_plain(file.elf)) file.fault = "its names are not plain text";
    if (file.fault.empty() && is_loadable(file.elf)) {
      file.symbols = bundle::read_elf_symbols(source);
      for (const std::string& name : file.symbols.undefined)
        if (!is_plain(name)) file.fault = "its names are not plain text";
    }
  } catch (const Error& error) {
    file.fault = error.facts().what;
  }
  if (!file.fault.empty()) file.elf = {}, file.symbols = {};
  if (file.fault.empty() && is_loadable(file.elf)) read_gpu(source, file);
  std::filesystem::remove(scratch_);
  if (is_loadable(file.elf)) files.push_back(std::move(file));
}

}  // namespace sealift::packager
