// SPDX-License-Identifier: Apache-2.0
// Verify -> read every chunk once -> read every wheel -> write, into a folder that gets its name at the end.
#include "packager/documents/documents.hpp"

#include <algorithm>

#include "packager/files/new_bundle_folder.hpp"
#include "packager/documents/provenance.hpp"
#include "packager/documents/review.hpp"
#include "packager/documents/sbom.hpp"
#include "sealift/bundle/payload/payload_writer.hpp"

namespace sealift::packager {

namespace fs = std::filesystem;
using bundle::Error;
using bundle::ErrorCode;

namespace {

// A volume holds whole chunks, so one pass checks every chunk and digests every file.
std::vector<bundle::Digest> digest_volumes(const bundle::VerifiedBundle& source, Console& console) {
  const bundle::PayloadReader& reader = source.payload();
  const bundle::Payload& payload = source.manifest().payload;
  Progress progress(console, "reading " + source.manifest().stem(), payload.size);
  std::vector<bundle::Digest> digests;
  bundle::Hasher hasher;
  bundle::ChunkBuffer memory;
  std::uint64_t done = 0;
  for (std::uint64_t index = 0; index < payload.chunk_count(); ++index) {
    reader.will_need(index + 1);
    memory = reader.chunk(index, std::move(memory));
    hasher.update(memory.view());
    progress.add(memory.size());
    done += memory.size();
    if (done < payload.volumes[digests.size()].size) continue;
    digests.push_back(hasher.finish());
    done = 0;
  }
  progress.finish();
  return digests;
}

PaperWheel read_wheel(const bundle::VerifiedBundle& source, const bundle::Entry& entry, const fs::path& licences,
                      PlainNames& folders) {
  const std::string path = entry.path.text(), where = source.manifest().stem() + ":" + path;
  if (entry.absent) {
    PaperWheel paper{.carried = false};
    if (const auto name = bundle::parse_wheel_name(path.substr(path.rfind('/') + 1))) {
      paper.facts.project = shown(name->name);
      paper.facts.version = shown(name->version);
    }
    return paper;
  }
  if (entry.encoding != bundle::Encoding::Identity)
    throw Error(ErrorCode::CannotCheck, {.what = "a wheel is stored compressed",
                                         .where = where,
                                         .expected = "a wheel stored as it was published",
                                         .next = "pack the bundle again with this version of sealift-pack"});
  const std::unique_ptr<bundle::ByteSource> bytes = source.stored(entry);
  try {
    bundle::Wheel wheel(*bytes, path.substr(path.rfind('/') + 1));
    PaperWheel paper{.carried = true, .facts = read_wheel_facts(wheel.metadata()), .folder = {}, .licences = {}};
    if (paper.facts.project.empty()) paper.facts.project = shown(wheel.name().name);  // behind too many other headers
    if (paper.facts.version.empty()) paper.facts.version = shown(wheel.name().version);
    const std::string folder = folders.take(wheel.name().name + "-" + wheel.name().version);
    paper.licences = collect_licences(wheel, paper.facts, licences / folder);
    if (!paper.licences.files.empty()) paper.folder = folder;
    return paper;
  } catch (const Error& error) {
    throw error.within("while reading " + where);
  }
}

// A lock is not signed. Its addresses are taken only when it is the one that this bundle was made from: same name and
// version, and every wheel of one is in the other, by digest.
Lock read_own_lock(const fs::path& file, const bundle::Manifest& manifest) {
  Lock lock = read_lock(file);
  std::set<bundle::Digest> locked, carried;
  for (const LockedWheel& wheel : lock.wheels) locked.insert(wheel.sha256);
  for (const bundle::Entry& entry : manifest.entries)
    if (entry.kind == bundle::EntryKind::Wheel) carried.insert(entry.sha256);
  if (lock.stem() != manifest.stem() || lock.channel != manifest.channel || locked != carried)
    throw Error(ErrorCode::Conflict, {.what = "the bundle was not made from this lock",
                                      .where = file.string(),
                                      .expected = manifest.stem() + " of channel " + manifest.channel + " with " +
                                                  std::to_string(carried.size()) + " wheels",
                                      .got = lock.stem() + " of channel " + lock.channel + " with " +
                                             std::to_string(locked.size()) + " wheels, not all the same",
                                      .next = "name the lock that create was given, or leave --lock out"});
  return lock;
}

// A table for spreadsheets. shown() leaves no tab and no line break in any field; a field that a spreadsheet would take
// for a formula gets an apostrophe.
std::string cell(const std::string& text) {
  return !text.empty() && std::string_view("=+-@").find(text.front()) != std::string_view::npos ? "'" + text : text;
}

std::string licence_table(const PaperFacts& facts) {
  std::string out = "component\tversion\tlicence\tfiles\tleft out\n";
  const auto joined = [](const std::vector<std::string>& texts, const std::string& prefix) {
    std::string line;
    for (const std::string& text : texts) line += (line.empty() ? "" : "; ") + prefix + text;
    return line;
  };
  for (const auto& [path, wheel] : facts.wheels)
    out += cell(wheel.facts.project) + "\t" + cell(wheel.facts.version) + "\t" +
           cell(wheel.carried ? wheel.facts.licence() : "not carried") + "\t" +
           joined(wheel.licences.files, wheel.folder + "/") + "\t" + cell(joined(wheel.licences.left_out, "")) + "\n";
  for (const auto& [path, deb] : facts.debs)
    out += cell(deb.name) + "\t" + cell(deb.version) + "\t\t\tusr/share/doc/" + deb.name + "/copyright in " +
           shown(path.substr(path.rfind('/') + 1)) + ": not opened\n";
  return out;
}

void refuse_existing_papers(const fs::path& folder) {
  std::error_code ignored;
  if (fs::exists(fs::symlink_status(folder, ignored)))
    throw Error(ErrorCode::Conflict, {.what = "this folder exists already and is not written into",
                                      .where = folder.string(),
                                      .next = "name a new folder with -o, or remove this one"});
}

}  // namespace

std::string serial_number(const bundle::Digest& identity) {
  std::string hex = identity.hex().substr(0, 32);
  hex[12] = '8';                                                       // the version
  hex[16] = "89ab"[hex[16] <= '9' ? hex[16] & 3 : (hex[16] + 1) & 3];  // the variant; two bits of the digest are kept
  for (const std::size_t at : {20, 16, 12, 8}) hex.insert(at, "-");
  return "urn:uuid:" + hex;
}

std::vector<fs::path> write_papers(const PapersOptions& options, Console& console) {
  fs::path out = fs::absolute(options.out).lexically_normal();
  if (!out.has_filename()) out = out.parent_path();
  refuse_existing_papers(out);
  const bundle::OpenBundle opened = bundle::open(options.bundle);
  const bundle::VerifiedBundle source =
      bundle::verify(opened, {.state = {.pinned = options.fingerprint}}, bundle::system_time());
  for (const std::string& warning : source.warnings()) console.warn(warning);
  // What was parsed has one spelling, so these are the file's bytes without reading it again.
  const std::string seal = write_seal(opened.seal);
  PaperFacts facts{.source = source,
                   .seal = bundle::sha256(bundle::as_bytes(seal)),
                   .seal_size = seal.size(),
                   .volumes = {},
                   .wheels = {},
                   .debs = read_deb_facts(source)};
  if (!options.lock.empty()) facts.lock = read_own_lock(options.lock, source.manifest());
  facts.volumes = digest_volumes(source, console);

  PartialFolder partial(out);
  const fs::path licences = partial.path() / "licences";
  fs::create_directory(licences);
  PlainNames folders;
  folders.take("licences.tsv");  // stays the table's
  for (const bundle::Entry& entry : source.manifest().entries)
    if (entry.kind == bundle::EntryKind::Wheel)
      facts.wheels.emplace(entry.path.text(), read_wheel(source, entry, licences, folders));

  const std::string stem = source.manifest().stem();
  bundle::write_text(partial.path() / (stem + ".cdx.json"), sbom_json(facts) + "\n");
  bundle::write_text(partial.path() / (stem + ".provenance.json"), provenance_json(facts) + "\n");
  bundle::write_text(licences / "licences.tsv", licence_table(facts));
  for (const Language language : {Language::English, Language::Chinese}) {
    const std::string name = language == Language::English ? "review" : "review.zh";
    bundle::write_text(partial.path() / (name + ".html"), review_html(facts, language));
    bundle::write_text(partial.path() / (name + ".txt"), review_text(facts, language));
  }
  std::vector<fs::path> files;
  for (const fs::directory_entry& file : fs::recursive_directory_iterator(partial.path()))
    if (file.is_regular_file()) files.push_back(out / file.path().lexically_relative(partial.path()));
  std::sort(files.begin(), files.end());
  partial.become(out);
  return files;
}

}  // namespace sealift::packager
