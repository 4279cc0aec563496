// SPDX-License-Identifier: Apache-2.0
// What an archive has named so far: each path once, nothing below a file or a link, and links that stay inside however
// they are chained (up -> .., out -> up/..). The readers of tar and zip keep one, so all their users are safe alike.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "sealift/bundle/core/safe_path.hpp"

namespace sealift::bundle {

// The first of `links` (path -> target, relative to one root) that leads out of the root or in a circle; nullptr when
// none does. Follows them as the kernel would. The work is bounded: a link that needs more is returned as well.
const std::pair<const std::string, std::string>* link_that_leads_out(const std::map<std::string, std::string>& links);

class ArchiveTree {
 public:
  static constexpr std::size_t kMaxMembers = 1'000'000;
  static constexpr std::size_t kMaxNames = std::size_t{64} << 20;  // bytes of all paths and targets together

  // Each adds a member and returns nullptr, or returns why the member is not acceptable.
  const char* add_file(const SafePath& path);
  const char* add_link(const SafePath& path, std::string_view target);
  const char* add_folder(const SafePath& path);

  // The links so far: path -> target.
  const std::map<std::string, std::string>& links() const { return links_; }

 private:
  enum class What { Leaf, Folder, ImpliedFolder };

  const char* add(const std::string& path, What what);

  std::unordered_map<std::string, What> members_;
  std::map<std::string, std::string> links_;
  std::size_t names_ = 0;
};

}  // namespace sealift::bundle
