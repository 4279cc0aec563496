// SPDX-License-Identifier: Apache-2.0
// A small shared library that offers symbol versions and holds nothing else: a distribution's libc.so.6 or
// libstdc++.so.6, as far as a probe can see.
#pragma once

#include <elf.h>

#include <cstring>
#include <string>
#include <vector>

namespace sealift::test {

inline std::string make_offering_elf(const std::vector<std::string>& versions, Elf64_Half machine = EM_X86_64) {
  std::string strings(1, '\0'), definitions;
  for (std::size_t i = 0; i < versions.size(); ++i) {
    struct Definition {
      Elf64_Verdef head{};
      Elf64_Verdaux name{};
    } definition;
    definition.head = {.vd_version = 1,
                       .vd_ndx = static_cast<Elf64_Half>(i + 1),
                       .vd_cnt = 1,
                       .vd_aux = sizeof(Elf64_Verdef),
                       .vd_next = i + 1 == versions.size() ? 0 : static_cast<Elf64_Word>(sizeof definition)};
    definition.name = {.vda_name = static_cast<Elf64_Word>(strings.size())};
    definitions.append(reinterpret_cast<const char*>(&definition), sizeof definition);
    strings += versions[i] + '\0';
  }
  struct {
    Elf64_Ehdr header{};
    Elf64_Phdr load{}, dynamic{};
    Elf64_Dyn items[4] = {};
  } elf;
  const std::size_t definitions_at = sizeof elf, strings_at = definitions_at + definitions.size();
  const std::size_t size = strings_at + strings.size();
  std::memcpy(elf.header.e_ident, ELFMAG, SELFMAG);
  elf.header.e_ident[EI_CLASS] = ELFCLASS64;
  elf.header.e_ident[EI_DATA] = ELFDATA2LSB;
  elf.header.e_ident[EI_VERSION] = EV_CURRENT;
  elf.header.e_type = ET_DYN;
  elf.header.e_machine = machine;
  elf.header.e_phoff = sizeof elf.header;
  elf.header.e_phentsize = sizeof(Elf64_Phdr);
  elf.header.e_phnum = 2;
  elf.load = {.p_type = PT_LOAD, .p_filesz = size, .p_memsz = size};
  elf.dynamic = {.p_type = PT_DYNAMIC,
                 .p_offset = sizeof elf - sizeof elf.items,
                 .p_vaddr = sizeof elf - sizeof elf.items,
                 .p_filesz = sizeof elf.items};
  const Elf64_Sxword tags[] = {DT_STRTAB, DT_VERDEF, DT_VERDEFNUM};
  const std::uint64_t values[] = {strings_at, definitions_at, versions.size()};
  for (int i = 0; i < 3; ++i) {
    elf.items[i].d_tag = tags[i];
    elf.items[i].d_un.d_val = values[i];
  }
  return std::string(reinterpret_cast<const char*>(&elf), sizeof elf) + definitions + strings;
}

}  // namespace sealift::test
