// SPDX-License-Identifier: Apache-2.0
// One item of what goes into a bundle: whose it is, where it will lie, and where its bytes come from. The lock becomes
// a list of these once (pack/contents.hpp); downloads, space, path owners, the native check, delta and the writer take
// that list or the plan made of it, so that a new kind of content is listed in one place.
#pragma once

#include <filesystem>
#include <functional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "packager/files/cache.hpp"
#include "packager/lock/lock.hpp"
#include "packager/network/fetch.hpp"

namespace sealift::packager {

// Where the bytes of a content come from. All but FromDisk are in the cache once they have been brought.
struct FromServer {
  std::string url;
  std::string bearer = {};  // a token for this host alone
};
struct FromSource {  // a wheel that was built here, and is built again where the cache has lost it
  LockedWheel wheel;
};
struct FromLock {};  // put into the cache by `lock`; nobody else has it
struct FromDisk {
  std::filesystem::path file;  // absolute
};
struct FromText {  // made here
  std::string text;
};
using Origin = std::variant<FromLock, FromServer, FromSource, FromDisk, FromText>;

struct Content {
  enum class Kind {
    Interpreter,  // a tar that is unpacked at the generation's root
    Wheel,        // installed as its RECORD says
    Tree,         // another such tar, which nothing looks into
    Program,      // one file, which may have changed since it was locked; native libraries among them
    File,         // one file that is data: stored as it is, and nothing looks into it
  };

  Kind kind = Kind::File;
  std::string name;        // for messages
  std::string owner;       // of the paths that it installs, for messages; a wheel's is its file name
  std::string entry;       // its path in the bundle
  std::string into;        // its path in the generation, of a Program or File; empty: a File that is carried alone
  std::uint64_t size = 0;  // bytes; 0 when nobody said
  bundle::Digest sha256;
  bool executable = false;
  Origin origin;
  std::set<bundle::Digest> startup_files = {};  // of a Wheel: .pth files that the job allows to run code

  // Whether an installation has it; an image's blob is only carried.
  bool is_installed() const { return kind != Kind::File || !into.empty(); }
};

// Where its bytes are, or will be once they have been brought.
std::filesystem::path file_of(const Content& content, const Cache& cache);

std::vector<Download> downloads_of(const std::vector<Content>& contents);

// What cannot be fetched or built must be here before anything is: throws Missing, naming everything that is gone, and
// every data file of this machine that has another size than was locked.
void require_inputs(const std::vector<Content>& contents, const Cache& cache);

// Brings a content again if its file in the cache is damaged, and says whether it was. Safe from several threads.
using Repair = std::function<bool(const Content&)>;

// What `read` returns, which reads the content's file. If it meets damage and `repair` mends that, it reads once more;
// if the file is what was locked, its error stands. So a damaged cache is noticed where it is read, and nothing is
// hashed for that alone.
template <class Read>
auto read_repaired(const Content& content, const Repair& repair, const Read& read) {
  try {
    return read();
  } catch (const bundle::Error& error) {
    const bool damage = error.code() == bundle::ErrorCode::Digest || error.code() == bundle::ErrorCode::Format;
    if (!damage || !repair || !repair(content)) throw;
  }
  return read();
}

}  // namespace sealift::packager
