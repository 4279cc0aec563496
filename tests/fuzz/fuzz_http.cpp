// SPDX-License-Identifier: Apache-2.0
// A request is six lines: target, Accept, Range, If-Range, If-None-Match, Content-Type; what stands behind is its body.
// Host, Accept-Language and X-Forwarded-Proto are the second, third and fourth line again.
// Whatever they say there is an answer, its headers are one line each, and it never gives more of a file than there is.
#include "offline_repo/requests/request_head.hpp"
#include "offline_repo/requests/request_target.hpp"
#include "offline_repo/routes/routes.hpp"
#include "offline_repo/views/tokens.hpp"
#include "tests/fuzz/fuzz.hpp"
#include "tests/offline_repo/sample_catalogue.hpp"

using namespace sealift;
using namespace sealift::offline_repo;
using namespace sealift::test;

namespace {

// The sample with an image of one layer, as a registry's clients know it.
Catalogue catalogue_with_image() {
  Catalogue catalogue = sample_catalogue();
  ImageRepository& images = catalogue.images["org/app"];
  const std::string digest(64, 'd'), layer(64, 'e');
  images.manifests[digest] = {.media_type = std::string(bundle::kOciManifestType),
                              .file = {.size = 700, .sha256 = *bundle::Digest::from_hex(digest)},
                              .image_size = 1000};
  images.blobs[layer] = {.size = 1000, .sha256 = *bundle::Digest::from_hex(layer)};
  images.tags["1.0"] = {.digest = digest, .created = "2026-01-01T00:00:00Z"};
  return catalogue;
}

}  // namespace

FUZZ(text) {
  static const Catalogue catalogue = catalogue_with_image();
  static const Pages pages(catalogue);
  if (fault_of_head(text).empty())
    must(text.find("\r\n\r\n") == text.size() - 4 && text.find("\r\n ") == text.npos, "a head has one end");
  if (const auto token = token_in(text)) must(!token->empty() && token->size() <= text.size(), "a token was sent");
  if (const auto view = parse_view_target(text))
    must(view->rest.empty() || view->rest[0] == '/', "what is asked for in a view is a path");
  std::string lines[6];
  for (std::string& line : lines) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  for (const char* method : {"GET", "HEAD", "POST"}) {
    const Response response = respond(catalogue, pages,
                                      {.method = method,
                                       .target = lines[0],
                                       .accept = lines[1],
                                       .range = lines[2],
                                       .if_range = lines[3],
                                       .if_none_match = lines[4],
                                       .content_type = lines[5],
                                       .body = std::string(text),
                                       .host = lines[1],
                                       .accept_language = lines[2],
                                       .forwarded_proto = lines[3]});
    must(response.status >= 200 && response.status < 500, "a client's fault is not ours");
    for (const auto& [name, value] : response.headers)
      for (const std::string& part : {name, value})
        for (const char c : part) must(static_cast<unsigned char>(c) >= 0x20 && c != 0x7f, "a header is one line");
    if (const auto* part = std::get_if<WheelPart>(&response.body))
      must(part->wheel != nullptr && part->range.first <= part->wheel->size &&
               part->range.count <= part->wheel->size - part->range.first,
           "a part lies in its wheel");
    must((response.status == 206) == !response.header("Content-Range").empty() || response.status == 416,
         "a part says which");
  }
}
