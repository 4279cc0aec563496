// SPDX-License-Identifier: Apache-2.0
// The views of a site by address: the merged index at /, a channel at /c/CHANNEL/, a bundle at /b/NAME-VERSION/. A view
// never changes: a new state of the site gets new views, and an answer keeps its own.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "offline_repo/holdings/gaps.hpp"
#include "offline_repo/holdings/held_bundle.hpp"
#include "offline_repo/views/pages.hpp"

namespace sealift::offline_repo {

// A catalogue and its pages.
struct View {
  explicit View(Catalogue given) : catalogue(std::move(given)), pages(catalogue) {}
  View(const View&) = delete;
  View& operator=(const View&) = delete;

  const Catalogue catalogue;
  const Pages pages;
};

// All that one client may see.
struct Views {
  using Named = std::map<std::string, std::shared_ptr<const View>, std::less<>>;

  std::shared_ptr<const View> merged;
  Named channels, bundles;
};

// Makes views, of each set of bundles one, and takes over earlier ones.
class ViewMaker {
 public:
  explicit ViewMaker(const ViewMaker* before = nullptr);

  // Bundles that disagree about a file are left out of each view that they would meet in; Catalogue::left_out says so.
  // `gaps`: the whole site's, of which those are shown that name no bundle but these.
  Views views_of(const Held& held, const std::vector<Gap>& gaps);
  // Ends the use of earlier ones.
  void settle() { before_.clear(); }

 private:
  struct Part {
    std::vector<Contents> bundles;
    Surroundings around = {};

    auto operator<=>(const Part&) const = default;
  };

  std::shared_ptr<const View> view_of(const Part& part);

  std::map<Part, std::shared_ptr<const View>> views_, before_;
};

// A view, and what is asked for in it.
struct Viewed {
  std::shared_ptr<const View> view;
  std::string name;              // of the view; empty: the merged one
  std::string root;              // as Request::root
  std::string target;            // as Request::target; empty: the view's address lacks its slash
  std::string registry = "/v2";  // as Request::registry
};

// The merged view and the whole target, unless the target begins with the address of another one of these views.
Viewed find_view(const Views& views, std::string_view target);

}  // namespace sealift::offline_repo
