// SPDX-License-Identifier: Apache-2.0
// The keys of other projects' job files, a table each: what a key is here, or why it changes nothing, or what to do.
// Below foreign_jobs, which decides by them; transformers' own keys, which all have, are in swift_table.
// Names and defaults: LLaMA-Factory's hparams, axolotl's schemas, TRL's configs.
#pragma once

#include "trainer/settings/settings.hpp"
#include "trainer/settings/task.hpp"

namespace sealift::trainer {

/// Whose words a job file is written in. Own: ours, which are also ms-swift's.
enum class Project { Own, MsSwift, LlamaFactory, Axolotl, Trl };

/// A key of another project.
struct ForeignKey {
  const char* key;           ///< `*` stands for any run of characters
  const char* setting = "";  ///< ours, for values outside of `values`; empty: there is none
  /// A value -> settings as "name=text;name=text", or "@verb": only of that verb; empty: it changes nothing.
  std::vector<std::pair<const char*, const char*>> values = {};
  const char* remedy = "";  ///< for a value that is not taken; without values and setting: why the key changes nothing
  bool refused = false;     ///< whatever its value, but for false
};

std::vector<ForeignKey> llama_factory_keys();
std::vector<ForeignKey> axolotl_keys();
std::vector<ForeignKey> trl_keys();

/// Empty for a project of which only transformers' keys and ours are known.
const std::vector<ForeignKey>& foreign_keys(Project project);

/// What the project takes where its job does not say, as our settings; where it is what we take, not named.
Texts foreign_defaults(Project project, Task task);

/// What holds in a job of the project, a sentence each in English and Chinese.
std::vector<std::pair<const char*, const char*>> foreign_rules(Project project);

}  // namespace sealift::trainer
