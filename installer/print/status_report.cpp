// SPDX-License-Identifier: Apache-2.0
// A generation with a damaged record is listed with the reason, and its number still says whether it is current.
#include "installer/print/status_report.hpp"

#include "installer/generations/record_facts.hpp"
#include "installer/print/signers.hpp"
#include "sealift/bundle/core/human_text.hpp"

namespace sealift::installer {

namespace {

bundle::Json generation_json(const GenerationRecord& record, bool current) {
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
          {"added", to_json(record.added)},
          {"audit", to_json(record.audit)},
          {"self_test", to_json(record.self_check)}};
}

bundle::Json failed_json(const FailedGeneration& failed) {
  return {{"generation", failed.number},
          {"name", failed.name},
          {"version", failed.version},
          {"identity", failed.identity.hex()},
          {"added_to", failed.added_to.empty() ? bundle::Json() : bundle::Json(failed.added_to)},
          {"failed", failed.failed},
          {"where", failed.where},
          {"got", failed.got}};
}

std::string failed_text(const FailedGeneration& failed, const std::filesystem::path& prefix) {
  return "! " + Prefix::generation_name(failed.number) + "  " + failed.name + " version " +
         std::to_string(failed.version) + (failed.added_to.empty() ? "" : ", added to " + failed.added_to) +
         ", failed its self-test " + failed.failed + ", kept in " + Prefix(prefix).failed().string() +
         "\n        tried     " + failed.where + "\n        got       " + failed.got + "\n";
}

}  // namespace

bundle::Json json_of(const Status& status) {
  bundle::Json generations = bundle::Json::array();
  for (const Status::Generation& generation : status.generations) {
    generations.push_back(generation.record ? generation_json(*generation.record, generation.number == status.current)
                                            : bundle::Json{{"generation", generation.number},
                                                           {"current", generation.number == status.current},
                                                           {"fault", generation.fault}});
    generations.back()["pinned"] = generation.pinned;
    generations.back()["venvs"] = bundle::Json::array();
    for (const std::filesystem::path& venv : generation.venvs) generations.back()["venvs"].push_back(venv.string());
    if (generation.record) generations.back()["variables"] = generation.variables;
  }
  return {{"prefix", status.prefix.string()},
          {"current", status.current ? bundle::Json(*status.current) : bundle::Json()},
          {"generations", std::move(generations)},
          {"failed", status.failed ? failed_json(*status.failed) : bundle::Json()}};
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
            bundle::fingerprint_text(record.identity) + "\n        signed by " + text_of(record.signers) +
            "\n        root      " + text_of(record.root) + "\n        audit     " + facts_of(record.audit) +
            "\n        self-test " + facts_of(record.self_check) + "\n";
    for (const GenerationRecord::Bundle& added : record.added)
      text += "        added     " + words_for(added) + ", " + bundle::fingerprint_text(added.identity) + "\n";
    for (const std::filesystem::path& venv : generation.venvs) text += "        venv      " + venv.string() + "\n";
    for (const auto& [name, value] : generation.variables) text += "        sets      " + name + "=" + value + "\n";
  }
  if (status.failed) text += failed_text(*status.failed, status.prefix);
  return text;
}

}  // namespace sealift::installer
