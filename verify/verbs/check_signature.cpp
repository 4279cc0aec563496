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

int say_bad(const std::string& why) {
  std::cout << "BAD: " << why << '\n';
  return trainer::kBad;
}

int check_signature(const CheckArguments& arguments) {
  const std::filesystem::path folder = arguments.folder;
  const auto key = read_site_key(arguments.public_key);
  const auto list = read_bounded(folder / kDigestsFile, 64 << 10);
  const auto signature = read_bounded(
      arguments.signature.empty() ? folder / kSignatureFile : std::filesystem::path(arguments.signature), 4096);
  if (!signature_holds(key, list, signature)) {
    return say_bad("the signature is not that of " + std::string(kDigestsFile) + " by " + name_of(key.kind) + " key " +
                   key.id);
  }
  if (const auto difference = difference_from_digests(list, folder)) return say_bad(*difference);
  std::cout << "GOOD: " << name_of(key.kind) << " key " << key.id << " signed this report:\n" << list;
  return 0;
}

}  // namespace

void add_check_signature(bundle::Program& program) {
  const auto arguments = std::make_shared<CheckArguments>();
  const auto verb = program.verb("check-signature", "check who signed a report, and that it is unchanged");
  verb.option("OUT", arguments->folder, "the folder of the report").required();
  verb.option("--public-key", arguments->public_key, "PEM file of the site's public key").required();
  verb.option("--signature", arguments->signature, "without: OUT/report.digests.sig");
  verb.action([arguments] { return check_signature(*arguments); });
}

}  // namespace sealift::verify
