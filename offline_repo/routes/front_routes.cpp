// SPDX-License-Identifier: Apache-2.0
// See front_routes.hpp.
#include "offline_repo/routes/front_routes.hpp"

#include "offline_repo/routes/answers.hpp"

namespace sealift::offline_repo {

Response front_page(const Asked& asked) {
  const FrontPage& page = asked.pages.front(reader_language(asked));
  return page_answer(asked.request, page.text(reader_address(asked.request), form_value(asked.target.query, "q")));
}

}  // namespace sealift::offline_repo
