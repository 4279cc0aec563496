// SPDX-License-Identifier: Apache-2.0
// Only words and keys; whoever made the values has decided everything.
// Digests are printed whole: an operator compares them with a sheet of paper.
#include "installer/print/report.hpp"

#include "sealift/bundle/manifest/target_profile.hpp"

namespace sealift::installer {

using bundle::Json;

namespace {

Json fingerprints(const std::vector<bundle::Digest>& digests) {
  Json list = Json::array();
  for (const bundle::Digest& digest : digests) list.push_back(fingerprint(digest));
  return list;
}

std::string text_of(const std::vector<bundle::Digest>& digests) {
  std::string text;
  for (const bundle::Digest& digest : digests) text += (text.empty() ? "" : ", ") + fingerprint(digest);
  return text;
}

Json json_of(const bundle::RootName& root) {
  return {{"version", root.version}, {"fingerprint", fingerprint(root.fingerprint)}};
}

std::string text_of(const bundle::RootName& root) {
  return std::to_string(root.version) + ", " + fingerprint(root.fingerprint);
}

std::string headline(const Applied& applied, bool dry_run) {
  const std::string bundle = applied.name + " version " + std::to_string(applied.version);
  const std::string generation = "generation " + std::to_string(applied.generation);
  switch (applied.action) {
    case Plan::Action::Nothing:
      return "already installed: " + bundle + " is " + generation + ", which is current; nothing to do\n";
    case Plan::Action::SwitchTo:
      return (dry_run ? "would switch back to " : "switched back to ") + bundle + ", which is installed as " +
             generation + "\n";
    case Plan::Action::Install:
      break;
  }
  return (dry_run ? "would install " : "installed ") + bundle + " as " + generation + "\n";
}

Json json_of(const GenerationRecord& record, bool current) {
  return {{"generation", record.number},
          {"current", current},
          {"name", record.name},
          {"version", record.version},
          {"channel", record.channel},
          {"identity", record.identity.hex()},
          {"signers", fingerprints(record.signers)},
          {"root", json_of(record.root)},
          {"installed", record.installed},
          {"entries", record.entries.size()},
          {"audit", to_json(record.audit)},
          {"self_test", to_json(record.self_test)}};
}

Json json_of(const FailedGeneration& failed) {
  return {{"generation", failed.number},
          {"name", failed.name},
          {"version", failed.version},
          {"identity", failed.identity.hex()},
          {"failed", failed.failed},
          {"where", failed.where},
          {"got", failed.got}};
}

std::string text_of(const FailedGeneration& failed, const std::filesystem::path& prefix) {
  return "! " + Prefix::generation_name(failed.number) + "  " + failed.name + " version " +
         std::to_string(failed.version) + ", failed its self-test " + failed.failed + ", kept in " +
         Prefix(prefix).failed().string() + "\n        tried     " + failed.where + "\n        got       " +
         failed.got + "\n";
}

}  // namespace

std::string fingerprint(const bundle::Digest& digest) {
  return "sha256:" + digest.hex();
}

std::string facts_of(const Audit& audit) {
  return std::to_string(audit.files) + " files in " + std::to_string(audit.folders) + " folders, " +
         human_bytes(audit.bytes) + ", " + std::to_string(audit.shared) + " shared with the store; " +
         std::to_string(audit.wheels) + " wheels, " + std::to_string(audit.record_rows) + " RECORD rows";
}

std::string facts_of(const SelfTest& test) {
  std::string text;
  for (const std::string& module : test.imports) text += (text.empty() ? "imported " : ", ") + module;
  text = test.imports.empty() ? "no imports asked for" : text + " in " + std::to_string(test.milliseconds) + " ms";
  for (const SelfTest::Step& step : test.steps)
    text += "\n            " + step.name + (step.passed ? ": passed, " : ": not run, ") + step.detail;
  return text;
}

Json json_of(const bundle::Error& error) {
  Json json = {{"code", std::string(bundle::name_of(error.code()))}, {"exit", error.exit_code()}};
  const bundle::Facts& facts = error.facts();
  json["what"] = facts.what;
  if (!facts.where.empty()) json["where"] = facts.where;
  if (!facts.expected.empty()) json["expected"] = facts.expected;
  if (!facts.got.empty()) json["got"] = facts.got;
  if (!facts.next.empty()) json["next"] = facts.next;
  return json;
}

Json json_of(const Machine& machine) {
  const bundle::Target& target = machine.target;
  const auto known = [](const std::string& text) { return text.empty() ? Json() : Json(text); };
  const bool libc = target.glibc != bundle::GlibcVersion{};
  return {{"arch", target.arch},
          {"glibc", libc ? Json(target.glibc.text()) : Json()},
          {"libc", known(machine.libc.string())},
          {"glibcxx", known(target.glibcxx)},
          {"cxxabi", known(target.cxxabi)},
          {"distribution", known(target.distribution)},
          {"kernel", known(target.kernel)},
          {"cpu", known(target.cpu)},
          {"flags", target.flags},
          {"gpus", target.gpus},
          {"driver", known(target.driver)},
          {"python", target.python},
          {"crypto", target.crypto},
          {"free_gib", target.free_gib ? Json(*target.free_gib) : Json()},
          {"check", bundle::profile_check(target)}};
}

std::string text_of(const Machine& machine) {
  std::string text = "# Save as a file; a job: [target] profile = \"FILE.toml\"\n";
  if (machine.libc.empty()) text += "# glibc: no libc.so.6 of this architecture was found\n";
  return text + bundle::write_profile(machine.target);
}

Json json_of(const bundle::TrustState& state) {
  const bundle::Root root = bundle::parse_root(state.root, "the accepted root");
  Json roles = Json::array(), seen = Json::array();
  for (const auto& [name, role] : root.roles)
    roles.push_back({{"role", name},
                     {"threshold", role.threshold},
                     {"keys", fingerprints(role.keys)},
                     {"algorithms", role.algorithms}});
  for (const auto& [stream, version] : state.seen)
    seen.push_back({{"channel", stream.channel},
                    {"name", stream.name},
                    {"version", version.version},
                    {"identity", version.manifest.hex()},
                    {"floor", version.floor}});
  return {{"pinned", fingerprint(*state.pinned)},
          {"root",
           {{"version", root.version},
            {"fingerprint", fingerprint(bundle::sha256(bundle::as_bytes(state.root)))},
            {"name", root.name},
            {"profile", bundle::name_of(root.profile)},
            {"expires", root.expires},
            {"strict", root.strict}}},
          {"roles", std::move(roles)},
          {"revoked_keys", root.revoked_keys.size()},
          {"revoked_bundles", root.revoked_bundles.size()},
          {"seen", std::move(seen)},
          {"time_floor", bundle::write_time(state.time_floor)}};
}

Json json_of(const TrustChange& change) {
  Json json = json_of(change.state);
  json["changed"] = change.changed;
  return json;
}

std::string text_of(const bundle::TrustState& state) {
  const bundle::Root root = bundle::parse_root(state.root, "the accepted root");
  std::string text = "pinned      " + fingerprint(*state.pinned) + "\nroot " + std::to_string(root.version) + "      " +
                     fingerprint(bundle::sha256(bundle::as_bytes(state.root))) + "\n            " + root.name +
                     ", profile " + bundle::name_of(root.profile) + ", until " + root.expires +
                     (root.strict ? ", strict" : "") + "\n";
  for (const auto& [name, role] : root.roles) {
    text += name + std::string(12 - name.size(), ' ') + std::to_string(role.threshold) + " of " +
            std::to_string(role.keys.size()) + " keys\n";
    for (const bundle::Digest& id : role.keys)
      text += "  " + fingerprint(id) + "  " + root.keys.at(id).algorithm + "\n";
  }
  const auto revoked = [&text](const char* what, const bundle::Revocations& list) {
    for (const auto& [digest, why] : list)
      text += std::string("revoked ") + what + " " + fingerprint(digest) + "  " + why.date + "  " +
              bundle::SafePath::printable(why.reason) + "\n";
  };
  revoked("key   ", root.revoked_keys);
  revoked("bundle", root.revoked_bundles);
  for (const auto& [stream, version] : state.seen)
    text += "accepted    " + stream.text() + " version " + std::to_string(version.version) + ", floor " +
            std::to_string(version.floor) + "\n";
  return text + "time floor  " + bundle::write_time(state.time_floor) + "\n";
}

Json json_of(const Verification& verification) {
  Json failures = Json::array();
  for (const bundle::Error& failure : verification.failures) failures.push_back(json_of(failure));
  return {{"verified", verification.failures.empty()},
          {"name", verification.name},
          {"version", verification.version},
          {"channel", verification.channel},
          {"created", verification.created},
          {"target", {{"arch", verification.target.arch}, {"glibc", verification.target.glibc.text()}}},
          {"identity", verification.identity.hex()},
          {"signers", fingerprints(verification.signers)},
          {"root", json_of(verification.root)},
          {"warnings", verification.warnings},
          {"entries", verification.entries},
          {"absent", verification.absent},
          {"base", verification.base ? Json(fingerprint(*verification.base)) : Json()},
          {"volumes", verification.volumes},
          {"chunks", verification.chunks},
          {"bytes", verification.bytes},
          {"failures", std::move(failures)}};
}

std::string text_of(const Verification& verification) {
  return "verified " + verification.name + " version " + std::to_string(verification.version) + "\n  identity  " +
         fingerprint(verification.identity) + "\n  signed by " + text_of(verification.signers) + "\n  root      " +
         text_of(verification.root) + "\n  created   " + verification.created + ", channel " + verification.channel +
         ", for " + verification.target.arch + " with glibc " + verification.target.glibc.text() +
         " or newer\n  contents  " + std::to_string(verification.entries) + " entries, " +
         (verification.base ? std::to_string(verification.absent) + " of them not carried, " : "") +
         std::to_string(verification.bytes) + " bytes in " + std::to_string(verification.chunks) + " chunks and " +
         std::to_string(verification.volumes) + " volume(s), every byte read\n" +
         (verification.base ? "  delta to  the inventory " + fingerprint(*verification.base) + "\n" : "");
}

Json json_of(const Applied& applied, const ApplyOptions& options) {
  Json json = {{"action", std::string(name_of(applied.action))},
               {"dry_run", options.dry_run},
               {"name", applied.name},
               {"version", applied.version},
               {"identity", applied.identity.hex()},
               {"signers", fingerprints(applied.signers)},
               {"root", json_of(applied.root)},
               {"warnings", applied.warnings},
               {"preflight", warnings_of(applied.findings)},
               {"prefix", options.prefix.root().string()},
               {"generation", applied.generation},
               {"unpack", applied.unpacked},
               {"reuse", applied.reused},
               {"needed_bytes", applied.needed_bytes},
               {"free_bytes", applied.free.bytes},
               {"needed_inodes", applied.needed_inodes},
               {"free_inodes", std::min(applied.free.inodes, bundle::kMaxJsonInteger)}};
  if (applied.record) {
    json["audit"] = to_json(applied.record->audit);
    json["self_test"] = to_json(applied.record->self_test);
  }
  return json;
}

std::string text_of(const Applied& applied, const ApplyOptions& options) {
  std::string text = headline(applied, options.dry_run);
  const auto line = [&text](const char* label, const std::string& value) { text += "  " + (label + value) + "\n"; };
  line("identity  ", fingerprint(applied.identity));
  line("signed by ", text_of(applied.signers));
  line("root      ", text_of(applied.root));
  if (applied.action == Plan::Action::Install) {
    line("entries   ", std::to_string(applied.unpacked.size()) + " unpacked, " + std::to_string(applied.reused.size()) +
                           " reused from the store");
    if (options.dry_run) {
      for (const std::string& path : applied.unpacked) line("new       ", path);
      for (const std::string& path : applied.reused) line("reused    ", path);
    }
    line("room      ", human_bytes(applied.needed_bytes) + " and " + std::to_string(applied.needed_inodes) +
                           " inodes at most, of " + human_bytes(applied.free.bytes) + " free");
  }
  if (applied.record) {
    line("audit     ", facts_of(applied.record->audit));
    line("self-test ", facts_of(applied.record->self_test));
  }
  if (!options.dry_run) line("use it    ", (options.prefix.current() / "bin").string());
  return text;
}

Json json_of(const Status& status) {
  Json generations = Json::array();
  for (const Status::Generation& generation : status.generations) {
    generations.push_back(generation.record ? json_of(*generation.record, generation.number == status.current)
                                            : Json{{"generation", generation.number},
                                                   {"current", generation.number == status.current},
                                                   {"fault", generation.fault}});
    generations.back()["pinned"] = generation.pinned;
  }
  return {{"prefix", status.prefix.string()},
          {"current", status.current ? Json(*status.current) : Json()},
          {"generations", std::move(generations)},
          {"failed", status.failed ? json_of(*status.failed) : Json()}};
}

std::string text_of(const Status& status) {
  std::string text = status.generations.empty() ? "no generation in " + status.prefix.string() + "\n" : "";
  for (const Status::Generation& generation : status.generations) {
    const bool current = generation.number == status.current;
    text += (current ? "* " : "  ") + Prefix::generation_name(generation.number) + "  ";
    if (!generation.record) {
      text += "damaged: " + generation.fault + (generation.pinned ? ", pinned" : "") + "\n";
      continue;
    }
    const GenerationRecord& record = *generation.record;
    text += record.name + " version " + std::to_string(record.version) + ", installed " + record.installed +
            (current ? ", current" : "") + (generation.pinned ? ", pinned" : "") + "\n        identity  " +
            fingerprint(record.identity) + "\n        signed by " + text_of(record.signers) + "\n        root      " +
            text_of(record.root) + "\n        audit     " + facts_of(record.audit) + "\n        self-test " +
            facts_of(record.self_test) + "\n";
  }
  if (status.failed) text += text_of(*status.failed, status.prefix);
  return text;
}

}  // namespace sealift::installer
