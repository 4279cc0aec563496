// SPDX-License-Identifier: Apache-2.0
// All pages of a site's few hundred projects are a few megabytes at most, and the catalogue never changes.
#include "offline_repo/views/pages.hpp"

#include <utility>

#include "offline_repo/protocols/index_pages.hpp"

namespace sealift::offline_repo {

namespace {

Page page_of(std::string text) {
  const bundle::Digest digest = bundle::sha256(bundle::as_bytes(text));
  return {.text = std::move(text), .digest = digest};
}

}  // namespace

Pages::Pages(const Catalogue& catalogue)
    : english_(catalogue, PageLanguage::English),
      chinese_(catalogue, PageLanguage::Chinese),
      list_{.html = page_of(project_list_html(catalogue)), .json = page_of(project_list_json(catalogue))},
      wheels_(page_of(wheel_list_html(catalogue))) {
  Requirements requirements = requirements_of(catalogue);
  requirements_fault_ = std::move(requirements.why_not);
  requirements_ = page_of(std::move(requirements.text));
  for (const auto& [name, project] : catalogue.projects)
    projects_.emplace(name, IndexPage{.html = page_of(project_html(project)), .json = page_of(project_json(project))});
}

}  // namespace sealift::offline_repo
