// SPDX-License-Identifier: Apache-2.0
// Follows the install steps of the packaging specifications ("Binary distribution format", "Entry points
// specification"). Programs start with lines that are both shell and Python, since an absolute shebang would break when
// the prefix moves, holds spaces or exceeds the kernel's 127 bytes.
#include "installer/store/unpack_wheel.hpp"

#include <algorithm>

namespace sealift::installer {

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

void add_wheel_file(bundle::Wheel& wheel, const bundle::WheelFile& file, std::string_view name, ItemWriter& writer) {
  const std::string path = joined(folder_of(file.scheme), file.path);
  if (!file.python_script) {
    writer.add_file(path, file.executable, file.sha256,
                    [&](const bundle::ByteSink& sink) { wheel.unpack(file, sink); });
    return;
  }
  if (file.member.size > kMaxScript)
    throw Error(ErrorCode::Format, {.what = "a wheel's script is too large",
                                    .where = std::string(name) + ", " + bundle::SafePath::printable(file.path),
                                    .expected = "at most " + std::to_string(kMaxScript) + " bytes",
                                    .got = std::to_string(file.member.size) + " bytes"});
  std::string text;
  wheel.unpack(file, [&text](bundle::ByteView piece) { text.append(bundle::as_text(piece)); });
  writer.add_text(path, true, relocatable_script(text));
}

}  // namespace

std::string relocatable_script(std::string_view text) {
  const std::size_t line = text.find('\n');
  return std::string(kSelfLocating).append(line == text.npos ? std::string_view() : text.substr(line + 1));
}

std::string script_of(const bundle::EntryPoint& point) {
  const std::string first = point.function.substr(0, point.function.find('.'));
  return std::string(kSelfLocating) + "# -*- coding: utf-8 -*-\nimport sys\nfrom " + point.module + " import " + first +
         "\nif __name__ == \"__main__\":\n    sys.exit(" + point.function + "())\n";
}

void unpack_wheel(const bundle::VerifiedBundle& bundle, const bundle::Entry& entry, ItemWriter& writer) {
  const std::string& path = entry.path.text();
  const std::string name = path.substr(path.rfind('/') + 1);
  if (entry.encoding != bundle::Encoding::Identity)
    throw Error(ErrorCode::CannotCheck, {.what = "a wheel is stored compressed, which this version does not read",
                                         .where = path,
                                         .next = "use the sealift-install that came with the bundle"});
  const std::unique_ptr<bundle::ByteSource> source = bundle.stored(entry);
  const std::vector<bundle::Digest>& allowed = bundle.manifest().environment.startup_files;
  bundle::Wheel wheel(*source, name, {allowed.begin(), allowed.end()});
  writer.set_dist_info(wheel.dist_info());
  writer.add_folder(std::string(kSitePackagesFolder));
  const std::string installer = wheel.dist_info() + "/INSTALLER";
  for (const bundle::WheelFile* file : in_archive_order(wheel))
    if (file->scheme != bundle::Scheme::SitePackages || file->path != installer)
      add_wheel_file(wheel, *file, name, writer);
  for (const bundle::EntryPoint& point : wheel.entry_points())
    writer.add_text(joined(kScriptsFolder, point.script), true, script_of(point));
  writer.add_text(joined(kSitePackagesFolder, installer), false, "sealift\n");
}

}  // namespace sealift::installer
