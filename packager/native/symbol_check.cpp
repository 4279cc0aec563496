// SPDX-License-Identifier: Apache-2.0
// Hashes of all definitions, and the names that are not among them; see symbol_check.hpp.
#include "packager/native/symbol_check.hpp"

#include <algorithm>

#include "packager/libraries/elf_on_disk.hpp"
#include "sealift/bundle/native/system_libraries.hpp"

namespace sealift::packager {

namespace fs = std::filesystem;

namespace {

void sort(std::vector<std::uint64_t>& hashes) {
  std::sort(hashes.begin(), hashes.end());
  hashes.erase(std::unique(hashes.begin(), hashes.end()), hashes.end());
}

std::vector<std::uint64_t> definitions(const NativeIndex& index, const std::vector<std::uint64_t>& of_target) {
  std::vector<std::uint64_t> all = of_target;
  for (std::size_t file = 0; file < index.size(); ++file) {
    if (!index.fits(file)) continue;
    const std::vector<std::uint64_t>& defined = index.at(file).symbols.defined;
    all.insert(all.end(), defined.begin(), defined.end());
  }
  sort(all);
  return all;
}

bool brings_all(const NativeIndex& index, const NativeFile& file) {
  return std::all_of(file.elf.needed.begin(), file.elf.needed.end(), [&](const std::string& wanted) {
    const std::string name = wanted.substr(wanted.rfind('/') + 1);
    const std::vector<std::size_t> there = index.named(name);
    return bundle::is_glibc_library(name) ||
           std::any_of(there.begin(), there.end(), [&](std::size_t one) { return index.fits(one); });
  });
}

}  // namespace

std::map<std::size_t, std::vector<std::string>> unbound_symbols(const NativeIndex& index,
                                                                const std::vector<std::uint64_t>& of_target) {
  const std::vector<std::uint64_t> defined = definitions(index, of_target);
  std::map<std::size_t, std::vector<std::string>> unbound;
  for (std::size_t file = 0; file < index.size(); ++file) {
    if (!index.fits(file) || !brings_all(index, index.at(file))) continue;
    for (const std::string& name : index.at(file).symbols.undefined)
      if (!std::binary_search(defined.begin(), defined.end(), bundle::symbol_hash(name))) unbound[file].push_back(name);
  }
  return unbound;
}

std::vector<std::uint64_t> glibc_symbols(const std::string& arch, const std::vector<fs::path>& folders) {
  std::vector<std::string> libraries = {"libc.so.6",      "libm.so.6",   "libpthread.so.0",
                                        "libdl.so.2",     "librt.so.1",  "libutil.so.1",
                                        "libresolv.so.2", "libanl.so.1", "libmvec.so.1"};
  libraries.emplace_back(bundle::loader_name(arch));
  std::vector<std::uint64_t> all;
  for (const fs::path& folder : folders)
    for (const std::string& name : libraries) {
      std::error_code error;
      if (!fs::is_regular_file(folder / name, error)) continue;
      const std::optional<bundle::ElfFile> elf = read_elf_file(folder / name);
      if (!elf || elf->arch != arch) continue;
      bundle::FileSource source(fs::canonical(folder / name));
      const std::vector<std::uint64_t> defined = bundle::read_elf_symbols(source).defined;
      all.insert(all.end(), defined.begin(), defined.end());
    }
  sort(all);
  return all;
}

}  // namespace sealift::packager
