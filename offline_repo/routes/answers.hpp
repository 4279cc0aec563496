// SPDX-License-Identifier: Apache-2.0
// The two kinds of answer that all protocols share: a text with its digest as ETag, and a file of which a client may
// take a range. What stands in a path is not known here.
#pragma once

#include <string>
#include <string_view>

#include "offline_repo/routes/route.hpp"

namespace sealift::offline_repo {

inline constexpr char kJsonType[] = "application/json";
inline constexpr char kPageCaching[] = "no-cache";  // asked again each time, by its ETag: a switch is seen at once
inline constexpr char kFileCaching[] = "max-age=365000000, immutable";  // the content is part of the address

// 200, or 304 when the client has it; `digest` is of `text`.
Response text_answer(const Request& request, std::string type, std::string text, const bundle::Digest& digest,
                     std::string caching);

// The same for a text that its view keeps, which is not copied.
Response kept_answer(const Request& request, std::string type, std::string_view text, const bundle::Digest& digest,
                     std::string caching);

// The same for a text that was made for this request.
Response document_answer(const Request& request, std::string text, std::string type);

// 200, 206, 304 or 416, as the request's Range, If-Range and If-None-Match say. `file` must outlive the response.
Response file_answer(const Request& request, const ServedFile& file, std::string caching);

// The same for a shared text of this media type.
Response shared_answer(const Request& request, const std::shared_ptr<const std::string>& text,
                       const bundle::Digest& digest, std::string type, std::string caching);

// The path of this view as its client sees it, without a slash at its end: the prefix that a proxy took, where it says
// so and it can be one, and Request::root.
std::string view_root(const Request& request);

// In which language a client wants a page (?lang=, Accept-Language), and by which address it reached this view.
PageLanguage reader_language(const Asked& asked);
PageAddress reader_address(const Request& request);

// A page for people.
Response page_answer(const Request& request, std::string html);

// 404, for people.
Response nothing_there(const Asked& asked);

}  // namespace sealift::offline_repo
