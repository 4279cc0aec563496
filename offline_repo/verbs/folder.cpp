// SPDX-License-Identifier: Apache-2.0
// add, remove, switch: change the folder that `serve --watch` looks at. They talk to no server, so that they work
// before there is one, and what they did is there to be seen with ls and cat.
#include <cstdio>

#include "offline_repo/holdings/watched_folder.hpp"
#include "offline_repo/verbs/verbs.hpp"

namespace sealift::offline_repo {

namespace {

constexpr char kTakenUp[] = "a server that watches this folder takes it up within --poll seconds, or at SIGHUP\n";

struct FolderOptions {
  std::filesystem::path folder, bundle;
  std::string stem;
  bool newest = false;
  bool json = false;
};

int done(const FolderOptions& options, const std::string& what, const std::string& text) {
  bundle::print(options.json, {{"done", what}, {"bundle", text}}, what + ": " + text + "\n");
  std::fprintf(stderr, "%s", kTakenUp);
  return 0;
}

int run_add(const FolderOptions& options) {
  return done(options, "linked", add_bundle(options.folder, options.bundle).string());
}

// What clients of the stream are served from now on, and the command that serves them something.
std::string of_stream(const Removed& removed, const FolderOptions& options) {
  const std::string stream = removed.stream.text(), folder = options.folder.string();
  if (removed.stream.name.empty()) return "its seal cannot be read, so nobody knows which bundle this was";
  if (!removed.was_current) return "what is current of " + stream + " stays so";
  if (removed.left.empty())
    return "no version of " + stream + " is left here: its names are 404 from now on. Next: sealift-repo add " +
           folder + " BUNDLE";
  std::string text = "a server that has served it makes no older version current by itself: the names of " + stream +
                     " are 404 from now on; kept:";
  for (const std::string& stem : removed.left) text += " " + stem;
  return text + ". Next: sealift-repo switch " + folder + " " + removed.left.front();
}

// A delta brings the versions below it along, so what went may have been served though it was not the highest.
std::string after_removal(const Removed& removed, const FolderOptions& options) {
  std::string text = of_stream(removed, options);
  for (const DeltaAlone& delta : removed.deltas)
    text += "\n" + delta.stem + " is a delta, and no bundle here carries " + std::to_string(delta.files) +
            " of the files that it leaves out any more, such as " + delta.first +
            ": they are not served. Next: sealift-repo add " + options.folder.string() + " " + removed.bundle.string();
  return text;
}

int run_remove(const FolderOptions& options) {
  const Removed removed = remove_bundle(options.folder, options.stem);
  const std::string then = after_removal(removed, options);
  bundle::print(options.json,
                {{"done", "no longer linked"},
                 {"bundle", options.stem},
                 {"was_current", removed.was_current},
                 {"kept", removed.left},
                 {"then", then}},
                "no longer linked: " + options.stem + "\n" + then + "\n");
  std::fprintf(stderr, "%s", kTakenUp);
  return 0;
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
