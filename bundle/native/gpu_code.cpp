// SPDX-License-Identifier: Apache-2.0
// Section table -> .nv_fatbin -> headers of fat binaries -> headers of their images; see gpu_code.hpp.
#include "sealift/bundle/native/gpu_code.hpp"

#include <elf.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <span>

#include "sealift/bundle/core/error.hpp"

namespace sealift::bundle {
namespace {

constexpr std::uint32_t kMagic = 0xBA55ED50;
constexpr std::uint64_t kFlagArchitecture = 0x100000, kFlagFamily = 0x200000;
constexpr std::size_t kMaxImages = std::size_t{1} << 20;
constexpr std::size_t kMaxKinds = 4096;                         // of sets of images in one file
constexpr std::uint64_t kMaxPadding = std::uint64_t{64} << 10;  // zeros between fat binaries
// A cubin without a kernel has at most 2248 bytes, one with an empty kernel at least 2856 (nvcc 13.0, sm_75 to sm_100).
constexpr std::uint64_t kSmallestKernel = 2560;

struct BinaryHeader {
  std::uint32_t magic;
  std::uint16_t version;
  std::uint16_t header_size;
  std::uint64_t size;  // of what follows the header
};
static_assert(sizeof(BinaryHeader) == 16);

struct ImageHeader {
  std::uint16_t kind;
  std::uint16_t version;
  std::uint32_t header_size;
  std::uint64_t size;  // of what follows the header
  std::uint32_t compressed_size, options;
  std::uint16_t minor, major;
  std::uint32_t architecture, name_offset, name_size;
  std::uint64_t flags, zero, uncompressed_size;  // the last is 0 where nothing is compressed
};
static_assert(sizeof(ImageHeader) == 64);

class GpuCodeReader {
 public:
  explicit GpuCodeReader(ByteSource& source) : source_(source) {}

  GpuCode read() {
    char ident[EI_NIDENT] = {};
    if (source_.size() < sizeof(Elf64_Ehdr)) return {};
    source_.read_exactly(0, std::as_writable_bytes(std::span(ident)));
    if (std::memcmp(ident, ELFMAG, SELFMAG) != 0 || ident[EI_CLASS] != ELFCLASS64 || ident[EI_DATA] != ELFDATA2LSB)
      return {};
    const auto header = structure<Elf64_Ehdr>(0);
    if (header.e_shoff == 0 || header.e_shentsize != sizeof(Elf64_Shdr)) return {};
    // Where there are more than fit, the first section says how many (System V ABI, "Sections").
    const auto first = section(header.e_shoff, 0);
    const std::uint64_t count = header.e_shnum != 0 ? header.e_shnum : first.sh_size;
    const std::uint64_t names = header.e_shstrndx != SHN_XINDEX ? header.e_shstrndx : first.sh_link;
    if (count > source_.size() / sizeof(Elf64_Shdr) || names >= count) refuse("its section table is cut short");
    const std::uint64_t strings = section(header.e_shoff, names).sh_offset;
    for (std::uint64_t i = 0; i < count; ++i) {
      const Elf64_Shdr one = section(header.e_shoff, i);
      if (one.sh_type == SHT_PROGBITS && has_name(strings, one.sh_name)) read_section(one);
    }
    return std::move(code_);
  }

 private:
  template <class T>
  T structure(std::uint64_t offset) {
    T value;
    source_.read_exactly(offset, std::as_writable_bytes(std::span(&value, 1)));
    return value;
  }

  Elf64_Shdr section(std::uint64_t table, std::uint64_t index) {
    if (table > source_.size()) refuse("its section table is cut short");
    return structure<Elf64_Shdr>(table + index * sizeof(Elf64_Shdr));
  }

  bool has_name(std::uint64_t strings, std::uint32_t index) {
    static constexpr char kName[] = ".nv_fatbin";
    char name[sizeof kName] = {};
    if (strings >= source_.size() || source_.size() - strings < index + sizeof name) return false;
    source_.read_exactly(strings + index, std::as_writable_bytes(std::span(name)));
    return std::memcmp(name, kName, sizeof kName) == 0;
  }

  void read_section(const Elf64_Shdr& section) {
    if (section.sh_offset > source_.size() || section.sh_size > source_.size() - section.sh_offset)
      refuse("its section .nv_fatbin runs past its end");
    std::uint64_t at = section.sh_offset, padding = 0;
    const std::uint64_t end = at + section.sh_size;
    while (end - at >= sizeof(BinaryHeader)) {
      const auto header = structure<BinaryHeader>(at);
      if (header.magic == 0 && (padding += 8) <= kMaxPadding) {
        at += 8;
        continue;
      }
      if (header.magic != kMagic) refuse("a fat binary does not begin as one");
      if (header.version != 1 || header.header_size < sizeof header) refuse("a fat binary is of another version");
      if (header.header_size > end - at || header.size > end - at - header.header_size)
        refuse("a fat binary runs past its section");
      read_binary(at + header.header_size, header.size);
      const std::uint64_t next = at + header.header_size + header.size;
      at = std::min(end, next + (8 - (next - section.sh_offset) % 8) % 8);
    }
  }

  void read_binary(std::uint64_t at, std::uint64_t size) {
    GpuImages images;
    std::uint64_t largest = 0;
    bool compiled = false;
    for (const std::uint64_t end = at + size; at < end;) {
      if (++images_ > kMaxImages) refuse("it has too many images for GPUs");
      if (end - at < sizeof(ImageHeader)) refuse("a fat binary's image is cut short");
      const auto header = structure<ImageHeader>(at);
      if (header.header_size < sizeof header || header.header_size > end - at ||
          header.size > end - at - header.header_size)
        refuse("an image runs past its fat binary");
      images.insert(image(header));
      compiled = compiled || header.kind == 2;
      largest = std::max(largest, std::max(header.size, header.uncompressed_size));
      at += header.header_size + header.size;
    }
    if (images.empty() || (compiled && largest < kSmallestKernel)) return;
    ++code_.binaries[std::move(images)];
    if (code_.binaries.size() > kMaxKinds) refuse("its fat binaries differ more than any real ones");
  }

  static GpuImage image(const ImageHeader& header) {
    if ((header.kind != 1 && header.kind != 2) || header.architecture < 10 || header.architecture > 9999)
      return {.kind = GpuImage::Kind::Other};
    return {.architecture = header.architecture,
            .kind = header.kind == 1 ? GpuImage::Kind::Ptx : GpuImage::Kind::Code,
            .scope = (header.flags & kFlagArchitecture) != 0 ? GpuImage::Scope::Architecture
                     : (header.flags & kFlagFamily) != 0     ? GpuImage::Scope::Family
                                                             : GpuImage::Scope::Forward};
  }

  [[noreturn]] void refuse(const char* why) const {
    throw Error(ErrorCode::Format, {.what = std::string("an ELF file's code for GPUs is not acceptable: ") + why,
                                    .where = source_.name()});
  }

  ByteSource& source_;
  GpuCode code_;
  std::size_t images_ = 0;
};

constexpr std::string_view kOther = "other", kCode = "sm_", kPtx = "compute_";

}  // namespace

std::string GpuImage::text() const {
  if (kind == Kind::Other) return std::string(kOther);
  return std::string(kind == Kind::Ptx ? kPtx : kCode) + std::to_string(architecture) +
         (scope == Scope::Architecture ? "a"
          : scope == Scope::Family     ? "f"
                                       : "");
}

std::optional<GpuImage> GpuImage::parse(std::string_view text) {
  GpuImage image;
  if (text == kOther) return GpuImage{.kind = Kind::Other};
  if (text.starts_with(kPtx))
    image.kind = Kind::Ptx;
  else if (!text.starts_with(kCode))
    return std::nullopt;
  const std::string_view rest = text.substr((image.kind == Kind::Ptx ? kPtx : kCode).size());
  const auto [end, fault] = std::from_chars(rest.data(), rest.data() + rest.size(), image.architecture);
  const std::string_view letter(end, static_cast<std::size_t>(rest.data() + rest.size() - end));
  image.scope = letter == "a" ? Scope::Architecture : letter == "f" ? Scope::Family : Scope::Forward;
  if (fault != std::errc() || image.architecture > 9999 || image.text() != text) return std::nullopt;
  return image;
}

bool GpuImage::runs_on(unsigned capability) const {
  if (kind == Kind::Other) return true;
  if (scope == Scope::Architecture) return capability == architecture;
  const bool same_major = capability / 10 == architecture / 10;
  return capability >= architecture && (same_major || (kind == Kind::Ptx && scope == Scope::Forward));
}

bool runs_on(const GpuImages& images, unsigned capability) {
  return std::any_of(images.begin(), images.end(), [=](const GpuImage& image) { return image.runs_on(capability); });
}

std::string text_of(const GpuImages& images) {
  std::string text;
  for (const auto kind : {GpuImage::Kind::Code, GpuImage::Kind::Ptx, GpuImage::Kind::Other})
    for (const GpuImage& image : images)
      if (image.kind == kind) text += (text.empty() ? "" : " ") + image.text();
  return text;
}

std::optional<GpuImages> parse_gpu_images(std::string_view text) {
  GpuImages images;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    const std::optional<GpuImage> image = GpuImage::parse(text.substr(0, end));
    if (!image) return std::nullopt;
    images.insert(*image);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return images;
}

std::size_t GpuCode::count() const {
  std::size_t all = 0;
  for (const auto& [images, times] : binaries) all += times;
  return all;
}

std::size_t GpuCode::count_on(unsigned capability) const {
  std::size_t there = 0;
  for (const auto& [images, times] : binaries) there += bundle::runs_on(images, capability) ? times : 0;
  return there;
}

GpuImages GpuCode::images() const {
  GpuImages all;
  for (const auto& [images, times] : binaries) all.insert(images.begin(), images.end());
  return all;
}

GpuCode read_gpu_code(ByteSource& elf) {
  return GpuCodeReader(elf).read();
}

}  // namespace sealift::bundle
