// SPDX-License-Identifier: Apache-2.0
// look -> chunk list -> tables -> mount -> serve. The list is read once and its digest compared; after that each chunk
// counts only as far as the list says, whatever becomes of the file.
#include "installer/mount/mount_image.hpp"

#include <sys/mount.h>
#include <unistd.h>

#include <cerrno>
#include <thread>

#include "bundle/image/image_reader.hpp"
#include "installer/host/fuse_needs.hpp"
#include "installer/image/image_chunks.hpp"
#include "installer/mount/fuse_ready.hpp"
#include "installer/mount/fuse_server.hpp"
#include "installer/mount/mount_log.hpp"
#include "installer/mount/start_record.hpp"
#include "installer/prefix/require_prefix.hpp"
#include "sealift/bundle/core/human_text.hpp"
#include "sealift/bundle/host/child_process.hpp"
#include "sealift/bundle/open_bundle.hpp"
#include "sealift/bundle/payload/bundle_folder.hpp"

namespace sealift::installer {

namespace fs = std::filesystem;
using bundle::Error;
using bundle::ErrorCode;

namespace {

fs::path without_slash(const fs::path& path) {
  const fs::path normal = fs::absolute(path).lexically_normal();
  return normal.has_filename() ? normal : normal.parent_path();
}

std::vector<bundle::Digest> chunks_of(const fs::path& image, const bundle::Payload& payload) {
  const fs::path list = chunk_list_of(image);
  std::error_code ignored;
  if (!fs::exists(list, ignored))
    throw Error(ErrorCode::Missing, {.what = "the image's chunk list is not beside it",
                                     .where = list.string(),
                                     .next = "copy it, too, from where the image was made"});
  if (payload.size == 0)
    throw Error(ErrorCode::Format, {.what = "the image is an empty file", .where = image.string()});
  return bundle::read_chunk_list(list, payload);
}

// Whether a folder holds a seal, or the path is one.
bool is_bundle(const fs::path& path) {
  std::error_code ignored;
  if (path.extension() == bundle::kSealSuffix) return fs::is_regular_file(path, ignored);
  for (fs::directory_iterator it(path, ignored), end; !ignored && it != end; it.increment(ignored))
    if (it->path().extension() == bundle::kSealSuffix) return true;
  return false;
}

}  // namespace

void refuse_without_image(const fs::path& asked) {
  const fs::path path = without_slash(asked);
  std::error_code ignored;
  if (fs::is_regular_file(path, ignored) && path.extension() != bundle::kSealSuffix) return;
  const bool bundle = is_bundle(path), prefix = !bundle && is_prefix(Prefix(path));
  if (bundle || prefix)
    throw Error(ErrorCode::Missing,
                {.what = bundle ? "the bundle carries no image that can be mounted" : "a prefix is no image",
                 .where = path.string(),
                 .expected = "the file of an image",
                 .next = "make one: sealift-install image " + path.string() +
                         " -o FILE; then: sealift-install mount FILE DIR --digest what it printed"});
  if (fs::is_directory(path, ignored))
    throw Error(ErrorCode::Usage, {.what = "a folder is no image",
                                   .where = path.string(),
                                   .expected = "the file of an image",
                                   .next = "give the file that `sealift-install image` wrote"});
}

void mount_image(const MountOptions& options, const std::function<void(const Mounted&)>& ready) {
  require_fuse(fuse_needs_here());
  const fs::path image = without_slash(options.image), folder = without_slash(options.folder);
  require_mount_point(folder);
  MountLog log(options.log.empty() ? fs::path() : fs::absolute(options.log));
  const bundle::Payload payload = payload_of_image(image, options.digest);
  const bundle::PayloadReader reader(image.parent_path(), payload, chunks_of(image, payload));
  const bundle::CheckedRange bytes(reader, 0, payload.size, options.memory, std::chrono::seconds(options.patience));
  const bundle::ImageReader tree(bytes, image.string());
  FuseServer server(tree, {.folder = folder,
                           .source = image.string(),
                           .everybody = options.everybody,
                           .say = [&](const std::string& fault) { log.say(folder.string() + ": " + fault); }});
  const fs::path record = options.prefetch.empty() ? fs::path() : fs::absolute(options.prefetch);
  const std::vector<std::uint64_t> wanted =
      record.empty() ? std::vector<std::uint64_t>() : read_start_record(record, options.digest, payload.chunk_count());
  ready({.image = image,
         .folder = folder,
         .digest = options.digest,
         .size = payload.size,
         .names = tree.nodes().size() - 1,
         .prefetched = wanted.size(),
         .process = ::getpid()});
  const std::jthread ahead([&](const std::stop_token& stop) {
    for (const std::uint64_t chunk : wanted)
      if (!stop.stop_requested()) reader.will_need(chunk);
  });
  server.serve();
  if (record.empty()) return;
  try {
    write_start_record(record, options.digest, bytes.chunks_in_order());
  } catch (const Error& error) {
    log.say(folder.string() + ": " + error.what());
  }
}

void unmount_image(const fs::path& asked) {
  const fs::path folder = without_slash(asked);
  if (!is_our_mount(folder))
    throw Error(ErrorCode::Missing,
                {.what = "no image of ours is mounted there", .where = folder.string(), .next = "look at: mount"});
  const Error busy(ErrorCode::Conflict, {.what = "the image is in use",
                                         .where = folder.string(),
                                         .next = "end what uses it (fuser -vm " + folder.string() + "); then again"});
  if (::geteuid() == 0) {
    if (::umount2(folder.c_str(), UMOUNT_NOFOLLOW) == 0) return;
    if (errno == EBUSY) throw busy;
    bundle::throw_errno("the image cannot be unmounted", folder);
  }
  const bundle::Child child{.arguments = {fuse_needs_here().helper.string(), "-u", "--", folder.string()},
                            .environment = {"PATH=/usr/bin:/bin"},
                            .contained = false};
  const bundle::ChildEnd end = bundle::run_child(child);
  if (end.good()) return;
  if (end.errors.find("busy") != std::string::npos) throw busy;
  throw Error(ErrorCode::Io,
              {.what = "the image cannot be unmounted", .where = folder.string(), .got = end.text(child)});
}

}  // namespace sealift::installer
