// SPDX-License-Identifier: Apache-2.0
// Row E09: ELF files whose fat binaries point anywhere. The builder makes a file that is right: fat binaries of images
// that say what they are for, behind headers as nvcc 13.0 writes them.
#pragma once

#include <elf.h>

#include <cstring>
#include <initializer_list>
#include <string>
#include <vector>

#include "sealift/bundle/native/gpu_code.hpp"
#include "tests/support/hostile/hostile_case.hpp"

namespace sealift::test {

inline void put(std::string& bytes, std::size_t at, std::uint64_t value, std::size_t size) {
  std::memcpy(bytes.data() + at, &value, size);
}

// "sm_90a", "sm_100f", "compute_75"; `size` is that of the code, which is stored in 24 bytes as if it were compressed.
inline std::string gpu_image(std::string_view text, std::uint64_t size = 5000) {
  const auto image = bundle::GpuImage::parse(text).value();
  std::string header(image.architecture >= 100 ? 112 : 64, '\0');
  put(header, 0, image.kind == bundle::GpuImage::Kind::Ptx ? 1 : 2, 2);
  put(header, 2, 0x101, 2);
  put(header, 4, header.size(), 4);
  put(header, 8, 24, 8);
  put(header, 16, 22, 4);
  put(header, 28, image.architecture, 4);
  put(header, 40,
      0x8011 | (image.scope == bundle::GpuImage::Scope::Architecture ? 0x100000
                : image.scope == bundle::GpuImage::Scope::Family     ? 0x200000
                                                                     : 0),
      8);
  put(header, 56, size, 8);
  return header + std::string("\x28\xb5\x2f\xfd", 4) + std::string(20, 'x');
}

inline std::string fat_binary(const std::vector<std::string>& images, std::uint64_t size_of_code = 5000) {
  std::string body;
  for (const std::string& image : images) body += gpu_image(image, size_of_code);
  std::string bytes(16, '\0');
  put(bytes, 0, 0xBA55ED50, 4);
  put(bytes, 4, 1, 2);
  put(bytes, 6, 16, 2);
  put(bytes, 8, body.size(), 8);
  return bytes + body;
}

// An ELF file for x86-64 whose second section is .nv_fatbin; its headers lie behind it.
inline std::string elf_with_gpu_code(const std::string& section, const std::string& name = ".nv_fatbin") {
  const std::string names = std::string(1, '\0') + name + std::string(1, '\0') + ".shstrtab" + std::string(16, '\0');
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_type = ET_DYN;
  header.e_machine = EM_X86_64;
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shnum = 3;
  header.e_shstrndx = 2;
  header.e_shoff = sizeof header + section.size() + names.size();
  Elf64_Shdr sections[3] = {};
  sections[1].sh_name = 1;
  sections[1].sh_type = SHT_PROGBITS;
  sections[1].sh_offset = sizeof header;
  sections[1].sh_size = section.size();
  sections[2].sh_name = static_cast<Elf64_Word>(name.size() + 2);
  sections[2].sh_type = SHT_STRTAB;
  sections[2].sh_offset = sizeof header + section.size();
  sections[2].sh_size = names.size();
  std::string bytes(reinterpret_cast<const char*>(&header), sizeof header);
  return bytes + section + names + std::string(reinterpret_cast<const char*>(sections), sizeof sections);
}

inline HostileCases hostile_gpu_code() {
  HostileCases cases;
  const std::string good = fat_binary({"sm_90", "compute_90"});
  const auto elf = [&](const char* name, std::string bytes, const char* word) {
    cases.push_back({.row = "E09", .name = name, .bytes = std::move(bytes), .word = word, .file = "lib.so"});
  };
  const auto changed = [&](const char* name, std::size_t at, std::uint64_t value, std::size_t size, const char* word) {
    std::string section = good;
    put(section, at, value, size);
    elf(name, elf_with_gpu_code(section), word);
  };
  changed("no-magic", 0, 0x12345678, 4, "does not begin");
  changed("another-version", 4, 9, 2, "another version");
  changed("no-header", 6, 0, 2, "another version");
  changed("binary-past-its-section", 8, 1 << 20, 8, "past its section");
  changed("binary-that-wraps", 8, ~std::uint64_t{0} - 8, 8, "past its section");
  changed("binary-cut-in-an-image", 8, 16, 8, "cut short");
  changed("image-without-header", 16 + 4, 0, 4, "past its fat binary");
  changed("image-past-its-binary", 16 + 8, 1 << 20, 8, "past its fat binary");
  changed("image-that-wraps", 16 + 8, ~std::uint64_t{0} - 63, 8, "past its fat binary");
  changed("header-past-its-binary", 16 + 4, 0xffffffff, 4, "past its fat binary");
  elf("only-zeros", elf_with_gpu_code(std::string(70000, '\0')), "does not begin");
  const std::string whole = elf_with_gpu_code(good);
  const std::size_t table = whole.size() - 3 * sizeof(Elf64_Shdr);
  const auto table_of = [&](const char* name, std::size_t at, std::uint64_t value, std::size_t size, const char* word) {
    std::string bytes = whole;
    put(bytes, at, value, size);
    elf(name, bytes, word);
  };
  elf("table-cut-short", whole.substr(0, whole.size() - 10), "past the end");
  table_of("table-past-the-end", offsetof(Elf64_Ehdr, e_shoff), 1 << 30, 8, "cut short");
  table_of("table-that-wraps", offsetof(Elf64_Ehdr, e_shoff), ~std::uint64_t{0} - 40, 8, "cut short");
  table_of("65535-sections", offsetof(Elf64_Ehdr, e_shnum), 65535, 2, "cut short");
  table_of("names-in-no-section", offsetof(Elf64_Ehdr, e_shstrndx), 77, 2, "cut short");
  const std::size_t second = table + sizeof(Elf64_Shdr);
  table_of("section-past-the-end", second + offsetof(Elf64_Shdr, sh_offset), 1 << 30, 8, "past its end");
  table_of("section-that-wraps", second + offsetof(Elf64_Shdr, sh_size), ~std::uint64_t{0}, 8, "past its end");
  return cases;
}

}  // namespace sealift::test
