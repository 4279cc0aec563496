// SPDX-License-Identifier: Apache-2.0
// The native check of a plan: would everything native in this bundle load on the target? Between planning and writing,
// so that what would not load is refused before the first byte is written; `lock` asks as well, when it can.
#pragma once

#include "packager/files/told_warnings.hpp"
#include "packager/native/native_report.hpp"
#include "packager/pack/pack_plan.hpp"

namespace sealift::packager {

// Reads the plan's native files, except files that an [[owner]] rule leaves out, prints the warnings that are
// new and a summary, and throws as require_native and read_native_files do.
NativeReport check_native(const PackPlan& plan, const Cache& cache, const Repair& repair, ToldWarnings& told,
                          bundle::Progress& progress);

// Warns of files that two wheels bring and nobody uses, and of wheels whose RECORD does not describe their files.
void warn_of_contents(const PackPlan& plan, ToldWarnings& told, bundle::Progress& progress);

// Once the bundle is written: the checked files are the locked ones, so what was read of them is kept
// for the next run.
void keep_checked(const PackPlan& plan, const Cache& cache);

}  // namespace sealift::packager
