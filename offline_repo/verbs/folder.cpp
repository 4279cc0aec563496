// SPDX-License-Identifier: Apache-2.0
// add, remove, switch: change the folder that `serve --watch` looks at. They talk to no server, so that they work
// before there is one, and what they did is there to be seen with ls and cat.
#include <cstdio>

#include "offline_repo/holdings/watched_folder.hpp"
#include "offline_repo/verbs/verbs.hpp"

namespace sealift::offline_repo {

namespace {

struct FolderOptions {
  std::filesystem::path folder, bundle;
  std::string stem;
  bool newest = false;
  bool json = false;
};

int done(const FolderOptions& options, const std::string& what, const std::string& text) {
  bundle::print(options.json, {{"done", what}, {"bundle", text}}, what + ": " + text + "\n");
  std::fprintf(stderr, "a server that watches this folder takes it up within --poll seconds, or at SIGHUP\n");
  return 0;
}

int run_add(const FolderOptions& options) {
  return done(options, "linked", add_bundle(options.folder, options.bundle).string());
}
int run_remove(const FolderOptions& options) {
  remove_bundle(options.folder, options.stem);
  return done(options, "no longer linked", options.stem);
}
int run_switch(const FolderOptions& options) {
  switch_bundle(options.folder, options.stem, options.newest);
  return done(options, options.newest ? "the newest version is to be served, of" : "to be served", options.stem);
}

bundle::Verb folder_verb(bundle::Program& program, const char* name, const char* what, FolderOptions& options) {
  const bundle::Verb verb = program.verb(name, what);
  verb.option("FOLDER", options.folder, "The folder of `serve --watch`").required();
  verb.json(options.json);
  return verb;
}

}  // namespace

void add_folder_verbs(bundle::Program& program) {
  const auto options = std::make_shared<FolderOptions>();
  const bundle::Verb add = folder_verb(program, "add", "Link a bundle into the folder that a server watches", *options);
  add.option("BUNDLE", options->bundle, "The folder of the bundle, or its seal").required();
  add.action([options] { return run_add(*options); });
  const bundle::Verb remove = folder_verb(program, "remove", "Take the link to a bundle out of that folder", *options);
  remove.option("BUNDLE", options->stem, "NAME-VERSION").required();
  remove.action([options] { return run_remove(*options); });
  const bundle::Verb change =
      folder_verb(program, "switch", "Serve this version of a bundle from now on, and no newer one", *options);
  change.option("BUNDLE", options->stem, "NAME-VERSION").required();
  change.flag("--newest", options->newest, "Serve the newest version again, whichever it is");
  change.action([options] { return run_switch(*options); });
}

}  // namespace sealift::offline_repo
