// SPDX-License-Identifier: Apache-2.0
// `sealift-verify golden`: a job in, the golden run's file out; run outside, before the bundle is packed.
// The other end of the checks training.golden.NAME, which run the same job by the same code.
// As one process, which does not depend on how a site divides its ranks, or as the ranks that the job names.
#include "verify/training/golden.hpp"

#include "verify/training/by_rank.hpp"

#include "bundle/host/scratch_folder.hpp"
#include "verify/verbs/verbs.hpp"

#include <fstream>
#include <iostream>

namespace sealift::verify {
namespace {

namespace fs = std::filesystem;

struct GoldenArguments {
  std::string job, out, prefix, device = "cpu";
};

void record(const GoldenArguments& arguments) {
  bundle::ScratchFolder::remove_abandoned_temporary("sealift-golden");  // what killed ones left
  const bundle::ScratchFolder work("sealift-golden");
  Site site{.device = arguments.device == "cuda" ? "cuda:0" : "cpu",
            .prefix = arguments.prefix.empty() ? fs::read_symlink("/proc/self/exe").parent_path().parent_path()
                                               : fs::absolute(arguments.prefix),
            .work = work.path()};
  const auto golden = record_golden(site, arguments.job);
  std::ofstream out(arguments.out, std::ios::binary);
  out << to_json(golden).dump(1) << '\n';
  out.flush();
  if (!out) throw std::invalid_argument("cannot write " + arguments.out);
  std::cout << arguments.out << ": " << golden.losses.size() << " steps "
            << (golden.ranks > 1 ? "of " + std::to_string(golden.ranks) + " ranks by " + golden.method + " " : "")
            << "on " << golden.device << ", loss " << golden.losses.front() << " to " << golden.losses.back() << ", "
            << golden.inputs.size() << " files\n";
  if (golden.by_rank.empty()) return;
  std::cout << "it holds for one process: " << why_by_rank(golden.by_rank).en << "; for a site of several ranks write "
            << instead_of(golden.by_rank) << '\n';
}

}  // namespace

void add_golden(bundle::Program& program) {
  const auto arguments = std::make_shared<GoldenArguments>();
  const auto verb = program.verb("golden", "run a job outside and record what it computes, for [[golden]]");
  verb.option("job", arguments->job, "TOML file: name, verb, ranks, method, [settings], [tolerances]").required();
  verb.option("--out", arguments->out, "the file to write").required();
  verb.option("--prefix", arguments->prefix, "folder laid out as the bundle; without: this program's");
  verb.option("--device", arguments->device, "cpu or cuda").one_of({"cpu", "cuda"});
  verb.action([arguments] {
    record(*arguments);
    return 0;
  });
}

}  // namespace sealift::verify
