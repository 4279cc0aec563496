// SPDX-License-Identifier: Apache-2.0
// trust add, trust update, trust show: the trust root of a site. Only add takes a fingerprint, from outside the medium.
#include <memory>

#include "installer/prefix/trust_store.hpp"
#include "installer/print/trust_report.hpp"
#include "installer/verbs/shared_options.hpp"
#include "installer/verbs/verbs.hpp"
#include "sealift/bundle/trust/trust_state.hpp"

namespace sealift::installer {

namespace {

struct TrustOptions {
  std::vector<std::filesystem::path> roots;
  std::filesystem::path prefix;
  std::string fingerprint;
  bool json = false;
};

int run_add(const TrustOptions& options) {
  Disk disk;
  const TrustChange change =
      pin_root(Prefix(options.prefix), disk, options.roots, bundle::parse_fingerprint(options.fingerprint));
  bundle::print(options.json, json_of(change),
                (change.changed ? "pinned\n" : "already pinned\n") + text_of(change.state));
  return 0;
}

int run_update(const TrustOptions& options) {
  Disk disk;
  const TrustChange change = update_root(Prefix(options.prefix), disk, options.roots);
  bundle::print(options.json, json_of(change),
                (change.changed ? "updated\n" : "nothing new\n") + text_of(change.state));
  return 0;
}

int run_show(const TrustOptions& options) {
  const bundle::TrustState state = bundle::trust_for_run(Prefix(options.prefix).trust(), std::nullopt);
  bundle::print(options.json, json_of(state), text_of(state));
  return 0;
}

void add_roots(const bundle::Verb& verb, TrustOptions& options) {
  verb.json(options.json);
  verb.option("ROOT", options.roots, "files of roots, oldest first, or a bundle that carries them").required();
  add_prefix(verb, options.prefix);
}

}  // namespace

void add_trust(bundle::Program& program) {
  const bundle::Verb trust = program.verb("trust", "the root that this site trusts");
  const auto options = std::make_shared<TrustOptions>();
  const bundle::Verb add = trust.verb("add", "pin a root by its fingerprint, once");
  add_roots(add, *options);
  add.option("--fingerprint", options->fingerprint, "sha256:..., as the root's owner told it").required();
  add.action([options] { return run_add(*options); });
  const bundle::Verb update = trust.verb("update", "accept the next root: a rotation or a revocation");
  add_roots(update, *options);
  update.action([options] { return run_update(*options); });
  const bundle::Verb show = trust.verb("show", "print the root, its roles and what was accepted");
  show.alias("list");
  show.json(options->json);
  add_prefix(show, options->prefix);
  show.action([options] { return run_show(*options); });
}

}  // namespace sealift::installer
