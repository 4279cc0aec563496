// SPDX-License-Identifier: Apache-2.0
// licences/licences.tsv: one row for each component with its licence and the licence files that were copied. For
// spreadsheets, where reviewers sort and tick off.
#pragma once

#include <string>

#include "packager/documents/bundle_facts.hpp"

namespace sealift::packager {

std::string licence_table(const BundleFacts& facts);

}  // namespace sealift::packager
