// SPDX-License-Identifier: Apache-2.0
// See front_routes.hpp. The ETag covers what the page says of itself: its address and what was searched.
#include "offline_repo/routes/front_routes.hpp"

#include "offline_repo/routes/answers.hpp"

namespace sealift::offline_repo {

Response front_page(const Asked& asked) {
  const Request& request = asked.request;
  const std::string& query = asked.target.query;
  const FrontPage& page = asked.pages.front(reader_language(asked));
  const PageAddress address = reader_address(request);
  const std::string words = form_value(query, "q"), all = page.digest().hex() + "\n" + address.url + "\n" + words;
  Response response = text_answer(request, "text/html; charset=utf-8", page.text(address, words),
                                  bundle::sha256(bundle::as_bytes(all)), kPageCaching);
  response.headers.emplace_back("Content-Security-Policy", page_policy());
  response.headers.emplace_back("Referrer-Policy", "no-referrer");
  response.headers.emplace_back("Vary", "Accept-Language, X-Forwarded-Proto");
  return response;
}

}  // namespace sealift::offline_repo
