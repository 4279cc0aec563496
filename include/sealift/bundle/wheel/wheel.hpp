// SPDX-License-Identifier: Apache-2.0
// A wheel read as the packaging specification says: what it holds, where each file goes, which digest each must have.
// Packager and installer both use it, so a wheel that cannot be installed is refused before it crosses the gap.
// Source: packaging.python.org, "Binary distribution format" and "Entry points specification".
#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "sealift/bundle/archive/zip.hpp"
#include "sealift/bundle/core/digest.hpp"
#include "sealift/bundle/wheel/scheme.hpp"
#include "sealift/bundle/wheel/wheel_name.hpp"

namespace sealift::bundle {

struct WheelFile {
  ZipMember member;
  Scheme scheme = Scheme::SitePackages;
  std::string path;  // below the scheme's folder; a SafePath's text
  Digest sha256;
  // RECORD has no digest of it (selenium 4.46.0 has files without a row), or another size, as where a build tool
  // changed a library after it wrote RECORD (pynvvideocodec 2.0.4): its row counts for nothing, and sha256 is of the
  // bytes that the wheel holds. An installed RECORD is made from these fields, so it is right.
  bool misdescribed = false;
  bool executable = false;
  bool python_script = false;  // starts with "#!python" and gets the environment's interpreter
};

struct EntryPoint {
  std::string script;    // the program's name
  std::string module;    // what it imports
  std::string function;  // what it calls, attributes joined by '.'
};

// What a wheel's .pth files do when Python starts, where that is known and harmless.
struct StartupEffects {
  std::vector<std::string> folders;     // below site-packages, added to the module path
  std::vector<std::string> namespaces;  // packages such as "google.cloud", made without an __init__.py
};

inline constexpr std::size_t kMaxMisdescribed = 100;  // files of other sizes: a RECORD with more is another wheel's

class Wheel {
 public:
  // Reads directory, WHEEL, RECORD, METADATA and entry points; throws Format, Conflict or CannotCheck, also for what no
  // wheel may place (wheel_places.hpp) or run when Python starts, but for .pth files with one of the digests `allowed`.
  // `source` must outlive it.
  Wheel(ByteSource& source, std::string_view file_name, const std::set<Digest>& allowed = {});

  const WheelName& name() const { return name_; }
  const std::string& dist_info() const { return dist_info_; }     // NAME-VERSION.dist-info
  const std::string& metadata() const { return metadata_; }       // METADATA, as UTF-8 where it is Latin-1
  const std::vector<WheelFile>& files() const { return files_; }  // all that is installed but RECORD
  // Rows of RECORD whose file the wheel does not have; they say nothing of what is installed.
  std::size_t idle_rows() const { return idle_rows_; }
  // Compiled files in __pycache__, which are never installed: that one is of its source is the wheel's own word (PEP
  // 552 puts it into the file), and Python would run it in place of what people read.
  std::size_t left_out_bytecode() const { return left_out_bytecode_; }
  const std::vector<EntryPoint>& entry_points() const { return entry_points_; }

  const StartupEffects& startup() const { return startup_; }
  const std::vector<std::string>& allowed_startup_files() const { return allowed_startup_files_; }  // by their path

  // The value of a METADATA header such as "Requires-Python", if it is there.
  std::optional<std::string> metadata_field(std::string_view field) const;

  // The first `count` bytes of a file, or all when there are fewer; not checked against RECORD.
  std::string start_of(const WheelFile& file, std::size_t count) { return zip_.start_of(file.member, count); }

  // Streams one file and throws Digest unless its bytes are what RECORD promises. What the sink got must not be
  // used before this returns.
  void extract(const WheelFile& file, const ByteSink& sink);
  // The same without a digest, for bytes of checked chunks: size and CRC-32 tell a fault of the unpacking. That RECORD
  // is right was seen when the wheel was packed, and its rows are signed as all of it is. By way of any source of the
  // wheel's bytes: for several threads, each with a source of its own.
  static void unpack(ByteSource& source, const WheelFile& file, const ByteSink& sink) {
    ZipReader::extract_from(source, file.member, sink);
  }

 private:
  class Parser;  // fills the fields below

  ZipReader zip_;
  std::string where_;
  WheelName name_;
  std::string dist_info_;
  std::string metadata_;
  std::vector<WheelFile> files_;
  std::vector<EntryPoint> entry_points_;
  StartupEffects startup_;
  std::vector<std::string> allowed_startup_files_;
  std::size_t left_out_bytecode_ = 0, idle_rows_ = 0;
};

}  // namespace sealift::bundle
