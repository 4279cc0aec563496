// SPDX-License-Identifier: Apache-2.0
// status: the generations of a prefix and which one is current. Reads only, without the prefix lock.
#include <memory>

#include "installer/print/status_report.hpp"
#include "installer/verbs/shared_options.hpp"
#include "installer/verbs/verbs.hpp"

namespace sealift::installer {

namespace {

struct StatusOptions {
  std::filesystem::path prefix;
  bool json = false;
};

int run(const StatusOptions& options) {
  const Status status = status_of(Prefix(options.prefix));
  bundle::print(options.json, json_of(status), text_of(status));
  return 0;
}

}  // namespace

void add_status(bundle::Program& program) {
  const bundle::Verb verb = program.verb("status", "list the generations of a prefix");
  const auto options = std::make_shared<StatusOptions>();
  verb.json(options->json);
  add_prefix(verb, options->prefix);
  verb.action([options] { return run(*options); });
}

}  // namespace sealift::installer
