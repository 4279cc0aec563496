// SPDX-License-Identifier: Apache-2.0
// Plain text and not HTML: every printer and every terminal can show it, and nothing has to be escaped.
#include "installer/generations/receipt.hpp"

#include "installer/generations/generation.hpp"
#include "installer/generations/record_facts.hpp"
#include "installer/host/mending.hpp"
#include "installer/prefix/require_prefix.hpp"
#include "sealift/bundle/core/human_text.hpp"

namespace sealift::installer {

std::string receipt_of(const GenerationRecord& record) {
  bundle::Json json = bundle::parse_json(write_generation_record(record), "the generation's record");
  json["receipt"] = "a bundle was verified, installed, audited and tested by sealift-install";
  return bundle::write_json(json) + "\n";
}

std::string receipt_page(const GenerationRecord& record) {
  std::string text = "RECEIPT OF AN INSTALLATION\n\n";
  const auto line = [&text](const char* label, const std::string& value) { text += "  " + (label + value) + "\n"; };
  for (const GenerationRecord::Bundle& bundle : bundles_of(record)) {
    line(bundle.identity == record.identity ? "bundle      " : "added       ",
         words_for(bundle) + ", channel " + bundle.channel + ", packed " + bundle.created);
    line("identity    ", bundle::fingerprint_text(bundle.identity));
    for (const bundle::Digest& signer : bundle.signers) line("signed by   ", bundle::fingerprint_text(signer));
    line("under root  ",
         std::to_string(bundle.root.version) + ", " + bundle::fingerprint_text(bundle.root.fingerprint));
  }
  line("installed   ", record.installed + " as generation " + std::to_string(record.number));
  line("on host     ", record.host.empty() ? "not recorded" : record.host);
  line("audit       ", facts_of(record.audit));
  line("self-test   ", facts_of(record.self_check));
  if (!record.mended.empty())
    line("medium      ", "damaged, and mended from recovery data or other copies: " + text_of(record.mended));
  for (const std::string& warning : record.preflight) line("preflight   ", warning);
  line("entries     ", std::to_string(record.entries.size()) + ", by the SHA-256 of each");
  for (const GenerationRecord::Part& part : record.entries) text += "    " + part.item + "\n      " + part.path + "\n";
  line("receipt     ", bundle::fingerprint_text(bundle::sha256(bundle::as_bytes(receipt_of(record)))));
  return text + "\n  installed by ______________________    checked by ______________________    date ____________\n";
}

GenerationRecord record_for_receipt(const Prefix& prefix, unsigned number) {
  require_prefix(prefix);
  if (number == 0) number = current_generation(prefix).value_or(0);
  std::error_code ignored;
  if (number == 0 || !std::filesystem::is_directory(prefix.generation(number), ignored))
    throw bundle::Error(bundle::ErrorCode::Missing, {.what = "there is no such generation",
                                                     .where = prefix.folder().string(),
                                                     .got = number == 0 ? "none is current" : std::to_string(number),
                                                     .next = "see: sealift-install status"});
  return read_generation_record(prefix.generation(number), number);
}

SmallFiles receipt_files(const GenerationRecord& record, const Prefix& prefix) {
  const std::string stem = (prefix.receipts() / (Prefix::generation_name(record.number) + "-" + record.name + "-" +
                                                 std::to_string(record.version)))
                               .string();
  return {{stem + ".json", receipt_of(record)}, {stem + ".txt", receipt_page(record)}};
}

}  // namespace sealift::installer
