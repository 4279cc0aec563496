// SPDX-License-Identifier: Apache-2.0
// The C library's version is the newest GLIBC_x.y that libc.so.6 offers, read with the same ELF reader that the
// packager uses for the floor of a bundle; so both sides speak of the same number.
#include "installer/probe.hpp"

#include <sys/utsname.h>

#include <vector>

#include "sealift/bundle/elf.hpp"

namespace sealift::installer {

namespace fs = std::filesystem;

namespace {

// Where distributions keep libc.so.6, the dynamic linker's own folder first.
std::vector<fs::path> places_of_libc(const fs::path& root, const std::string& arch) {
  std::vector<fs::path> places;
  std::error_code error;
  for (const char* linker : {"lib64/ld-linux-x86-64.so.2", "lib/ld-linux-aarch64.so.1"}) {
    const fs::path real = fs::canonical(root / linker, error);
    if (!error) places.push_back(real.parent_path());
  }
  for (const std::string& folder :
       {"lib/" + arch + "-linux-gnu", "usr/lib/" + arch + "-linux-gnu", std::string("lib64"), std::string("usr/lib64"),
        std::string("lib"), std::string("usr/lib")})
    places.push_back(root / folder);
  return places;
}

std::optional<bundle::GlibcVersion> glibc_of(const fs::path& libc, const std::string& arch) {
  try {
    bundle::FileSource source(libc);
    const std::optional<bundle::ElfFile> elf = bundle::read_elf(source);
    return elf && elf->arch == arch ? elf->glibc_offered() : std::nullopt;
  } catch (const bundle::Error&) {
    return std::nullopt;  // unreadable or damaged: as good as absent, the next place may have one
  }
}

}  // namespace

Machine probe(const fs::path& root) {
  utsname names{};
  ::uname(&names);
  Machine machine{.arch = names.machine, .kernel = names.release};
  for (const fs::path& folder : places_of_libc(root, machine.arch)) {
    std::error_code error;
    const fs::path libc = fs::canonical(folder / "libc.so.6", error);  // a link to libc-2.31.so on older hosts
    if (error) continue;
    machine.glibc = glibc_of(libc, machine.arch);
    machine.libc = libc;
    if (machine.glibc) return machine;
  }
  machine.libc.clear();
  return machine;
}

}  // namespace sealift::installer
