// SPDX-License-Identifier: Apache-2.0
// `sealift-train export`: a checkpoint in, safetensors files out that any other program reads.
// After `run --checkpoint-folder`; the work is `export_checkpoint` of the core.
// Needs neither the model nor the ranks that trained it.
#include <sealift/train.hpp>

#include "trainer/failure.hpp"
#include "trainer/verbs/verbs.hpp"

namespace sealift::trainer {

void add_export(bundle::Program& program) {
  struct ExportArguments {
    std::string checkpoint, target;
    double max_file_gb = 0;
    bool bf16 = false;
  };
  const auto arguments = std::make_shared<ExportArguments>();
  const auto verb = program.verb("export", "write a checkpoint as safetensors files that other programs read");
  verb.option("checkpoint", arguments->checkpoint, "a step-N folder, or a folder of them: the last one").required();
  verb.option("target", arguments->target, "a file, or with --max-file-gb a new folder").required();
  verb.option("--max-file-gb", arguments->max_file_gb, "write a set of files of at most this many GB and its index")
      .between(1e-6, 1e6);
  verb.flag("--bf16", arguments->bf16, "convert floating tensors to bfloat16");
  verb.action([arguments] {
    const auto& [checkpoint, target, max_file_gb, bf16] = *arguments;
    const auto last = train::is_whole(checkpoint) ? std::optional<std::filesystem::path>(checkpoint)
                                                  : train::latest_checkpoint(checkpoint);
    TORCH_CHECK(last, checkpoint, " is no whole checkpoint and has none in it");
    train::ExportOptions options{.max_file_bytes = static_cast<std::uint64_t>(max_file_gb * 1e9)};
    if (bf16) options.dtype = at::kBFloat16;
    train::export_checkpoint(*last, target, options);
    say("wrote " + target + " from " + last->string());
    return 0;
  });
}

}  // namespace sealift::trainer
