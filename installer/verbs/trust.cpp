// SPDX-License-Identifier: Apache-2.0
// trust add, trust update, trust show: the trust root of a site. Only add takes a fingerprint, from outside the medium.
#include <memory>

#include "installer/prefix/trust_store.hpp"
#include "installer/print/trust_report.hpp"
#include "installer/upkeep/root_trial.hpp"
#include "installer/verbs/shared_options.hpp"
#include "installer/verbs/verbs.hpp"
#include "sealift/bundle/trust/trust_state.hpp"

namespace sealift::installer {

namespace {

struct TrustOptions {
  std::vector<std::filesystem::path> roots;
  std::filesystem::path prefix;
  std::string fingerprint;
  bool dry_run = false;
  std::vector<std::filesystem::path> against;
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

// What the site would be once it had accepted these roots, and what it would refuse then.
int run_dry_update(const TrustOptions& options) {
  const Prefix prefix(options.prefix);
  const std::vector<bundle::Envelope> roots = load_roots(options.roots);
  const bundle::TrustState before = bundle::trust_for_run(prefix.trust(), std::nullopt);
  const bundle::TrustState next = follow_roots(before, roots, options.roots.front().string());
  std::vector<std::filesystem::path> places = {prefix.folder()};
  places.insert(places.end(), options.against.begin(), options.against.end());
  const std::vector<RootVerdict> verdicts = try_root(next, roots, places, bundle::system_time());
  bundle::print(options.json, json_of(verdicts, next, before.root != next.root),
                text_of(verdicts) + (before.root != next.root ? "" : "nothing new: this root is accepted already\n"));
  return 0;
}

int run_update(const TrustOptions& options) {
  if (options.dry_run) return run_dry_update(options);
  if (!options.against.empty())
    throw bundle::Error(bundle::ErrorCode::Usage, {.what = "--against is for a run that changes nothing",
                                                   .where = options.against.front().string(),
                                                   .expected = "--dry-run beside it",
                                                   .next = "add --dry-run, or leave --against out"});
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
  update.flag("--dry-run", options->dry_run, "change nothing; say which generations and bundles would be refused");
  update.option("--against", options->against,
                "with --dry-run: more prefixes, bundles, and folders of bundles to judge");
  update.action([options] { return run_update(*options); });
  const bundle::Verb show = trust.verb("show", "print the root, its roles and what was accepted");
  show.alias("list");
  show.json(options->json);
  add_prefix(show, options->prefix);
  show.action([options] { return run_show(*options); });
}

}  // namespace sealift::installer
