// SPDX-License-Identifier: Apache-2.0
// The door to libfuse: an image as a mounted, read-only folder, for root and for who is not. A program that reads gets
// bytes that were checked, or EIO; who looks after the machine gets a line that says why.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "bundle/image/image_reader.hpp"
#include "bundle/image/image_writer.hpp"

namespace sealift::installer {

struct FuseOptions {
  std::filesystem::path folder;  // that becomes the image; an empty one, or what is in it is hidden
  std::string source;            // what /proc/mounts says is mounted
  bool everybody = false;        // others than the caller see it, too; root's right, or user_allow_other's
  // Called for each read that fails, with a sentence for the log; from any thread.
  std::function<void(const std::string&)> say;
};

class FuseServer {
 public:
  // Mounts. `image` outlives this. Throws Platform where FUSE is not to be had, Io where the folder cannot be mounted
  // over.
  FuseServer(const bundle::ImageReader& image, FuseOptions options);
  FuseServer(const FuseServer&) = delete;
  FuseServer& operator=(const FuseServer&) = delete;
  // Unmounts, lazily where somebody still uses it.
  ~FuseServer();

  // Answers until it is unmounted, or SIGTERM, SIGINT or SIGHUP comes.
  void serve();

 private:
  struct Session;
  std::unique_ptr<Session> session_;
};

}  // namespace sealift::installer
