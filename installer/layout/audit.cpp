// SPDX-License-Identifier: Apache-2.0
// Reads the disk and not the memory of what was built: lstat for every path, a listing of every folder, and RECORD read
// back from its file by a parser that shares nothing with its writer.
#include "installer/layout/audit.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "sealift/bundle/core/byte_source.hpp"
#include "sealift/bundle/core/file.hpp"
#include "sealift/bundle/core/parallel_for.hpp"

namespace sealift::installer {

namespace fs = std::filesystem;
using bundle::Error;
using bundle::ErrorCode;

namespace {

constexpr std::uint64_t kMaxRecord = std::uint64_t{256} << 20;

[[noreturn]] void refuse(const fs::path& where, std::string expected, std::string got) {
  throw Error(ErrorCode::Digest,
              {.what = "the built generation is not what it should be",
               .where = where.string(),
               .expected = std::move(expected),
               .got = std::move(got),
               .next = "check for a failing disk or another program that writes here; then run apply again"});
}

// Calls take(name) for each name in a folder, in the order of the listing.
template <class Take>
void list_names(const std::string& folder, const Take& take) {
  struct Closer {
    void operator()(DIR* open) const { ::closedir(open); }
  };
  const std::unique_ptr<DIR, Closer> open(::opendir(folder.c_str()));
  if (!open) bundle::throw_errno("a folder cannot be listed", folder);
  for (;;) {
    errno = 0;
    const dirent* const entry = ::readdir(open.get());
    if (entry == nullptr && errno != 0) bundle::throw_errno("a folder cannot be listed", folder);
    if (entry == nullptr) return;
    if (const std::string_view name = entry->d_name; name != "." && name != "..") take(name);
  }
}

// How many names each folder of the layout must have; "" is the generation's own folder.
using NameCounts = std::unordered_map<std::string_view, std::size_t>;

NameCounts count_names(const Layout& layout) {
  NameCounts counts{{"", 0}};
  for (const auto& [path, place] : layout) {
    const std::size_t slash = path.rfind('/');
    ++counts[slash == path.npos ? std::string_view() : std::string_view(path).substr(0, slash)];
    if (place.type == Place::Type::Folder) counts.try_emplace(path, 0);
  }
  return counts;
}

// Audits one thread's share of the paths. Paths are joined as text and resolved from the folder that was opened last:
// parsing tens of thousands of them costs more than the system calls.
class Auditor {
 public:
  Auditor(const Layout& layout, const NameCounts& counts, const bundle::Environment& environment,
          const fs::path& generation)
      : layout_(layout),
        counts_(counts),
        site_packages_(environment.site_packages.text()),
        generation_(generation.string()) {}

  const Audit& found() const { return audit_; }
  // Where the linked files' stamps are kept, and what they are now.
  const std::vector<std::pair<Stamp*, Stamp>>& stamps() const { return stamps_; }

  void check(const std::string& path, const Place& place) {
    const struct stat status = status_of(path);
    const std::string there = generation_ + "/" + path;
    switch (place.type) {
      case Place::Type::Folder:
        if (!S_ISDIR(status.st_mode)) refuse(there, "a folder", "something else");
        check_nothing_extra(path);
        ++audit_.folders;
        return;
      case Place::Type::Link:
        if (!S_ISLNK(status.st_mode) || fs::read_symlink(there) != place.text)
          refuse(there, "a symbolic link to " + place.text, "something else");
        ++audit_.links;
        return;
      case Place::Type::File:
      case Place::Type::Text:
        check_file(there, place, status);
        if (place.type == Place::Type::Text) check_record(there);
    }
  }

  // In a folder of the layout, or "". Each expected name is checked by itself, so counting finds an extra one. Extra
  // folders are not entered: they were found in their parent.
  void check_nothing_extra(const std::string& folder) const {
    const std::string there = generation_ + "/" + folder;
    std::size_t count = 0;
    list_names(there, [&](std::string_view) { ++count; });
    if (count == counts_.at(folder)) return;
    list_names(there, [&](std::string_view name) {
      const std::string path = (folder.empty() ? "" : folder + "/") + std::string(name);
      if (!layout_.contains(path)) refuse(generation_ + "/" + path, "nothing", "something that no entry brings");
    });
  }

 private:
  void renew_stamp(const std::string& there, const StoredFile& file, const Stamp& now) {
    if (file.stamp == nullptr) return;
    // An overlay gives a file of a layer below another inode when it gets another name; then its bytes tell.
    if (!now.same_bytes(*file.stamp) && digest_of(there) != file.sha256)
      refuse(there, "the file that was checked before it was linked", "one that was written since");
    stamps_.emplace_back(file.stamp, now);
  }

  static bundle::Digest digest_of(const std::string& path) {
    bundle::FileSource source{fs::path(path)};
    bundle::Hasher hasher;
    for (std::uint64_t offset = 0; offset < source.size();) {
      const bundle::ByteView piece = source.view(offset, std::size_t{1} << 20);
      hasher.update(piece);
      offset += piece.size();
    }
    return hasher.finish();
  }

  struct stat status_of(const std::string& path) {
    const std::size_t slash = path.rfind('/');
    const std::string_view folder = slash == path.npos ? std::string_view() : std::string_view(path).substr(0, slash);
    if (!opened_ || folder != opened_name_) {
      opened_name_ = folder;
      const std::string there = generation_ + "/" + opened_name_;
      opened_ = bundle::Descriptor(::open(there.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
      if (!opened_) refuse(there, "to be there", std::strerror(errno));
    }
    struct stat status {};
    const char* const name = path.c_str() + (slash == path.npos ? 0 : slash + 1);
    if (::fstatat(opened_.get(), name, &status, AT_SYMLINK_NOFOLLOW) != 0)
      refuse(generation_ + "/" + path, "to be there", std::strerror(errno));
    return status;
  }

  void check_file(const std::string& there, const Place& place, const struct stat& status) {
    if (!S_ISREG(status.st_mode)) refuse(there, "a file", "something else");
    if (static_cast<std::uint64_t>(status.st_size) != place.file.size)
      refuse(there, std::to_string(place.file.size) + " bytes", std::to_string(status.st_size) + " bytes");
    if (((status.st_mode & 0100) != 0) != place.file.executable)
      refuse(there, place.file.executable ? "a program" : "no program", "the other");
    ++audit_.files;
    audit_.bytes += place.file.size;
    if (place.type == Place::Type::File && status.st_nlink > 1) {  // a copy has only this name
      ++audit_.shared;
      renew_stamp(there, place.file, stamp_of(status));
    }
  }

  // path,sha256=DIGEST,SIZE with the path relative to site-packages.
  void check_record(const std::string& record) {
    const std::string text = bundle::read_text(record, kMaxRecord);
    std::uint64_t rows = 0;
    for (std::size_t begin = 0; begin < text.size(); ++rows) {
      const std::size_t end = text.find('\n', begin);
      if (end == text.npos) refuse(record, "whole rows", "a row that is cut short");
      check_row(record, std::string_view(text).substr(begin, end - begin));
      begin = end + 1;
    }
    ++audit_.wheels;
    audit_.record_rows += rows;
  }

  void check_row(const std::string& record, std::string_view row) {
    const std::size_t second = row.rfind(','), first = row.rfind(',', second - 1);
    if (second == row.npos || first == row.npos) refuse(record, "path,digest,size", std::string(row));
    std::string path(row.substr(0, first));
    if (path.starts_with('"')) path = unquoted(path);
    place_.assign(site_packages_).append("/").append(path);
    if (path.starts_with("../")) place_ = fs::path(place_).lexically_normal().generic_string();
    const auto found = next_ != layout_.end() && next_->first == place_ ? next_ : layout_.find(place_);
    if (found == layout_.end()) refuse(record, "rows of files that are there", path);
    next_ = std::next(found);
    if (record.ends_with(place_) && generation_ + "/" + place_ == record)
      return;  // its own row has neither digest nor size
    const StoredFile& file = found->second.file;
    expected_.assign("sha256=").append(bundle::to_base64(file.sha256.bytes, bundle::Base64::UrlNoPad)).append(",");
    expected_.append(std::to_string(file.size));
    if (row.substr(first + 1) != expected_) refuse(record, path + "," + expected_, std::string(row));
  }

  static std::string unquoted(const std::string& field) {
    std::string out;
    for (std::size_t i = 1; i + 1 < field.size(); ++i) {
      out.push_back(field[i]);
      if (field[i] == '"') ++i;  // doubled
    }
    return out;
  }

  const Layout& layout_;
  const NameCounts& counts_;
  const std::string site_packages_;
  const std::string generation_;
  std::string opened_name_;  // the folder of `opened_`
  bundle::Descriptor opened_;
  std::string place_, expected_;                 // of one row; members, so that their memory is reused
  Layout::const_iterator next_ = layout_.end();  // rows mostly follow each other as the layout does
  Audit audit_;
  std::vector<std::pair<Stamp*, Stamp>> stamps_;
};

}  // namespace

Audit& Audit::operator+=(const Audit& other) {
  wheels += other.wheels;
  files += other.files;
  links += other.links;
  folders += other.folders;
  bytes += other.bytes;
  record_rows += other.record_rows;
  shared += other.shared;
  return *this;
}

Audit audit_generation(const Layout& layout, const bundle::Environment& environment, const fs::path& generation,
                       unsigned threads) {
  constexpr std::size_t kNeighbours = 200;
  std::vector<const Layout::value_type*> there;
  for (const Layout::value_type& one : layout) there.push_back(&one);
  const NameCounts counts = count_names(layout);
  Auditor(layout, counts, environment, generation).check_nothing_extra("");
  std::mutex guard;
  Audit audit;
  std::vector<std::pair<Stamp*, Stamp>> stamps;
  bundle::parallel_for(threads, (there.size() + kNeighbours - 1) / kNeighbours, [&](std::size_t group) {
    Auditor auditor(layout, counts, environment, generation);
    for (std::size_t i = group * kNeighbours; i < std::min((group + 1) * kNeighbours, there.size()); ++i)
      auditor.check(there[i]->first, there[i]->second);
    const std::lock_guard lock(guard);
    audit += auditor.found();
    stamps.insert(stamps.end(), auditor.stamps().begin(), auditor.stamps().end());
  });
  for (const auto& [kept, now] : stamps) *kept = now;  // one item may be placed twice
  return audit;
}

bundle::Json to_json(const Audit& audit) {
  return {{"wheels", audit.wheels},   {"files", audit.files}, {"links", audit.links},
          {"folders", audit.folders}, {"bytes", audit.bytes}, {"record_rows", audit.record_rows},
          {"shared", audit.shared}};
}

Audit audit_from(bundle::JsonObject object) {
  const Audit audit{.wheels = object.integer("wheels"),
                    .files = object.integer("files"),
                    .links = object.integer("links"),
                    .folders = object.integer("folders"),
                    .bytes = object.integer("bytes"),
                    .record_rows = object.integer("record_rows"),
                    .shared = object.integer("shared")};
  object.done();
  return audit;
}

}  // namespace sealift::installer
