// SPDX-License-Identifier: Apache-2.0
// Follows the install steps of the packaging specifications ("Binary distribution format", "Entry points
// specification"). Programs start with lines that are both shell and Python, since an absolute shebang would break when
// the prefix moves, holds spaces or exceeds the kernel's 127 bytes.
#include "installer/store/unpack_wheel.hpp"

#include <algorithm>

#include "installer/store/patch_base.hpp"
#include "sealift/bundle/wheel/patched_wheel.hpp"

namespace sealift::installer {

using bundle::Entry;
using bundle::Error;
using bundle::ErrorCode;

namespace {

constexpr std::uint64_t kMaxScript = std::uint64_t{16} << 20;

// sh executes the python3 in the script's own folder; Python reads these lines as an unused string.
constexpr std::string_view kSelfLocating =
    "#!/bin/sh\n"
    "'''exec' \"$(dirname -- \"$(realpath -- \"$0\")\")\"/'python3' \"$0\" \"$@\"\n"
    "' '''\n";

std::string_view folder_of(bundle::Scheme scheme) {
  switch (scheme) {
    case bundle::Scheme::Scripts:
      return kScriptsFolder;
    case bundle::Scheme::Headers:
      return kHeadersFolder;
    case bundle::Scheme::Data:
      return kDataFolder;
    case bundle::Scheme::SitePackages:
      break;
  }
  return kSitePackagesFolder;
}

std::string joined(std::string_view folder, std::string_view path) {
  return std::string(folder).append("/").append(path);
}

std::vector<const bundle::WheelFile*> in_archive_order(const bundle::Wheel& wheel) {
  std::vector<const bundle::WheelFile*> files;
  for (const bundle::WheelFile& file : wheel.files()) files.push_back(&file);
  std::sort(files.begin(), files.end(),
            [](auto* a, auto* b) { return a->member.header_offset < b->member.header_offset; });
  return files;
}

// Where a file's own folders, or it, begin in the archive.
std::uint64_t begin_of(const bundle::ZipMember& member) {
  return member.folders.empty() ? member.header_offset : member.folders.front().header_offset;
}

std::string name_of(const Entry& entry) {
  const std::string& path = entry.path.text();
  return path.substr(path.rfind('/') + 1);
}

bundle::Wheel open_wheel(bundle::ByteSource& source, const bundle::VerifiedBundle& bundle, const Entry& entry) {
  if (entry.encoding == bundle::Encoding::Zstd)
    throw Error(ErrorCode::CannotCheck, {.what = "a wheel is stored compressed, which this version does not read",
                                         .where = entry.path.text(),
                                         .next = "use the sealift-install that came with the bundle"});
  const std::vector<bundle::Digest>& allowed = bundle.manifest().environment.startup_files;
  return bundle::Wheel(source, name_of(entry), {allowed.begin(), allowed.end()});
}

void fill_text(ItemWriter& writer, std::size_t number, FileOutput& output, std::string_view text) {
  writer.fill_file(number, output, bundle::sha256(bundle::as_bytes(text)),
                   [&](const bundle::ByteSink& sink) { sink(bundle::as_bytes(text)); });
}

}  // namespace

ClaimedWheel::ClaimedWheel(bundle::ByteSource& source, const bundle::VerifiedBundle& bundle, const Entry& entry,
                           ItemWriter& writer)
    : writer_(writer), name_(name_of(entry)), wheel_(open_wheel(source, bundle, entry)) {
  writer_.set_dist_info(wheel_.dist_info());
  writer_.add_folder(std::string(kSitePackagesFolder));
  const std::string installer = wheel_.dist_info() + "/INSTALLER";
  for (const bundle::WheelFile* file : in_archive_order(wheel_))
    if (file->scheme != bundle::Scheme::SitePackages || file->path != installer)
      files_.push_back({.packed = file,
                        .number = writer_.claim_file(joined(folder_of(file->scheme), file->path),
                                                     file->executable || file->python_script)});
  for (const bundle::EntryPoint& point : wheel_.entry_points())
    claim_own(joined(kScriptsFolder, point.script), true, script_of(point));
  claim_own(joined(kSitePackagesFolder, installer), false, "sealift\n");
}

void ClaimedWheel::claim_own(const std::string& path, bool executable, std::string text) {
  own_.push_back({.number = writer_.claim_file(path, executable), .text = std::move(text)});
}

std::vector<ClaimedWheel::Part> ClaimedWheel::parts(std::uint64_t piece) const {
  std::vector<Part> parts;
  for (std::size_t i = 0; i < files_.size(); ++i) {
    const bundle::ZipMember& member = files_[i].packed->member;
    const std::uint64_t begin = begin_of(member);
    const bool joins = !parts.empty() && member.end_offset - parts.back().offset <= piece;
    if (!joins) parts.push_back({.first = i, .count = 0, .offset = begin, .stored = 0, .size = 0});
    Part& part = parts.back();
    ++part.count;
    part.stored = member.end_offset - part.offset;
    part.size += member.size;
  }
  return parts;
}

void ClaimedWheel::write(const File& file, bundle::ByteSource& source, FileOutput& output) const {
  const bundle::WheelFile& packed = *file.packed;
  if (!packed.python_script) {
    writer_.fill_file(file.number, output, packed.sha256,
                      [&](const bundle::ByteSink& sink) { bundle::Wheel::unpack(source, packed, sink); });
    return;
  }
  if (packed.member.size > kMaxScript)
    throw Error(ErrorCode::Format, {.what = "a wheel's script is too large",
                                    .where = name_ + ", " + bundle::SafePath::printable(packed.path),
                                    .expected = "at most " + std::to_string(kMaxScript) + " bytes",
                                    .got = std::to_string(packed.member.size) + " bytes"});
  std::string text;
  bundle::Wheel::unpack(source, packed, [&text](bundle::ByteView piece) { text.append(bundle::as_text(piece)); });
  fill_text(writer_, file.number, output, relocatable_script(text));
}

void ClaimedWheel::write_own() {
  FileOutput output(writer_.disk());
  for (const Own& own : own_) fill_text(writer_, own.number, output, own.text);
}

std::string relocatable_script(std::string_view text) {
  const std::size_t line = text.find('\n');
  return std::string(kSelfLocating).append(line == text.npos ? std::string_view() : text.substr(line + 1));
}

std::string script_of(const bundle::EntryPoint& point) {
  const std::string first = point.function.substr(0, point.function.find('.'));
  return std::string(kSelfLocating) + "# -*- coding: utf-8 -*-\nimport sys\nfrom " + point.module + " import " + first +
         "\nif __name__ == \"__main__\":\n    sys.exit(" + point.function + "())\n";
}

namespace {

void unpack_patched_wheel(const bundle::VerifiedBundle& bundle, const bundle::Entry& entry, ItemWriter& writer,
                          const Store* store) {
  const std::unique_ptr<bundle::ByteSource> stored = bundle.stored(entry);
  bundle::PatchedWheel source(*stored, entry.size);
  ClaimedWheel wheel(source, bundle, entry, writer);
  std::optional<PatchBase> base;
  if (store != nullptr) base.emplace(*store, entry);
  FileOutput output(writer.disk());
  for (const ClaimedWheel::File& file : wheel.files()) {
    const std::optional<bundle::Digest> from = source.base_of(*file.packed);
    if (!from)
      wheel.write(file, source, output);
    else if (base)
      writer.fill_file(file.number, output, file.packed->sha256,
                       [&](const bundle::ByteSink& sink) { base->rebuild(source, *file.packed, *from, sink); });
    else
      writer.describe_file(file.number, file.packed->member.size, file.packed->sha256);
  }
  wheel.write_own();
}

}  // namespace

void unpack_wheel(const bundle::VerifiedBundle& bundle, const bundle::Entry& entry, ItemWriter& writer,
                  const Store* store) {
  if (entry.encoding == bundle::Encoding::Patch) return unpack_patched_wheel(bundle, entry, writer, store);
  const std::unique_ptr<bundle::ByteSource> source = bundle.stored(entry);
  ClaimedWheel wheel(*source, bundle, entry, writer);
  FileOutput output(writer.disk());
  for (const ClaimedWheel::File& file : wheel.files()) wheel.write(file, *source, output);
  wheel.write_own();
}

}  // namespace sealift::installer
