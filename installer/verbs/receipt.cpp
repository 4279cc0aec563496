// SPDX-License-Identifier: Apache-2.0
// receipt: the receipt of an installation, as a page to print or as the line of JSON that a site signs.
#include <iostream>
#include <memory>

#include "bundle/core/foreign_text.hpp"
#include "installer/generations/receipt.hpp"
#include "installer/verbs/shared_options.hpp"
#include "installer/verbs/verbs.hpp"

namespace sealift::installer {

namespace {

struct ReceiptOptions {
  unsigned generation = 0;  // the current one
  std::filesystem::path prefix;
  bool json = false;
};

int run(const ReceiptOptions& options) {
  const GenerationRecord record = record_for_receipt(Prefix(options.prefix), options.generation);
  std::cout << (options.json ? receipt_of(record) : bundle::terminal_text(receipt_page(record))) << std::flush;
  return 0;
}

}  // namespace

void add_receipt(bundle::Program& program) {
  const bundle::Verb verb = program.verb("receipt", "print what was installed, who signed it, and what was checked");
  const auto options = std::make_shared<ReceiptOptions>();
  verb.json(options->json);
  verb.option("N", options->generation, "the generation's number; without it the current one");
  add_prefix(verb, options->prefix);
  verb.action([options] { return run(*options); });
}

}  // namespace sealift::installer
