// SPDX-License-Identifier: Apache-2.0
// A job file of LLaMA-Factory, axolotl, TRL or ms-swift as settings, and what became of each of its keys.
// Between settings_file and the table of settings; foreign_table has the keys, swift_names transformers' and
// ms-swift's. A key is never dropped in silence: it is a setting, or listed with the reason, or refused with the
// remedy.
#pragma once

#include "trainer/settings/foreign_table.hpp"
#include "trainer/settings/swift_names.hpp"

namespace sealift::trainer {

/// Whose words `texts`, a job's keys, are.
Project project_of(const Texts& texts);

/// The project's name as people write it.
std::string to_string(Project project);

/// The verb that a job says itself (LLaMA-Factory's stage, axolotl's rl, ms-swift's rlhf_type); nothing where it does
/// not.
std::optional<Task> task_of(const Texts& texts);

struct ForeignJob {
  Project project = Project::Own;
  TakenOver taken;
  Texts defaults;  ///< the project's own, of what the job does not say
};

/// A problem in `taken` for each key whose value asks for what there is not, and for what the job leaves open, its
/// project would choose and we cannot; `source` is where it was written, `flags` what is said beside it.
ForeignJob take_over_job(const Texts& texts, const std::string& source, Task task, const Texts& flags);

/// One key in our words or transformers', added to `texts`; a reason where it changes nothing. Throws
/// std::invalid_argument for one that is refused.
std::optional<std::string> take_over_key(Project project, const std::string& key, const std::string& value,
                                         const std::string& source, Task task, Texts& texts);

/// ", did you mean ...": the name nearest to `key` of all projects and of `ours`, and ours for it; empty where none is.
std::string meant_by(const std::string& key, const std::set<std::string>& ours);

}  // namespace sealift::trainer
