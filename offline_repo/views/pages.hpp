// SPDX-License-Identifier: Apache-2.0
// The index pages of a catalogue, made once, each with the digest that is its ETag.
// A request is answered with one as it lies here; nothing is rendered, hashed or copied for it.
#pragma once

#include <map>
#include <string>

#include "offline_repo/catalogue/catalogue.hpp"
#include "offline_repo/protocols/front_page.hpp"
#include "offline_repo/protocols/negotiate.hpp"

namespace sealift::offline_repo {

struct Page {
  std::string text;
  bundle::Digest digest;  // SHA-256 of the text
};

// One page in both forms.
struct IndexPage {
  Page html, json;

  const Page& in(IndexFormat format) const { return format == IndexFormat::Json ? json : html; }
};

class Pages {
 public:
  explicit Pages(const Catalogue& catalogue);

  const FrontPage& front(PageLanguage language) const {
    return language == PageLanguage::Chinese ? chinese_ : english_;
  }
  const IndexPage& project_list() const { return list_; }
  // All wheels on one page, and as requirements; none of them where `requirements_fault` has a text, which says why.
  const Page& wheel_list() const { return wheels_; }
  const Page& requirements() const { return requirements_; }
  const std::string& requirements_fault() const { return requirements_fault_; }
  // Of a project of the catalogue.
  const IndexPage& of(const Project& project) const { return projects_.at(project.name); }

 private:
  FrontPage english_, chinese_;
  IndexPage list_;
  Page wheels_, requirements_;
  std::string requirements_fault_;
  std::map<std::string, IndexPage> projects_;  // by normalized name
};

}  // namespace sealift::offline_repo
