// SPDX-License-Identifier: Apache-2.0
// The kernel's table of mounts says what is there: a folder whose server is gone answers to nobody.
#include "installer/mount/fuse_ready.hpp"

#include <fstream>
#include <sstream>
#include <string>

#include "sealift/bundle/core/file.hpp"

namespace sealift::installer {

namespace fs = std::filesystem;
using bundle::Error;
using bundle::ErrorCode;

namespace {

constexpr const char* kOurType = "fuse.sealift";

// /proc/self/mountinfo writes spaces and the like as \040.
std::string unescaped(const std::string& text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 3 < text.size()) {
      out += static_cast<char>(std::stoi(text.substr(i + 1, 3), nullptr, 8));
      i += 3;
    } else {
      out += text[i];
    }
  }
  return out;
}

// The type of what is mounted on top of exactly this folder; "" when nothing is.
std::string mounted_on(const fs::path& folder) {
  std::error_code ignored;
  const fs::path parent = fs::canonical(folder.parent_path(), ignored);  // what is mounted may not answer
  const std::string wanted = (ignored ? folder : parent / folder.filename()).string();
  std::ifstream table("/proc/self/mountinfo");
  std::string found;
  for (std::string line; std::getline(table, line);) {
    std::istringstream words(line);
    std::string skip, place, type;
    words >> skip >> skip >> skip >> skip >> place;
    while (words >> skip && skip != "-") {
    }
    words >> type;
    if (unescaped(place) == wanted) found = type;  // the last one lies on top
  }
  return found;
}

fs::path normal(const fs::path& folder) {
  const fs::path path = fs::absolute(folder).lexically_normal();
  return path.has_filename() ? path : path.parent_path();
}

}  // namespace

void require_mount_point(const fs::path& asked) {
  const fs::path folder = normal(asked);
  if (const std::string type = mounted_on(folder); type.starts_with("fuse"))
    throw Error(ErrorCode::Conflict,
                {.what = "something is mounted there already",
                 .where = folder.string(),
                 .expected = "a folder without a FUSE mount",
                 .got = type,
                 .next = (type == kOurType ? "sealift-install unmount " + folder.string() + ", or " : std::string()) +
                         "choose another folder"});
  std::error_code ignored;
  if (!fs::is_directory(folder, ignored))
    throw Error(
        ErrorCode::Missing,
        {.what = "there is no folder to mount on", .where = folder.string(), .next = "mkdir -p " + folder.string()});
  if (!fs::is_empty(folder, ignored) && !ignored)
    throw Error(ErrorCode::Conflict, {.what = "the folder is not empty, and a mount hides what is in it",
                                      .where = folder.string(),
                                      .expected = "an empty folder",
                                      .next = "choose another folder, or make one: mkdir"});
}

bool is_our_mount(const fs::path& folder) {
  return mounted_on(normal(folder)) == kOurType;
}

}  // namespace sealift::installer
