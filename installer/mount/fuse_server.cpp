// SPDX-License-Identifier: Apache-2.0
// The low-level interface: the kernel's numbers are the tree's plus one. Nothing changes, so the kernel keeps what it
// was told for good, and asks for a page of a file once as long as it has memory for it.
#define FUSE_USE_VERSION 312
#include "installer/mount/fuse_server.hpp"

#include <fuse3/fuse_lowlevel.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <thread>

#include "sealift/bundle/core/error.hpp"

namespace sealift::installer {

using bundle::Error;
using bundle::ErrorCode;
using bundle::ImageReader;

namespace {

constexpr double kForGood = 86400.0 * 365;  // seconds
constexpr unsigned kThreads = 8;
constexpr std::size_t kReadAhead = std::size_t{1} << 20;

struct Served {
  const ImageReader& image;
  const FuseOptions& options;
};

const Served& served(fuse_req_t request) {
  return *static_cast<const Served*>(fuse_req_userdata(request));
}

std::size_t node_of(fuse_ino_t number) {
  return static_cast<std::size_t>(number) - 1;
}

// Whether the kernel can have this number from us.
bool known(fuse_req_t request, fuse_ino_t number) {
  return number >= 1 && node_of(number) < served(request).image.nodes().size();
}

struct stat status_of(const ImageReader& image, std::size_t index) {
  const ImageReader::Node& node = image.nodes()[index];
  struct stat status {};
  status.st_ino = index + 1;
  status.st_mode = node.mode | (node.type == ImageReader::Type::Folder ? S_IFDIR
                                : node.type == ImageReader::Type::Link ? S_IFLNK
                                                                       : S_IFREG);
  status.st_nlink = node.links;
  status.st_size = static_cast<off_t>(node.size);
  status.st_blocks = static_cast<blkcnt_t>((node.size + 511) / 512);
  status.st_blksize = static_cast<blksize_t>(bundle::kImageBlock);
  status.st_mtim.tv_sec = status.st_ctim.tv_sec = status.st_atim.tv_sec = static_cast<time_t>(node.time);
  return status;
}

void look_up(fuse_req_t request, fuse_ino_t parent, const char* name) {
  const ImageReader& image = served(request).image;
  fuse_entry_param entry{};
  entry.entry_timeout = entry.attr_timeout = kForGood;
  if (!known(request, parent)) {
    fuse_reply_err(request, ENOENT);
    return;
  }
  if (const auto child = image.child(node_of(parent), name)) {
    entry.ino = *child + 1;
    entry.attr = status_of(image, *child);
  }  // else number 0: that there is no such name is kept, too
  fuse_reply_entry(request, &entry);
}

void get_attributes(fuse_req_t request, fuse_ino_t number, fuse_file_info*) {
  if (!known(request, number)) {
    fuse_reply_err(request, ENOENT);
    return;
  }
  const struct stat status = status_of(served(request).image, node_of(number));
  fuse_reply_attr(request, &status, kForGood);
}

void read_link(fuse_req_t request, fuse_ino_t number) {
  if (known(request, number))
    fuse_reply_readlink(request, served(request).image.nodes()[node_of(number)].target.c_str());
  else
    fuse_reply_err(request, ENOENT);
}

void open_file(fuse_req_t request, fuse_ino_t, fuse_file_info* file) {
  if ((file->flags & O_ACCMODE) != O_RDONLY) {
    fuse_reply_err(request, EROFS);
    return;
  }
  file->keep_cache = 1;
  fuse_reply_open(request, file);
}

void read_file(fuse_req_t request, fuse_ino_t number, std::size_t size, off_t offset, fuse_file_info*) {
  const Served& here = served(request);
  if (!known(request, number) || here.image.nodes()[node_of(number)].type != ImageReader::Type::File) {
    fuse_reply_err(request, EINVAL);
    return;
  }
  try {
    bundle::Bytes bytes(size);
    const std::size_t got = here.image.read(node_of(number), static_cast<std::uint64_t>(offset), bytes);
    fuse_reply_buf(request, reinterpret_cast<const char*>(bytes.data()), got);
  } catch (const std::exception& error) {
    here.options.say(error.what());
    fuse_reply_err(request, EIO);
  }
}

void open_folder(fuse_req_t request, fuse_ino_t, fuse_file_info* file) {
  file->cache_readdir = 1;
  file->keep_cache = 1;
  fuse_reply_open(request, file);
}

// Offsets: 1 and 2 are behind "." and "..", 3 + i behind child i.
void read_folder(fuse_req_t request, fuse_ino_t number, std::size_t size, off_t offset, fuse_file_info*) {
  const ImageReader& image = served(request).image;
  if (!known(request, number)) {
    fuse_reply_err(request, ENOENT);
    return;
  }
  const std::size_t folder = node_of(number);
  const std::vector<std::size_t>& children = image.nodes()[folder].children;
  std::string out(size, '\0');
  std::size_t filled = 0;
  for (auto at = static_cast<std::size_t>(offset); at < children.size() + 2; ++at) {
    const std::size_t node = at == 0 ? folder : at == 1 ? image.nodes()[folder].parent : children[at - 2];
    const struct stat status = status_of(image, node);
    const char* const name = at == 0 ? "." : at == 1 ? ".." : image.nodes()[node].name.c_str();
    const std::size_t needed =
        fuse_add_direntry(request, out.data() + filled, size - filled, name, &status, static_cast<off_t>(at + 1));
    if (needed > size - filled) break;
    filled += needed;
  }
  fuse_reply_buf(request, out.data(), filled);
}

void tell_room(fuse_req_t request, fuse_ino_t) {
  const ImageReader& image = served(request).image;
  struct statvfs room {};
  room.f_bsize = room.f_frsize = bundle::kImageBlock;
  room.f_blocks = (image.size() + bundle::kImageBlock - 1) / bundle::kImageBlock;
  room.f_files = image.nodes().size();
  room.f_namemax = 255;
  fuse_reply_statfs(request, &room);
}

fuse_lowlevel_ops operations() {
  fuse_lowlevel_ops all{};
  all.init = [](void*, fuse_conn_info* connection) {
    connection->max_readahead = std::min<unsigned>(connection->max_readahead, kReadAhead);
  };
  all.lookup = look_up;
  all.getattr = get_attributes;
  all.readlink = read_link;
  all.open = open_file;
  all.read = read_file;
  all.opendir = open_folder;
  all.readdir = read_folder;
  all.statfs = tell_room;
  return all;
}

// A comma or a backslash would end an option of the mount.
std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) out += c == ',' || c == '\\' ? std::string{'\\', c} : std::string(1, c);
  return out;
}

// Ends a session by a signal. libfuse's own handlers may come just before its loop waits, which then waits for ever.
class SignalWatch {
 public:
  // Signals that come from here on wait until watch().
  SignalWatch() {
    sigset_t all;
    ::sigemptyset(&all);
    for (const int signal : {SIGHUP, SIGINT, SIGTERM}) ::sigaddset(&all, signal);
    ::pthread_sigmask(SIG_BLOCK, &all, nullptr);
    signals_ = bundle::Descriptor(::signalfd(-1, &all, SFD_CLOEXEC));
    stop_ = bundle::Descriptor(::eventfd(0, EFD_CLOEXEC));
    if (!signals_ || !stop_) bundle::throw_errno("signals cannot be waited for", "signalfd");
  }

  void watch(fuse_session* session, const std::filesystem::path& folder) {
    thread_ = std::jthread([this, session, folder] {
      pollfd both[] = {{signals_.get(), POLLIN, 0}, {stop_.get(), POLLIN, 0}};
      while (::poll(both, 2, -1) < 0 && errno == EINTR) {
      }
      if (both[1].revents != 0) return;
      fuse_session_exit(session);
      struct statvfs room {};
      ::statvfs(folder.c_str(), &room);  // a request wakes the loop, which sees that it is to end
    });
  }
  void stop() { ::eventfd_write(stop_.get(), 1); }
  // After the session is unmounted, since until then the request may wait.
  void join() {
    if (thread_.joinable()) thread_.join();
  }

 private:
  bundle::Descriptor signals_, stop_;
  std::jthread thread_;
};

}  // namespace

struct FuseServer::Session {
  Session(const ImageReader& image, FuseOptions options) : options(std::move(options)), served{image, this->options} {}

  FuseOptions options;
  Served served;
  fuse_session* fuse = nullptr;
  SignalWatch signals;
};

FuseServer::FuseServer(const ImageReader& image, FuseOptions asked)
    : session_(std::make_unique<Session>(image, std::move(asked))) {
  Session& session = *session_;
  std::string options = "ro,nodev,nosuid,default_permissions,subtype=sealift,fsname=" + escaped(session.options.source);
  if (session.options.everybody) options += ",allow_other";
  std::string program = "sealift-install", flag = "-o";
  char* words[] = {program.data(), flag.data(), options.data(), nullptr};
  fuse_args arguments = FUSE_ARGS_INIT(3, words);
  const fuse_lowlevel_ops all = operations();
  session.fuse = fuse_session_new(&arguments, &all, sizeof all, &session.served);
  fuse_opt_free_args(&arguments);
  if (session.fuse == nullptr) throw Error(ErrorCode::Io, {.what = "a FUSE session cannot be made"});
  if (fuse_session_mount(session.fuse, session.options.folder.c_str()) != 0) {
    fuse_session_destroy(session.fuse);
    session.fuse = nullptr;
    throw Error(ErrorCode::Io,
                {.what = "the image cannot be mounted by FUSE",
                 .where = session.options.folder.string(),
                 .got = "the line above says why",
                 .next = "the folder must be the caller's and nothing be mounted on it; or unpack: sealift-install "
                         "apply"});
  }
}

FuseServer::~FuseServer() {
  if (session_->fuse == nullptr) return;
  session_->signals.stop();
  fuse_session_unmount(session_->fuse);
  session_->signals.join();
  fuse_session_destroy(session_->fuse);
}

void FuseServer::serve() {
  session_->signals.watch(session_->fuse, session_->options.folder);
  fuse_loop_config* const how = fuse_loop_cfg_create();
  fuse_loop_cfg_set_max_threads(how, kThreads);
  fuse_loop_cfg_set_idle_threads(how, kThreads);
  const int ended = fuse_session_loop_mt(session_->fuse, how);  // 0, the signal that ended it, or -errno
  fuse_loop_cfg_destroy(how);
  if (ended >= 0) return;
  const std::string what = "the mount ended by itself: " + std::string(std::strerror(-ended));
  session_->options.say(what);
  throw bundle::Error(bundle::ErrorCode::Io, {.what = what,
                                              .where = session_->options.folder.string(),
                                              .next = "mount it again; what used it has to be started anew"});
}

}  // namespace sealift::installer
