// SPDX-License-Identifier: Apache-2.0
// Tables are read whole, each within the file, since their entries point back and forth; see elf_symbols.hpp.
#include "sealift/bundle/native/elf_symbols.hpp"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <span>

#include "sealift/bundle/core/digest.hpp"
#include "sealift/bundle/core/error.hpp"
#include "sealift/bundle/native/system_libraries.hpp"

namespace sealift::bundle {
namespace {

constexpr std::uint64_t kMaxSymbols = std::uint64_t{8} << 20;
constexpr std::uint64_t kMaxStrings = std::uint64_t{1} << 30;
constexpr std::uint64_t kMaxVersions = 65536;

class SymbolReader {
 public:
  explicit SymbolReader(ByteSource& source) : source_(source) {}

  ElfSymbols read() {
    if (!read_header() || !values_.contains(DT_SYMTAB) || !values_.contains(DT_STRTAB)) return {};
    const std::uint64_t count = std::max(hashed_symbols(), listed_symbols());
    if (count > kMaxSymbols) refuse("it has more symbols than any real one");
    read_strings();
    read_glibc_versions();
    const Bytes symbols = source_.read(file_offset(values_[DT_SYMTAB]), count * sizeof(Elf64_Sym));
    const Bytes versions = values_.contains(DT_VERSYM)
                               ? source_.read(file_offset(values_[DT_VERSYM]), count * sizeof(Elf64_Half))
                               : Bytes();
    for (std::uint64_t i = 1; i < count; ++i)
      add(item<Elf64_Sym>(symbols, i), versions.empty() ? Elf64_Half{VER_NDX_GLOBAL} : item<Elf64_Half>(versions, i));
    sort(found_.defined);
    sort(found_.undefined);
    return std::move(found_);
  }

 private:
  template <class T>
  T structure(std::uint64_t offset) {
    T value;
    source_.read_exactly(offset, std::as_writable_bytes(std::span(&value, 1)));
    return value;
  }
  template <class T>
  static T item(const Bytes& table, std::uint64_t index) {
    T value;
    std::memcpy(&value, table.data() + index * sizeof(T), sizeof(T));
    return value;
  }
  template <class T>
  static void sort(std::vector<T>& items) {
    std::sort(items.begin(), items.end());
    items.erase(std::unique(items.begin(), items.end()), items.end());
  }

  // Segments and the dynamic section's values; false for what has none.
  bool read_header() {
    unsigned char ident[EI_NIDENT] = {};
    if (source_.size() < sizeof(Elf64_Ehdr)) return false;
    source_.read_exactly(0, std::as_writable_bytes(std::span(ident)));
    if (std::memcmp(ident, ELFMAG, SELFMAG) != 0 || ident[EI_CLASS] != ELFCLASS64 || ident[EI_DATA] != ELFDATA2LSB)
      return false;
    const auto header = structure<Elf64_Ehdr>(0);
    if (header.e_phnum > 0 && header.e_phentsize != sizeof(Elf64_Phdr)) return false;
    for (std::uint16_t i = 0; i < header.e_phnum; ++i)
      segments_.push_back(structure<Elf64_Phdr>(header.e_phoff + std::uint64_t{i} * sizeof(Elf64_Phdr)));
    for (const Elf64_Phdr& segment : segments_)
      if (segment.p_type == PT_DYNAMIC) read_dynamic(segment);
    return !values_.empty();
  }

  void read_dynamic(const Elf64_Phdr& segment) {
    const std::uint64_t count = segment.p_filesz / sizeof(Elf64_Dyn);
    if (count > kMaxVersions) refuse("its dynamic section is too long");
    for (std::uint64_t i = 0; i < count; ++i) {
      const auto one = structure<Elf64_Dyn>(segment.p_offset + i * sizeof(Elf64_Dyn));
      if (one.d_tag == DT_NULL) break;
      values_[one.d_tag] = one.d_un.d_val;
    }
  }

  std::uint64_t file_offset(std::uint64_t address) const {
    for (const Elf64_Phdr& segment : segments_)
      if (segment.p_type == PT_LOAD && address >= segment.p_vaddr && address - segment.p_vaddr < segment.p_filesz)
        return segment.p_offset + (address - segment.p_vaddr);
    refuse("an address is in no segment");
  }

  // How many symbols there are, as the section table says it: the hash table of a program that defines nothing does not
  // count what it needs.
  std::uint64_t listed_symbols() {
    const auto header = structure<Elf64_Ehdr>(0);
    if (header.e_shoff == 0 || header.e_shentsize != sizeof(Elf64_Shdr) || header.e_shoff > source_.size()) return 0;
    const std::uint64_t table = file_offset(values_[DT_SYMTAB]);
    for (std::uint64_t i = 0; i < header.e_shnum; ++i) {
      const auto section = structure<Elf64_Shdr>(header.e_shoff + i * sizeof(Elf64_Shdr));
      if (section.sh_type == SHT_DYNSYM && section.sh_offset == table) return section.sh_size / sizeof(Elf64_Sym);
    }
    return 0;
  }

  // What the hash table says: DT_HASH has as many chains as symbols, DT_GNU_HASH ends the last chain with an odd hash.
  std::uint64_t hashed_symbols() {
    struct Words {
      Elf64_Word first, second;
    };
    if (values_.contains(DT_HASH)) return structure<Words>(file_offset(values_[DT_HASH])).second;
    if (!values_.contains(DT_GNU_HASH)) return 0;
    struct GnuHash {
      Elf64_Word buckets, first_symbol, bloom_words, shift;
    };
    std::uint64_t at = file_offset(values_[DT_GNU_HASH]);
    const auto head = structure<GnuHash>(at);
    at += sizeof head + std::uint64_t{head.bloom_words} * sizeof(Elf64_Xword);
    const Bytes buckets = source_.read(at, std::uint64_t{head.buckets} * sizeof(Elf64_Word));
    std::uint64_t last = 0;
    for (std::uint64_t i = 0; i < head.buckets; ++i) last = std::max<std::uint64_t>(last, item<Elf64_Word>(buckets, i));
    if (last < head.first_symbol) return head.first_symbol;
    const std::uint64_t chains = at + std::uint64_t{head.buckets} * sizeof(Elf64_Word);
    for (; last <= kMaxSymbols; ++last)
      if ((structure<Elf64_Word>(chains + (last - head.first_symbol) * sizeof(Elf64_Word)) & 1U) != 0) break;
    return last + 1;
  }

  void read_strings() {
    const std::uint64_t size = values_[DT_STRSZ];
    if (size > kMaxStrings) refuse("its names are longer than any real one's");
    strings_ = source_.read(file_offset(values_[DT_STRTAB]), size);
  }

  std::string_view string_at(std::uint64_t index) const {
    const std::string_view all = as_text(strings_);
    const std::size_t end = index < all.size() ? all.find('\0', index) : all.npos;
    if (end == all.npos || end - index > 65536) refuse("a name runs past its end");
    return all.substr(index, end - index);
  }

  // The indexes of versions that a library of glibc's offers.
  void read_glibc_versions() {
    if (!values_.contains(DT_VERNEED)) return;
    std::uint64_t offset = file_offset(values_[DT_VERNEED]);
    std::uint64_t budget = kMaxVersions;
    for (std::uint64_t i = 0; i < values_[DT_VERNEEDNUM]; ++i) {
      const auto need = structure<Elf64_Verneed>(offset);
      const bool glibc = is_glibc_library(string_at(need.vn_file));
      std::uint64_t aux = offset + need.vn_aux;
      for (Elf64_Half k = 0; k < need.vn_cnt; ++k) {
        if (budget-- == 0) refuse("it has too many symbol versions");
        const auto version = structure<Elf64_Vernaux>(aux);
        if (glibc) of_glibc_.insert(version.vna_other & 0x7fffU);
        if (version.vna_next == 0) break;
        aux += version.vna_next;
      }
      if (need.vn_next == 0) break;
      if (budget-- == 0) refuse("it has too many symbol versions");
      offset += need.vn_next;
    }
  }

  void add(const Elf64_Sym& symbol, Elf64_Half version) {
    const unsigned char binding = ELF64_ST_BIND(symbol.st_info);
    if (symbol.st_shndx != SHN_UNDEF) {
      if (binding != STB_LOCAL) found_.defined.push_back(symbol_hash(string_at(symbol.st_name)));
    } else if (binding == STB_GLOBAL && !of_glibc_.contains(version & 0x7fffU)) {
      found_.undefined.emplace_back(string_at(symbol.st_name));
      if ((text_ += found_.undefined.back().size()) > kMaxStrings / 8) refuse("it wants more names than any real one");
    }
  }

  [[noreturn]] void refuse(const char* why) const {
    throw Error(ErrorCode::Format,
                {.what = std::string("an ELF file's symbols are not acceptable: ") + why, .where = source_.name()});
  }

  ByteSource& source_;
  ElfSymbols found_;
  std::vector<Elf64_Phdr> segments_;
  std::map<Elf64_Sxword, std::uint64_t> values_;
  std::set<unsigned> of_glibc_;
  Bytes strings_;
  std::size_t text_ = 0;
};

}  // namespace

std::uint64_t symbol_hash(std::string_view name) {
  const Digest digest = sha256(as_bytes(name));
  return std::stoull(digest.hex().substr(0, 16), nullptr, 16);
}

bool ElfSymbols::defines(std::uint64_t hash) const {
  return std::binary_search(defined.begin(), defined.end(), hash);
}

ElfSymbols read_elf_symbols(ByteSource& elf) {
  return SymbolReader(elf).read();
}

}  // namespace sealift::bundle
