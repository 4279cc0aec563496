// SPDX-License-Identifier: Apache-2.0
// Whatever the tables of an ELF file point at, reading them ends, and takes no more text than it may.
#include "sealift/bundle/native/elf.hpp"

#include "sealift/bundle/native/elf_symbols.hpp"
#include "sealift/bundle/native/libc_version.hpp"
#include "tests/fuzz/fuzz.hpp"
#include "tests/support/hostile/read_hostile.hpp"

using namespace sealift::bundle;
using namespace sealift::test;

FUZZ(text) {
  accepted([&] {
    MemorySource source = source_of(text, "elf");
    const std::optional<ElfFile> elf = read_elf(source);
    must(elf.has_value() == text.starts_with("\x7f"
                                             "ELF"),
         "what is called an ELF file starts as one");
    if (!elf) return;
    std::size_t bytes = elf->soname.size() + elf->rpath.size() + elf->runpath.size() + elf->interpreter.size();
    for (const std::string& name : elf->needed) bytes += name.size();
    for (const auto& [library, versions] : elf->wanted_versions)
      for (const std::string& version : versions) bytes += version.size();
    for (const std::string& version : elf->offered_versions) bytes += version.size();
    must(bytes <= (std::size_t{8} << 20), "names are bounded");
    elf->glibc_floor();
    elf->glibc_offered();
    libc_version(source, *elf);
  });
  accepted([&] {
    MemorySource source = source_of(text, "elf");
    const ElfSymbols symbols = read_elf_symbols(source);
    must(symbols.defined.size() + symbols.undefined.size() <= text.size() / 24, "each symbol takes its 24 bytes");
  });
}
