// SPDX-License-Identifier: Apache-2.0
#include "trainer/ranks/loaded_library.hpp"

#include <link.h>

#include <filesystem>
#include <utility>

namespace sealift::trainer {

std::string loaded_library(const std::string& name) {
  std::pair<const std::string&, std::string> looked{name, {}};
  const auto look = [](dl_phdr_info* library, std::size_t, void* data) {
    auto& [wanted, found] = *static_cast<std::pair<const std::string&, std::string>*>(data);
    const std::filesystem::path path(library->dlpi_name);
    if (path.filename().string().rfind(wanted, 0) == 0) found = path.lexically_normal().string();
    return found.empty() ? 0 : 1;  // anything but 0 ends the search
  };
  dl_iterate_phdr(look, &looked);
  return looked.second;
}

}  // namespace sealift::trainer
