// SPDX-License-Identifier: Apache-2.0
// `sealift-verify check-signature`: a report, its digest list and a signature in; whether the site's key signed it out.
// arguments -> do the files agree with the list? -> does the signature hold? -> print.
// Exit codes: 0 signed as it is, 1 changed or not signed by this key, 2 a file or the key cannot be read.
#include "trainer/failure.hpp"
#include "verify/report/digests.hpp"
#include "verify/report/folder.hpp"
#include "verify/report/signature.hpp"
#include "verify/verbs/verbs.hpp"

namespace sealift::verify {
namespace {

struct CheckArguments {
  std::string folder, public_key, signature;
};

[[noreturn]] void say_bad(const std::string& why) {
  std::cout << "BAD: " << why << '\n';
  throw CLI::RuntimeError(trainer::kBad);
}

void check_signature(const CheckArguments& arguments) {
  const std::filesystem::path folder = arguments.folder;
  const auto key = read_site_key(arguments.public_key);
  const auto list = read_bounded(folder / kDigestsFile, 64 << 10);
  const auto signature = read_bounded(
      arguments.signature.empty() ? folder / kSignatureFile : std::filesystem::path(arguments.signature), 4096);
  if (!signature_holds(key, list, signature)) {
    say_bad("the signature is not that of " + std::string(kDigestsFile) + " by " + name_of(key.kind) + " key " +
            key.id);
  }
  if (const auto difference = difference_from_digests(list, folder)) say_bad(*difference);
  std::cout << "GOOD: " << name_of(key.kind) << " key " << key.id << " signed this report:\n" << list;
}

}  // namespace

void add_check_signature(CLI::App& app) {
  const auto arguments = std::make_shared<CheckArguments>();
  CLI::App* verb = app.add_subcommand("check-signature", "check who signed a report, and that it is unchanged");
  verb->add_option("OUT", arguments->folder, "the folder of the report")->required();
  verb->add_option("--public-key", arguments->public_key, "PEM file of the site's public key")->required();
  verb->add_option("--signature", arguments->signature, "without: OUT/report.digests.sig");
  verb->callback([arguments] { check_signature(*arguments); });
}

}  // namespace sealift::verify
