// SPDX-License-Identifier: Apache-2.0
// Claims are kept until all are there, since an [[owner]] rule decides between two; see place_claims.hpp.
#include "packager/owners/place_claims.hpp"

#include <optional>

#include "packager/host/refusals.hpp"
#include "sealift/bundle/core/own_places.hpp"
#include "sealift/bundle/wheel/installed_path.hpp"
#include "sealift/bundle/wheel/package_owners.hpp"
#include "sealift/bundle/wheel/wheel_places.hpp"

namespace sealift::packager {

using bundle::Error;
using bundle::ErrorCode;
using bundle::SafePath;

PlaceClaims::PlaceClaims(const Lock& lock) : lock_(lock), site_packages_(bundle::site_packages_of(lock.python)) {
  owners_.claim(std::string(bundle::kGenerationRecord), "the installer's own record");
}

void PlaceClaims::claim(const Content& content, const Installed& installed) {
  for (const Installed::File& one : installed.files) {
    owners_.claim(one.place, content.owner, one.sha256, one.yields);
    if (content.kind != Content::Kind::Wheel) require_place(content, one.place);
    if (content.kind != Content::Kind::Wheel) continue;
    libraries_.insert(one.place.substr(one.place.rfind('/') + 1));
    if (!one.packaged.empty()) packaged_.push_back({one, content.owner});
  }
  startup_.emplace_back(installed.startup, content.owner);
  needs_.emplace_back(content.owner, installed.needs);
  used_startup_files_ += installed.may_run.size();
  left_out_bytecode_ += installed.left_out_bytecode;
  if (installed.misdescribed != 0)
    misdescribed_.push_back(content.name + " (" + std::to_string(installed.misdescribed) + " file(s))");
}

PlaceClaims::Settled PlaceClaims::settle_owners() {
  Settled settled;
  Refusals refusals;  // a path with two owners does not hide a package with two
  refusals.ask([&] {
    settled.left_out = settle(owners_, lock_.owners, site_packages_, settled.unused);
    owners_.check();
  });
  refusals.ask([&] {
    try {
      settled.shares = settle_packages(refusals.any() ? undecided() : settled.left_out);
    } catch (const Error& error) {  // whether a rule fits is known when all paths are decided
      if (!refusals.any() || error.code() != ErrorCode::Usage) throw;
    }
  });
  refusals.refuse("collisions of packages", "do for each of them what stands below it, and lock again");
  require_libraries();
  require_startup_files();
  return settled;
}

// As if each path with two owners were that of its natural one: a wheel that is left out of it is no guest by it.
LeftOut PlaceClaims::undecided() const {
  LeftOut left_out;
  for (const PathOwners::Contested& contested : owners_.contested())
    for (const std::string& owner : contested.owners)
      if (owner != contested.natural) left_out[owner].insert(contested.path);
  return left_out;
}

Shares PlaceClaims::settle_packages(const LeftOut& left_out) const {
  bundle::PackageOwners packages;
  SharedPackages shared(lock_.shared);
  for (const auto& [wheel, needs] : needs_) shared.note_needs(wheel, needs);
  for (const auto& [file, wheel] : packaged_) {  // a file that is left out makes nobody a second owner
    if (const auto out = left_out.find(wheel); out != left_out.end() && out->second.contains(file.place)) {
      shared.note_left_out(file.packaged, wheel);
      continue;
    }
    packages.claim(file.packaged, wheel, file.empty);
    shared.note_file(file.packaged, wheel);
    if (file.yields && file.packaged.find('/') == file.packaged.rfind('/'))
      shared.note_namespace(file.packaged.substr(0, file.packaged.find('/')));
  }
  for (const auto& [startup, wheel] : startup_) packages.claim(startup, wheel);
  Shares shares = shared.settle(packages);
  packages.check();
  return shares;
}

// What a job places where only wheels, the interpreter or the runtime may: the installer refuses it too.
void PlaceClaims::require_place(const Content& content, const std::string& place) const {
  std::optional<bundle::PlaceFault> fault;
  if (content.kind != Content::Kind::Interpreter)
    fault = bundle::fault_of_entry_place(place, "bin/python" + lock_.python);
  else if (place.starts_with(site_packages_ + "/"))
    fault = bundle::PlaceFault{
        .code = ErrorCode::Conflict, .why = "site-packages belongs to wheels", .next = "run lock again"};
  if (const auto own = bundle::fault_of_own_entry(place, content.entry))
    fault = bundle::PlaceFault{
        .code = ErrorCode::Conflict, .why = *own, .next = "choose another place for it: into = \"...\""};
  if (!fault) return;
  throw Error(fault->code, {.what = "something would lie where it must not: " + fault->why,
                            .where = content.owner,
                            .got = SafePath::printable(place),
                            .next = fault->next});
}

void PlaceClaims::require_startup_files() const {
  if (used_startup_files_ >= lock_.startup_files.size()) return;
  throw Error(ErrorCode::Usage, {.what = "a start-up file is allowed that its package does not have",
                                 .where = "[[startup]] of the job file",
                                 .expected = "a .pth file of that package with that SHA-256",
                                 .got = std::to_string(used_startup_files_) + " of " +
                                        std::to_string(lock_.startup_files.size()) + " were found",
                                 .next = "look at the package's .pth file again, correct the job and lock again"});
}

void PlaceClaims::require_libraries() const {
  for (const LockedProgram& program : lock_.programs)
    for (const std::string& library : program.from_wheels)
      if (!libraries_.contains(library))
        throw Error(
            ErrorCode::Missing,
            {.what = "a program needs a library that nothing brings",
             .where = program.source.string(),
             .expected = library + " in one of the wheels or on the packing machine",
             .next = "require the package that has it, or install the library and run sealift-pack lock again"});
}

}  // namespace sealift::packager
