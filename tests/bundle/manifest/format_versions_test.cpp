// SPDX-License-Identifier: Apache-2.0
// Each signed or stored document says its format's number, and no number that only looks like ours passes for it: one
// above a machine's word, whose low bits are ours, least of all.
#include <functional>
#include <vector>

#include "bundle/core/json.hpp"
#include "sealift/bundle/manifest/hub_catalogue.hpp"
#include "sealift/bundle/manifest/image_catalogue.hpp"
#include "sealift/bundle/manifest/inventory.hpp"
#include "sealift/bundle/manifest/manifest_json.hpp"
#include "sealift/bundle/trust/trust_state.hpp"
#include "tests/support/refusal.hpp"
#include "tests/support/tiny_bundle.hpp"

using namespace sealift::bundle;
using namespace sealift::test;

TEST_CASE("a document of another format's number, or of none, is refused as not known or as no such document") {
  const TempDir dir;
  const PrivateKey key = PrivateKey::generate();
  const MadeBundle made = make_bundle(dir / "bundle", {}, key);
  struct Document {
    const char* what;
    std::string text;
    std::function<void(const std::string&)> parse;
  };
  const std::vector<Document> documents = {
      {"manifest", write_manifest(made.manifest), [](const std::string& text) { parse_manifest(text, "m"); }},
      {"root", write_root(make_root({&key}, {&key})), [](const std::string& text) { parse_root(text, "r"); }},
      {"trust", write_trust_state(made.trusted.state), [](const std::string& text) { parse_trust_state(text, "t"); }},
      {"inventory", write_inventory({}), [](const std::string& text) { parse_inventory(text, "i"); }},
      {"hub", write_hub_catalogue({}), [&](const std::string& text) { parse_hub_catalogue(text, made.manifest, "h"); }},
      {"images", write_image_catalogue({}),
       [&](const std::string& text) { parse_image_catalogue(text, made.manifest, "c"); }},
  };
  for (const Document& document : documents) {
    const std::string head = "\"format\":";
    const std::size_t at = document.text.find(head);
    REQUIRE(at != std::string::npos);
    std::size_t begin = at + head.size();
    if (document.text[begin] == ' ') ++begin;
    const std::size_t end = document.text.find_first_of(",}\n", begin);
    const std::uint64_t own = std::stoull(document.text.substr(begin, end - begin));
    const std::string big = "1844674407370955161" + std::to_string(6 + own);  // 2^64 and ours
    for (const std::string& number :
         {std::string("0"), std::string("2147483648"), std::to_string((std::uint64_t{1} << 32) + own),
          std::string("9007199254740991"), std::string("9007199254740993"), big, std::string("-1"), std::string("null"),
          "\"" + std::to_string(own) + "\"", std::to_string(own) + ".0"}) {
      std::string text = document.text;
      text.replace(begin, end - begin, number);
      INFO(document.what, " ", text.substr(0, 200));
      const Error error = refusal([&] { document.parse(text); });
      CHECK((error.code() == ErrorCode::CannotCheck || error.code() == ErrorCode::Format));
    }
    std::string without = document.text;
    without.replace(at, head.size(), "\"former\":");
    INFO(document.what, " ", without.substr(0, 200));
    CHECK(refusal([&] { document.parse(without); }).code() == ErrorCode::Format);
  }
}
