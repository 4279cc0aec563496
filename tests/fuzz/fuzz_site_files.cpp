// SPDX-License-Identifier: Apache-2.0
// Small texts that a site's machines read, told apart by the first byte: tokens, switches, addresses to listen on, and
// the variables of a bundle.
#include "offline_repo/holdings/watched_folder.hpp"
#include "offline_repo/server/listen_address.hpp"
#include "offline_repo/views/tokens.hpp"
#include "sealift/bundle/core/fields.hpp"
#include "sealift/bundle/manifest/variables.hpp"
#include "tests/fuzz/fuzz.hpp"

using namespace sealift;
using namespace sealift::test;

FUZZ(text) {
  if (text.empty()) return;
  const char kind = text.front();
  text.remove_prefix(1);
  accepted([&] {
    if (kind == 't') {
      for (const offline_repo::Token& token : offline_repo::parse_tokens(text, "tokens")) {
        must(!token.name.empty() && token.name.find_first_of(" \"\\\n") == token.name.npos,
             "a log's line holds a name");
        for (const std::string& grant : token.grants)
          must(grant.starts_with("bundle:") || grant.starts_with("channel:"), "a grant is of a bundle or a channel");
      }
    } else if (kind == 's') {
      for (const auto& [stream, version] : offline_repo::parse_switches(text, "switched"))
        must(bundle::is_plain_name(stream.channel) && bundle::is_plain_name(stream.name), "a switch is of a name");
    } else if (kind == 'l') {
      const offline_repo::ListenAddress address = offline_repo::parse_listen(text);
      must(offline_repo::parse_listen(address.text()).text() == address.text(), "an address has one spelling");
    } else {
      must(bundle::write_variables(bundle::parse_variables(text, "variables")) == text, "there is one spelling");
    }
  });
}
