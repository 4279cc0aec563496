// SPDX-License-Identifier: Apache-2.0
#include "sealift/bundle/native/elf.hpp"

#include <elf.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <span>
#include <string_view>

#include "sealift/bundle/core/error.hpp"

namespace sealift::bundle {
namespace {

// Makes `newest` the newest of itself and all GLIBC_x.y among `versions`.
void raise(std::optional<GlibcVersion>& newest, const std::set<std::string>& versions) {
  for (const std::string& version : versions) {
    if (!version.starts_with("GLIBC_")) continue;
    // A version without a number that glibc 2.36 introduced: packed relative relocations (ld -z pack-relative-relocs).
    const std::optional<GlibcVersion> parsed =
        version == "GLIBC_ABI_DT_RELR" ? GlibcVersion{2, 36} : parse_glibc(std::string_view(version).substr(6));
    if (parsed && (!newest || *newest < *parsed)) newest = parsed;
  }
}

class ElfParser {
 public:
  explicit ElfParser(ByteSource& source) : source_(source) {}

  // std::nullopt when the file does not start with the ELF magic.
  std::optional<ElfFile> parse() {
    unsigned char magic[4] = {};
    if (source_.size() < SELFMAG) return std::nullopt;
    source_.read_exactly(0, std::as_writable_bytes(std::span(magic)));
    if (std::memcmp(magic, ELFMAG, SELFMAG) != 0) return std::nullopt;
    if (source_.size() < sizeof(Elf64_Ehdr)) refuse("its header is cut short");
    const auto header = structure<Elf64_Ehdr>(0);
    if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB)
      return ElfFile{.arch = "not 64-bit little-endian"};
    if (header.e_ident[EI_OSABI] != ELFOSABI_SYSV && header.e_ident[EI_OSABI] != ELFOSABI_GNU)
      return ElfFile{.arch = "for system " + std::to_string(header.e_ident[EI_OSABI])};
    file_.arch = header.e_machine == EM_X86_64    ? "x86_64"
                 : header.e_machine == EM_AARCH64 ? "aarch64"
                                                  : "machine " + std::to_string(header.e_machine);
    file_.type = header.e_type;
    file_.executable_stack = true;  // the kernel and ld.so assume so when there is no PT_GNU_STACK
    if (header.e_phnum > 0 && header.e_phentsize != sizeof(Elf64_Phdr))
      refuse("its program headers have an unknown size");
    for (std::uint16_t i = 0; i < header.e_phnum; ++i)
      segments_.push_back(structure<Elf64_Phdr>(header.e_phoff + std::uint64_t{i} * sizeof(Elf64_Phdr)));
    for (const Elf64_Phdr& segment : segments_) {
      if (segment.p_type == PT_GNU_STACK) file_.executable_stack = (segment.p_flags & PF_X) != 0;
      if (segment.p_type == PT_INTERP) file_.interpreter = text_at(segment.p_offset);
      if (segment.p_type == PT_DYNAMIC) read_dynamic(segment);
      if (segment.p_type == PT_NOTE) read_notes(segment);
    }
    return std::move(file_);
  }

 private:
  static constexpr std::uint64_t kMaxDynamic = 65536;
  static constexpr std::uint64_t kMaxNotes = 65536;
  static constexpr int kMaxVersions = 65536;
  static constexpr std::size_t kMaxText = std::size_t{8} << 20;      // bytes of all names together
  static constexpr std::size_t kMaxString = std::size_t{256} << 10;  // TensorFlow 2.21's RUNPATH has 20,297

  template <class T>
  T structure(std::uint64_t offset) {
    T value;
    source_.read_exactly(offset, std::as_writable_bytes(std::span(&value, 1)));
    return value;
  }

  std::string text_at(std::uint64_t offset) {
    std::string text;
    while (text.size() < kMaxString) {
      if (offset >= source_.size()) refuse("a string runs past its end");
      const std::string_view piece = as_text(source_.view(offset, 256));
      const std::size_t end = piece.find('\0');
      text.append(piece.substr(0, end));
      if ((text_read_ += std::min(end, piece.size())) > kMaxText) refuse("it has too many names");
      if (end != piece.npos) return text;
      offset += piece.size();
    }
    refuse("a string is longer than 256 KiB");
  }

  std::string string_at(std::uint64_t index) {
    if (index >= source_.size()) refuse("a string runs past its end");
    return text_at(strings_ + index);
  }

  // The file offset of the byte that is loaded at `address`.
  std::uint64_t file_offset(std::uint64_t address) const {
    for (const Elf64_Phdr& segment : segments_)
      if (segment.p_type == PT_LOAD && address >= segment.p_vaddr && address - segment.p_vaddr < segment.p_filesz)
        return segment.p_offset + (address - segment.p_vaddr);
    refuse("an address is in no segment");
  }

  // GNU_PROPERTY_X86_ISA_1_NEEDED of an NT_GNU_PROPERTY_TYPE_0 note (x86-64 psABI, "Program Property").
  void read_property(std::uint64_t offset, std::uint64_t size) {
    struct Property {
      Elf64_Word type, size;
    };
    constexpr Elf64_Word kIsaNeeded = 0xc0008002;
    const std::uint64_t end = offset + size;
    while (end - offset >= sizeof(Property) + sizeof(Elf64_Word)) {
      const auto property = structure<Property>(offset);
      offset += sizeof property;
      if (property.type == kIsaNeeded && property.size == sizeof(Elf64_Word)) {
        const auto levels = structure<Elf64_Word>(offset) & 0xfU;
        if (levels > 1) file_.cpu_floor = "x86-64-v" + std::to_string(std::bit_width(levels));
      }
      const std::uint64_t step = (std::uint64_t{property.size} + 7) / 8 * 8;
      if (step > end - offset) return;
      offset += step;
    }
  }

  // Looks for NT_GNU_ABI_TAG and NT_GNU_PROPERTY_TYPE_0 (LSB, "Note Sections"); a segment that does not look like notes
  // is ignored.
  void read_notes(const Elf64_Phdr& segment) {
    struct AbiTag {
      char name[4];
      Elf64_Word system, major, minor, patch;
    };
    if (segment.p_offset > source_.size()) return;
    const std::uint64_t align = segment.p_align == 8 ? 8 : 4;
    const auto padded = [align](std::uint64_t size) { return (size + align - 1) / align * align; };
    std::uint64_t offset = segment.p_offset;
    const std::uint64_t end = offset + std::min({segment.p_filesz, source_.size() - offset, kMaxNotes});
    while (end - offset >= sizeof(Elf64_Nhdr)) {
      const auto note = structure<Elf64_Nhdr>(offset);
      const std::uint64_t description = padded(sizeof note + std::uint64_t{note.n_namesz});
      const std::uint64_t size = description + padded(note.n_descsz);
      if (size > end - offset) return;
      if (note.n_type == NT_GNU_PROPERTY_TYPE_0 && note.n_namesz == 4 && align == 8 && file_.arch == "x86_64")
        read_property(offset + description, note.n_descsz);
      if (note.n_type == NT_GNU_ABI_TAG && note.n_namesz == 4 && note.n_descsz >= sizeof(AbiTag) - 4) {
        const auto tag = structure<AbiTag>(offset + sizeof note);
        if (std::memcmp(tag.name, "GNU", 4) == 0 && tag.system == ELF_NOTE_OS_LINUX)
          file_.kernel_floor =
              std::to_string(tag.major) + "." + std::to_string(tag.minor) + "." + std::to_string(tag.patch);
      }
      offset += size;
    }
  }

  void read_dynamic(const Elf64_Phdr& segment) {
    file_.dynamic = true;
    const std::uint64_t count = segment.p_filesz / sizeof(Elf64_Dyn);
    if (count > kMaxDynamic) refuse("its dynamic section is too long");
    std::map<Elf64_Sxword, std::uint64_t> values;
    std::vector<std::uint64_t> needed;
    for (std::uint64_t i = 0; i < count; ++i) {
      const auto item = structure<Elf64_Dyn>(segment.p_offset + i * sizeof(Elf64_Dyn));
      if (item.d_tag == DT_NULL) break;
      if (item.d_tag == DT_NEEDED)
        needed.push_back(item.d_un.d_val);
      else
        values[item.d_tag] = item.d_un.d_val;
    }
    file_.text_relocations = values.contains(DT_TEXTREL) || (values[DT_FLAGS] & DF_TEXTREL) != 0;
    if (!values.contains(DT_STRTAB)) return;
    strings_ = file_offset(values[DT_STRTAB]);
    const auto named = [&](Elf64_Sxword tag) { return values.contains(tag) ? string_at(values[tag]) : std::string(); };
    file_.soname = named(DT_SONAME);
    file_.rpath = named(DT_RPATH);
    file_.runpath = named(DT_RUNPATH);
    for (const std::uint64_t name : needed) file_.needed.push_back(string_at(name));
    if (values.contains(DT_VERNEED)) read_wanted(file_offset(values[DT_VERNEED]), values[DT_VERNEEDNUM]);
    if (values.contains(DT_VERDEF)) read_offered(file_offset(values[DT_VERDEF]), values[DT_VERDEFNUM]);
  }

  void read_wanted(std::uint64_t offset, std::uint64_t count) {
    int budget = kMaxVersions;
    for (std::uint64_t i = 0; i < count; ++i) {
      const auto need = structure<Elf64_Verneed>(offset);
      std::set<std::string>& versions = file_.wanted_versions[string_at(need.vn_file)];
      std::uint64_t aux = offset + need.vn_aux;
      for (Elf64_Half k = 0; k < need.vn_cnt; ++k) {
        spend(budget);
        const auto version = structure<Elf64_Vernaux>(aux);
        // ld.so starts a program whose weak versions are not there.
        if ((version.vna_flags & VER_FLG_WEAK) == 0) versions.insert(string_at(version.vna_name));
        if (version.vna_next == 0) break;
        aux += version.vna_next;
      }
      spend(budget);
      if (need.vn_next == 0) break;
      offset += need.vn_next;
    }
  }

  void read_offered(std::uint64_t offset, std::uint64_t count) {
    int budget = kMaxVersions;
    for (std::uint64_t i = 0; i < count; ++i) {
      spend(budget);
      const auto definition = structure<Elf64_Verdef>(offset);
      if (definition.vd_cnt > 0)
        file_.offered_versions.insert(string_at(structure<Elf64_Verdaux>(offset + definition.vd_aux).vda_name));
      if (definition.vd_next == 0) break;
      offset += definition.vd_next;
    }
  }

  void spend(int& budget) const {
    if (--budget < 0) refuse("it has too many symbol versions");
  }
  [[noreturn]] void refuse(const char* why) const {
    throw Error(ErrorCode::Format,
                {.what = std::string("an ELF file is not acceptable: ") + why, .where = source_.name()});
  }

  ByteSource& source_;
  ElfFile file_;
  std::vector<Elf64_Phdr> segments_;
  std::uint64_t strings_ = 0;  // file offset of the string table
  std::size_t text_read_ = 0;
};

}  // namespace

std::optional<GlibcVersion> ElfFile::glibc_floor() const {
  std::optional<GlibcVersion> floor;
  for (const auto& [library, versions] : wanted_versions) raise(floor, versions);
  return floor;
}

std::optional<GlibcVersion> ElfFile::glibc_offered() const {
  std::optional<GlibcVersion> newest;
  raise(newest, offered_versions);
  return newest;
}

std::optional<ElfFile> read_elf(ByteSource& source) {
  return ElfParser(source).parse();
}

}  // namespace sealift::bundle
