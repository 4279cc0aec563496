// SPDX-License-Identifier: Apache-2.0
// Rows E01 and E02: ELF files whose tables point anywhere. The builder makes a small one that is right but for one
// fault.
#pragma once

#include <elf.h>

#include <cstring>
#include <functional>

#include "tests/support/hostile/hostile_case.hpp"

namespace sealift::test {

// One file mapped at address 0: header, program headers, dynamic section, strings, one wanted version.
struct TinyElf {
  Elf64_Ehdr header{};
  Elf64_Phdr load{}, dynamic{};
  Elf64_Dyn items[6] = {};
  Elf64_Verneed need{};
  Elf64_Vernaux version{};
  char strings[64] = {};
};

inline std::string make_elf(const std::function<void(TinyElf&)>& change = {}) {
  TinyElf elf;
  std::memcpy(elf.header.e_ident, ELFMAG, SELFMAG);
  elf.header.e_ident[EI_CLASS] = ELFCLASS64;
  elf.header.e_ident[EI_DATA] = ELFDATA2LSB;
  elf.header.e_ident[EI_VERSION] = EV_CURRENT;
  elf.header.e_type = ET_DYN;
  elf.header.e_machine = EM_X86_64;
  elf.header.e_phoff = offsetof(TinyElf, load);
  elf.header.e_phentsize = sizeof(Elf64_Phdr);
  elf.header.e_phnum = 2;
  elf.load = {.p_type = PT_LOAD, .p_filesz = sizeof(TinyElf), .p_memsz = sizeof(TinyElf)};
  elf.dynamic = {.p_type = PT_DYNAMIC,
                 .p_offset = offsetof(TinyElf, items),
                 .p_vaddr = offsetof(TinyElf, items),
                 .p_filesz = sizeof(elf.items)};
  const auto item = [&](int index, Elf64_Sxword tag, std::uint64_t value) {
    elf.items[index].d_tag = tag;
    elf.items[index].d_un.d_val = value;
  };
  item(0, DT_STRTAB, offsetof(TinyElf, strings));
  item(1, DT_SONAME, 1);
  item(2, DT_NEEDED, 10);
  item(3, DT_VERNEED, offsetof(TinyElf, need));
  item(4, DT_VERNEEDNUM, 1);
  static constexpr char kStrings[] = "\0libt.so.1\0libc.so.6\0GLIBC_2.17";
  std::memcpy(elf.strings, kStrings, sizeof kStrings);
  elf.items[2].d_un.d_val = 11;
  elf.need = {.vn_version = 1, .vn_cnt = 1, .vn_file = 11, .vn_aux = sizeof(Elf64_Verneed), .vn_next = 0};
  elf.version = {.vna_name = 21};
  if (change) change(elf);
  std::string bytes(sizeof elf, '\0');
  std::memcpy(bytes.data(), &elf, sizeof elf);
  return bytes;
}

inline HostileCases hostile_elfs() {
  HostileCases cases;
  const auto bytes = [&](const char* name, std::string text, const char* word) {
    cases.push_back({.row = "E01", .name = name, .bytes = std::move(text), .word = word, .file = "lib.so"});
  };
  const auto add = [&](const char* name, const std::function<void(TinyElf&)>& change, const char* word) {
    bytes(name, make_elf(change), word);
  };
  bytes("header-cut-short", make_elf().substr(0, 63), "header");
  bytes("program-headers-cut-short", make_elf().substr(0, 100), "past the end");
  bytes(
      "string-without-end",
      [] {
        std::string text = make_elf([](TinyElf& elf) { elf.items[0].d_un.d_val = offsetof(TinyElf, strings) + 50; });
        return text.substr(0, offsetof(TinyElf, strings) + 60) + "aaaa";
      }(),
      "string runs past");
  add(
      "program-headers-past-the-end", [](TinyElf& elf) { elf.header.e_phoff = 1 << 20; }, "past the end");
  add(
      "program-headers-that-wrap", [](TinyElf& elf) { elf.header.e_phoff = ~std::uint64_t{0} - 10; }, "past the end");
  add(
      "65535-program-headers", [](TinyElf& elf) { elf.header.e_phnum = 65535; }, "past the end");
  add(
      "odd-program-headers", [](TinyElf& elf) { elf.header.e_phentsize = 8; }, "unknown size");
  add(
      "dynamic-past-the-end", [](TinyElf& elf) { elf.dynamic.p_offset = 1 << 20; }, "past the end");
  add(
      "dynamic-that-wraps", [](TinyElf& elf) { elf.dynamic.p_offset = ~std::uint64_t{0} - 20; }, "past the end");
  add(
      "dynamic-of-everything", [](TinyElf& elf) { elf.dynamic.p_filesz = ~std::uint64_t{0}; }, "too long");
  add(
      "strings-nowhere", [](TinyElf& elf) { elf.items[0].d_un.d_val = 1 << 20; }, "no segment");
  add(
      "name-past-the-end", [](TinyElf& elf) { elf.items[2].d_un.d_val = 1 << 20; }, "string runs past");
  add(
      "name-that-wraps", [](TinyElf& elf) { elf.items[2].d_un.d_val = ~std::uint64_t{0} - 5; }, "");
  add(
      "versions-nowhere", [](TinyElf& elf) { elf.items[3].d_un.d_val = 1 << 20; }, "no segment");
  add(
      "versions-past-the-end", [](TinyElf& elf) { elf.need.vn_aux = 1 << 20; }, "past the end");
  add(
      "interpreter-past-the-end",
      [](TinyElf& elf) {
        elf.load.p_type = PT_INTERP;
        elf.load.p_offset = 1 << 20;
      },
      "string runs past");
  const auto other = [&](const char* name, const std::function<void(TinyElf&)>& change, const char* arch) {
    cases.push_back({.row = "E02", .name = name, .bytes = make_elf(change), .word = arch, .file = "lib.so"});
  };
  other(
      "32-bit", [](TinyElf& elf) { elf.header.e_ident[EI_CLASS] = ELFCLASS32; }, "not 64-bit little-endian");
  other(
      "big-endian", [](TinyElf& elf) { elf.header.e_ident[EI_DATA] = ELFDATA2MSB; }, "not 64-bit little-endian");
  other(
      "aarch64", [](TinyElf& elf) { elf.header.e_machine = EM_AARCH64; }, "aarch64");
  other(
      "another-machine", [](TinyElf& elf) { elf.header.e_machine = EM_RISCV; }, "machine 243");
  other(
      "another-system", [](TinyElf& elf) { elf.header.e_ident[EI_OSABI] = ELFOSABI_FREEBSD; }, "for system 9");
  return cases;
}

}  // namespace sealift::test
