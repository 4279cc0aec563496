// SPDX-License-Identifier: Apache-2.0
// Verify -> read the facts -> write, into a folder that gets its name at the end.
#include "packager/documents/documents.hpp"

#include <algorithm>

#include "bundle/core/foreign_text.hpp"
#include "packager/documents/bundle_facts.hpp"
#include "packager/documents/licence_table.hpp"
#include "packager/documents/provenance.hpp"
#include "packager/documents/review.hpp"
#include "packager/documents/sbom.hpp"
#include "packager/files/new_bundle_folder.hpp"
#include "sealift/bundle/payload/payload_writer.hpp"

namespace sealift::packager {

namespace fs = std::filesystem;

namespace {

fs::path new_folder(const fs::path& wanted) {
  fs::path folder = fs::absolute(wanted).lexically_normal();
  if (!folder.has_filename()) folder = folder.parent_path();
  std::error_code ignored;
  if (fs::exists(fs::symlink_status(folder, ignored)))
    throw bundle::Error(bundle::ErrorCode::Conflict, {.what = "this folder exists already and is not written into",
                                                      .where = folder.string(),
                                                      .next = "name a new folder with -o, or remove this one"});
  return folder;
}

void write_all(const BundleFacts& facts, const fs::path& folder) {
  const std::string stem = facts.manifest().stem();
  bundle::write_text(folder / (stem + ".cdx.json"), bundle::terminal_text(sbom_json(facts)) + "\n");
  bundle::write_text(folder / (stem + ".provenance.json"), bundle::terminal_text(provenance_json(facts)) + "\n");
  bundle::write_text(folder / "licences/licences.tsv", bundle::terminal_text(licence_table(facts)));
  for (const Language language : {Language::English, Language::Chinese}) {
    const std::string name = language == Language::English ? "review" : "review.zh";
    bundle::write_text(folder / (name + ".html"), review_html(facts, language));
    bundle::write_text(folder / (name + ".txt"), review_text(facts, language));
  }
}

}  // namespace

std::vector<fs::path> write_documents(const DocumentsOptions& options, bundle::Progress& progress) {
  const fs::path out = new_folder(options.out);
  const bundle::OpenBundle opened = bundle::open(options.bundle);
  const bundle::VerifiedBundle source =
      bundle::verify(opened, {.state = {.pinned = options.fingerprint}}, bundle::system_time());
  for (const std::string& warning : source.warnings()) progress.warn(warning);
  PartialFolder partial(out);
  fs::create_directory(partial.path() / "licences");
  write_all(read_bundle_facts(source, opened.seal, options.lock, partial.path() / "licences", progress),
            partial.path());
  std::vector<fs::path> files;
  for (const fs::directory_entry& file : fs::recursive_directory_iterator(partial.path()))
    if (file.is_regular_file()) files.push_back(out / file.path().lexically_relative(partial.path()));
  std::sort(files.begin(), files.end());
  partial.become(out);
  return files;
}

}  // namespace sealift::packager
