// SPDX-License-Identifier: Apache-2.0
// `sealift-verify sign`: a report in, the bytes that the site's key signs out, with the commands that do it.
// arguments -> are the pages those of the report? -> write the digest list -> print what is signed, and how.
// The key stays where it is: an HSM, a UKey or openssl on another machine signs report.digests.
#include "verify/report/digests.hpp"
#include "verify/report/folder.hpp"
#include "verify/report/signature.hpp"
#include "verify/verbs/verbs.hpp"

#include <fstream>

namespace sealift::verify {
namespace {

namespace fs = std::filesystem;

struct SignArguments {
  std::string folder, public_key;
};

void refuse_foreign_pages(const fs::path& folder) {
  const auto page = foreign_page(folder);
  if (!page) return;
  throw std::invalid_argument((folder / *page).string() +
                              " is not the page that report.json gives; it was changed, or made by another version: "
                              "sign with the program that ran the checks");
}

void print_commands(KeyKind kind, const SignArguments& arguments) {
  std::cout << "\n# " << name_of(kind) << ": sign, verify, verify the files\n";
  const auto key = arguments.public_key.empty() ? std::string("SITE.pub") : arguments.public_key;
  for (const auto& command : openssl_commands(kind, arguments.folder, key)) std::cout << command << '\n';
}

void export_digests(const SignArguments& arguments) {
  const fs::path folder = arguments.folder;
  refuse_foreign_pages(folder);
  std::vector<KeyKind> kinds{KeyKind::Ed25519, KeyKind::EcdsaP384, KeyKind::Sm2};
  if (!arguments.public_key.empty()) kinds = {read_site_key(arguments.public_key).kind};
  const auto list = digest_list(folder);
  std::ofstream out(folder / kDigestsFile, std::ios::binary);
  out << list;
  out.flush();
  if (!out) throw std::invalid_argument("cannot write " + (folder / kDigestsFile).string());
  std::cout << list;
  for (const auto kind : kinds) print_commands(kind, arguments);
}

}  // namespace

void add_sign(bundle::Program& program) {
  const auto arguments = std::make_shared<SignArguments>();
  const auto verb = program.verb("sign", "write OUT/report.digests, the bytes that the site's key signs");
  verb.option("OUT", arguments->folder, "the folder of the report").required();
  verb.option("--public-key", arguments->public_key, "print the commands for this key alone");
  verb.action([arguments] {
    export_digests(*arguments);
    return 0;
  });
}

}  // namespace sealift::verify
