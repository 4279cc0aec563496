// SPDX-License-Identifier: Apache-2.0
#include "offline_repo/server/descriptors.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <utility>

namespace sealift::offline_repo {

std::size_t raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 1024;
  const rlimit raised{.rlim_cur = limit.rlim_max, .rlim_max = limit.rlim_max};
  if (::setrlimit(RLIMIT_NOFILE, &raised) == 0) limit = raised;
  return static_cast<std::size_t>(std::min<rlim_t>(limit.rlim_cur, 1u << 30));
}

ServerOptions within_descriptors(ServerOptions options, std::size_t limit, std::size_t others) {
  options.cache_files = std::min(options.cache_files, limit / 4);
  const std::size_t taken = options.cache_files + others;
  options.max_connections =
      std::min(options.max_connections, std::max<std::size_t>(16, limit - std::min(limit, taken)));
  return options;
}

}  // namespace sealift::offline_repo
