// SPDX-License-Identifier: Apache-2.0
// The sentences that --help prints for these options, and what they become.
#include "installer/verbs/shared_options.hpp"

#include <algorithm>
#include <thread>

#include "installer/host/mending.hpp"
#include "sealift/bundle/trust/trust_folder.hpp"
#include "sealift/bundle/trust/trust_state.hpp"

namespace sealift::installer {

unsigned default_threads() {
  return std::clamp(std::thread::hardware_concurrency() + 1, 2u, 65u);
}

void add_bundle_options(const bundle::Verb& verb, BundleOptions& options, bool required) {
  verb.option("BUNDLE", options.bundle, "the bundle's folder, or its seal").required(required);
  add_bundle_trust(verb, options);
  add_threads(verb, options.threads);
}

void add_bundle_trust(const bundle::Verb& verb, BundleOptions& options) {
  verb.option("--volumes", options.volumes, "further folders in which the bundle's volumes lie");
  verb.option("--fingerprint", options.fingerprint,
              "the root to begin from (sha256:...), where PREFIX/trust has none; apply pins it");
  verb.flag("--allow-downgrade", options.allow_downgrade,
            "accept an older version than was accepted before, down to the rollback floors");
  verb.flag("--sandboxed-builds-only", options.sandboxed_builds_only,
            "refuse a bundle with a wheel that its packer built outside of a sandbox");
}

void add_prefix(const bundle::Verb& verb, std::filesystem::path& prefix, bool required) {
  verb.option("--prefix", prefix, "the folder that is installed into").required(required);
}

void add_threads(const bundle::Verb& verb, unsigned& threads) {
  verb.option("--threads", threads, "how many threads to use").between(1, 256);
}

void add_allow_other_name(const bundle::Verb& verb, bool& allow_other_name) {
  verb.flag("--allow-other-name", allow_other_name,
            "let a bundle of another name or channel take the place of the current one");
}

void add_additions(const bundle::Verb& verb, AdditionOptions& options) {
  verb.flag("--add", options.add,
            "add a bundle of models, data, images or packages of a system to the environment that is current");
  verb.flag("--drop-added", options.drop, "leave out what was added to the environment that is current");
}

Additions AdditionOptions::asked() const {
  if (add && drop)
    throw bundle::Error(bundle::ErrorCode::Usage,
                        {.what = "one of these options keeps what the other one drops",
                         .where = "--add, --drop-added",
                         .expected = "one of the two",
                         .next = "apply the environment's bundle with --drop-added, then this one with --add"});
  return add ? Additions::Add : drop ? Additions::Drop : Additions::Keep;
}

void add_compile_bytecode(const bundle::Verb& verb, bool& compile_bytecode) {
  verb.flag("--compile-bytecode", compile_bytecode, "compile every Python module once, into the generation");
}

ApplyOptions apply_options_of(const BundleOptions& bundle, const std::filesystem::path& prefix, bool compile_bytecode) {
  return {.bundle = bundle.bundle,
          .prefix = Prefix(prefix),
          .fingerprint = fingerprint_of(bundle.fingerprint),
          .allow_downgrade = bundle.allow_downgrade,
          .sandboxed_builds_only = bundle.sandboxed_builds_only,
          .machine = probe(),
          .threads = bundle.threads,
          .compile_bytecode = compile_bytecode,
          .volumes = bundle.volumes};
}

bundle::Trust trust_of(const BundleOptions& options, const std::filesystem::path& prefix) {
  const std::filesystem::path folder = prefix.empty() ? "" : Prefix(prefix).trust();
  return {.state = bundle::trust_for_run(folder, fingerprint_of(options.fingerprint)),
          .allow_downgrade = options.allow_downgrade,
          .sandboxed_builds_only = options.sandboxed_builds_only};
}

std::string trust_words(const BundleOptions& options, const std::filesystem::path& prefix) {
  std::string words = shell_option("--prefix", prefix);
  if (const std::string pinned = shell_option("--fingerprint", options.fingerprint); !pinned.empty())
    words += (words.empty() ? "" : " ") + pinned;
  return words;
}

bundle::VerifiedBundle verified_of(const BundleOptions& options, const std::filesystem::path& prefix,
                                   const bundle::Trust& trust, bool read_once) {
  bundle::OpenBundle opened = bundle::open(options.bundle);
  opened.more_folders = options.volumes;
  opened.read_once = read_once;
  opened.mending = mending_here(options.bundle, options.volumes, trust_words(options, prefix));
  return bundle::verify(opened, trust, bundle::system_time());
}

std::optional<bundle::Digest> fingerprint_of(const std::string& text) {
  if (text.empty()) return std::nullopt;
  return bundle::parse_fingerprint(text);
}

}  // namespace sealift::installer
