// SPDX-License-Identifier: Apache-2.0
// Who reads the front page: in which language, and by which address they reached it. Pure functions over headers, which
// are hostile text.
#pragma once

#include <string>
#include <string_view>

namespace sealift::offline_repo {

enum class PageLanguage { English, Chinese };

// `asked`: the value of ?lang=, which wins if it is "en" or "zh"; `accept`: an Accept-Language header.
PageLanguage choose_language(std::string_view asked, std::string_view accept);

// Where a client reached this page, as it is written into lines that people paste. What a Host header says is used only
// where it can be a host.
struct PageAddress {
  std::string url;       // "http://host:8080/c/prod", without a slash at its end
  std::string registry;  // "host:8080/c/prod": what stands before the name of an image
  std::string host;      // "host:8080"
  std::string home;      // the relative way from a view's first page to the server's root: "" or "../../"
  bool plain = true;     // HTTP without TLS, which most clients take only when they are told to
};
PageAddress page_address(std::string_view host, std::string_view forwarded_proto, std::string_view registry_path);

}  // namespace sealift::offline_repo
