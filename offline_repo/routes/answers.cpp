// SPDX-License-Identifier: Apache-2.0
// An ETag is the SHA-256 of what is sent, so equal bytes have one wherever they come from.
#include "offline_repo/routes/answers.hpp"

#include <algorithm>

#include "offline_repo/protocols/page_frame.hpp"

namespace sealift::offline_repo {

namespace {

std::string quoted(const bundle::Digest& digest) {
  return "\"" + digest.hex() + "\"";
}

// One by one: a list in braces copies each text.
void add_headers(Response& response, std::string type, std::string caching, const std::string& etag) {
  response.headers.reserve(8);
  response.headers.emplace_back("Content-Type", std::move(type));
  response.headers.emplace_back("Cache-Control", std::move(caching));
  response.headers.emplace_back("ETag", etag);
  response.headers.emplace_back("X-Content-Type-Options", "nosniff");
}

Response not_modified(const Response& full) {
  Response response{.status = 304};
  for (const auto& header : full.headers)
    if (header.first == "ETag" || header.first == "Cache-Control" || header.first == "Vary")
      response.headers.push_back(header);
  return response;
}

// `part` makes the body of a range.
template <class Part>
Response ranged(const Request& request, const bundle::Digest& digest, std::uint64_t size, std::string type,
                std::string caching, const Part& part) {
  const std::string etag = quoted(digest);
  Response response{.body = part(ByteRange{.first = 0, .count = size})};
  add_headers(response, std::move(type), std::move(caching), etag);
  response.headers.emplace_back("Accept-Ranges", "bytes");
  if (lists_etag(request.if_none_match, etag)) return not_modified(response);
  // A range is defined for GET only, and If-Range holds only for the bytes that it names.
  if (request.method != "GET" || (!request.if_range.empty() && request.if_range != etag)) return response;
  const RangeAnswer answer = answer_range(request.range, size);
  if (answer.kind == RangeKind::Unsatisfiable) {
    const std::string bytes = std::to_string(size);  // who goes on behind them has all
    response = refusal(416, request.range == "bytes=" + bytes + "-"
                                ? "the file has " + bytes + " bytes, and you have them: it is complete"
                                : "the range lies outside of the file's " + bytes + " bytes");
    response.headers.emplace_back("Content-Range", "bytes */" + std::to_string(size));
  } else if (answer.kind == RangeKind::Part) {
    response.status = 206;
    response.headers.emplace_back("Content-Range", "bytes " + std::to_string(answer.range.first) + "-" +
                                                       std::to_string(answer.range.first + answer.range.count - 1) +
                                                       "/" + std::to_string(size));
    response.body = part(answer.range);
  }
  return response;
}

template <class Text>
Response whole_text(const Request& request, std::string type, Text text, const bundle::Digest& digest,
                    std::string caching) {
  const std::string etag = quoted(digest);
  Response response{.body = std::move(text)};
  add_headers(response, std::move(type), std::move(caching), etag);
  if (lists_etag(request.if_none_match, etag)) return not_modified(response);
  return response;
}

bool is_plain_path(std::string_view text) {
  static constexpr std::string_view kOther = "-._~/";
  return std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || kOther.find(c) != kOther.npos;
  });
}

// The prefix that a proxy took from the path, where it says so and it can be one.
std::string_view proxy_prefix(std::string_view said) {
  if (!said.starts_with('/') || said.starts_with("//")) return {};
  while (said.ends_with('/')) said.remove_suffix(1);
  return is_plain_path(said) ? said : std::string_view();
}

}  // namespace

std::string view_root(const Request& request) {
  return std::string(proxy_prefix(request.forwarded_prefix)) + request.root;
}

PageLanguage reader_language(const Asked& asked) {
  return choose_language(form_value(asked.target.query, "lang"), asked.request.accept_language);
}

PageAddress reader_address(const Request& request) {
  return page_address(request.host, request.forwarded_proto, request.registry);
}

Response page_answer(const Request& request, std::string html) {
  const bundle::Digest digest = bundle::sha256(bundle::as_bytes(html));
  Response response = text_answer(request, "text/html; charset=utf-8", std::move(html), digest, kPageCaching);
  response.headers.emplace_back("Content-Security-Policy", page_policy());
  response.headers.emplace_back("Referrer-Policy", "no-referrer");
  response.headers.emplace_back("Vary", "Accept-Language, X-Forwarded-Prefix, X-Forwarded-Proto");
  return response;
}

// A name that had a page yesterday may be one without a current version.
Response nothing_there(const Asked& asked) {
  std::string why = "there is no such page or file here; the index is at simple/";
  if (!asked.catalogue.around.gaps.empty())
    why += "; some names have no current version at present: the page at " + view_root(asked.request) + "/ says which";
  return refusal(404, why);
}

Response text_answer(const Request& request, std::string type, std::string text, const bundle::Digest& digest,
                     std::string caching) {
  return whole_text(request, std::move(type), std::move(text), digest, std::move(caching));
}

Response kept_answer(const Request& request, std::string type, std::string_view text, const bundle::Digest& digest,
                     std::string caching) {
  return whole_text(request, std::move(type), KeptText{text}, digest, std::move(caching));
}

Response document_answer(const Request& request, std::string text, std::string type) {
  const bundle::Digest digest = bundle::sha256(bundle::as_bytes(text));
  return text_answer(request, std::move(type), std::move(text), digest, kPageCaching);
}

Response file_answer(const Request& request, const ServedFile& file, std::string caching) {
  return ranged(request, file.sha256, file.size, "application/octet-stream", std::move(caching),
                [&](ByteRange range) { return WheelPart{.wheel = &file, .range = range}; });
}

Response shared_answer(const Request& request, const std::shared_ptr<const std::string>& text,
                       const bundle::Digest& digest, std::string type, std::string caching) {
  return ranged(request, digest, text->size(), std::move(type), std::move(caching),
                [&](ByteRange range) { return TextPart{.text = text, .range = range}; });
}

}  // namespace sealift::offline_repo
