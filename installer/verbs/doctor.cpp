// SPDX-License-Identifier: Apache-2.0
// doctor: compares every installed file with what was signed, and repairs from a bundle. The worst finding's code is
// the exit code.
#include <memory>
#include <optional>

#include "installer/doctor/machine_notes.hpp"
#include "installer/print/doctor_report.hpp"
#include "installer/verbs/shared_options.hpp"
#include "installer/verbs/verbs.hpp"

namespace sealift::installer {

namespace {

struct DoctorArguments {
  std::filesystem::path prefix;
  std::filesystem::path repair;
  bool relink = false;
  unsigned threads = default_threads();
  bool json = false;
};

int run(const DoctorArguments& arguments) {
  bundle::Progress progress;
  Disk disk;
  const DoctorOptions options{.prefix = Prefix(arguments.prefix),
                              .repair = arguments.repair,
                              .relink = arguments.relink,
                              .threads = arguments.threads};
  Checkup checkup = doctor(options, disk, progress);
  for (std::string& note : machine_notes(options.prefix, probe())) checkup.notes.push_back(std::move(note));
  bundle::print(arguments.json, json_of(checkup, options), text_of(checkup, options));
  const std::optional<bundle::ErrorCode> code = verdict(checkup);
  return code ? static_cast<int>(*code) : 0;
}

}  // namespace

void add_doctor(bundle::Program& program) {
  const bundle::Verb verb = program.verb("doctor", "compare every installed file with what was signed");
  const auto arguments = std::make_shared<DoctorArguments>();
  verb.json(arguments->json);
  verb.option("--repair", arguments->repair, "a bundle: repair what is wrong from its verified bytes");
  verb.flag("--relink", arguments->relink,
            "after a copy that lost the prefix's hard links: link each copied file to the store's file again");
  add_threads(verb, arguments->threads);
  add_prefix(verb, arguments->prefix);
  verb.action([arguments] { return run(*arguments); });
}

}  // namespace sealift::installer
