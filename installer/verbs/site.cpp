// SPDX-License-Identifier: Apache-2.0
// site repository: tells the prefix what the site serves packages, models and data from; without URL, prints it.
#include <memory>

#include "installer/upkeep/set_repository.hpp"
#include "installer/verbs/shared_options.hpp"
#include "installer/verbs/verbs.hpp"

namespace sealift::installer {

namespace {

struct SiteArguments {
  std::string url;
  std::filesystem::path certificates;
  std::filesystem::path prefix;
  bool none = false;
  bool json = false;
};

int run(const SiteArguments& arguments) {
  Disk disk;
  const Prefix prefix(arguments.prefix);
  const bool change = arguments.none || !arguments.url.empty();
  if ((arguments.none && !arguments.url.empty()) || (arguments.url.empty() && !arguments.certificates.empty()))
    throw bundle::Error(bundle::ErrorCode::Usage, {.what = "these do not belong together",
                                                   .where = "site repository",
                                                   .expected = "URL, URL --certificates FILE, --none, or nothing"});
  const SiteSettings settings =
      change ? set_repository(prefix, arguments.url, arguments.certificates, disk) : site_settings(prefix);
  std::string text;
  for (const auto& [name, value] : variables_of(settings)) text += "  " + name + "=" + value + "\n";
  bundle::print(
      arguments.json,
      {{"repository", settings.repository.empty() ? bundle::Json() : bundle::Json(settings.repository)},
       {"certificates", settings.certificates.empty() ? bundle::Json() : bundle::Json(settings.certificates.string())},
       {"variables", variables_of(settings)}},
      settings.repository.empty() ? "no repository\n" : settings.repository + ", so activation sets\n" + text);
  return 0;
}

}  // namespace

void add_site(bundle::Program& program) {
  const bundle::Verb site = program.verb("site", "what this site has beside its bundles");
  const auto arguments = std::make_shared<SiteArguments>();
  const bundle::Verb verb = site.verb("repository", "remember where packages, models and data are served");
  verb.json(arguments->json);
  verb.option("URL", arguments->url, "http:// or https://, without credentials; without it, print what is remembered");
  verb.option("--certificates", arguments->certificates,
              "a PEM file of the certificates that its server is checked by");
  verb.flag("--none", arguments->none, "forget it");
  add_prefix(verb, arguments->prefix);
  verb.action([arguments] { return run(*arguments); });
}

}  // namespace sealift::installer
