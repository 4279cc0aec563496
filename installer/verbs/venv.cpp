// SPDX-License-Identifier: Apache-2.0
// venv: a virtual environment on top of a generation, for packages of one's own.
#include <memory>

#include "installer/activation/venv.hpp"
#include "installer/verbs/shared_options.hpp"
#include "installer/verbs/verbs.hpp"

namespace sealift::installer {

namespace {

struct VenvArguments {
  std::filesystem::path folder;
  std::filesystem::path prefix;
  unsigned generation = 0;
  bool json = false;
};

std::string text_of(const Venv& venv) {
  return venv.folder.string() + " is on generation " + std::to_string(venv.generation) + "\n  activate   . " +
         (venv.folder / "bin/activate").string() + "\n  packages   " +
         (venv.repository.empty() ? "no repository is known: sealift-install site repository URL" : venv.repository) +
         "\n" + (venv.has_pip ? "" : "  pip        this generation brings none: use uv, or python -m ensurepip\n");
}

int run(const VenvArguments& arguments) {
  Disk disk;
  const Venv venv = make_venv(
      {.prefix = Prefix(arguments.prefix), .folder = arguments.folder, .generation = arguments.generation}, disk);
  if (!venv.known)
    bundle::print_warnings(
        {"gc does not know of this environment, since the prefix is not yours: ask its owner for "
         "sealift-install pin " +
         std::to_string(venv.generation)});
  bundle::print(arguments.json,
                {{"folder", venv.folder.string()},
                 {"generation", venv.generation},
                 {"known", venv.known},
                 {"pip", venv.has_pip},
                 {"repository", venv.repository.empty() ? bundle::Json() : bundle::Json(venv.repository)}},
                text_of(venv));
  return 0;
}

}  // namespace

void add_venv(bundle::Program& program) {
  const bundle::Verb verb = program.verb("venv", "make a virtual environment on top of a generation");
  const auto arguments = std::make_shared<VenvArguments>();
  verb.json(arguments->json);
  verb.option("DIR", arguments->folder, "the folder to make, or a virtual environment of this verb").required();
  add_prefix(verb, arguments->prefix);
  verb.option("--generation", arguments->generation, "the generation's number; the current one without it");
  verb.action([arguments] { return run(*arguments); });
}

}  // namespace sealift::installer
