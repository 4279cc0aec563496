// SPDX-License-Identifier: Apache-2.0
// The receipt of an installation: who signed, what was installed, what was checked, on which host, when. One line of
// JSON that a site signs with its own tools, and a page to print. Made from the generation record alone, so it can be
// made again; stored beside the generations, so it outlives them.
#pragma once

#include "installer/generations/generation_record.hpp"
#include "installer/prefix/small_files.hpp"

namespace sealift::installer {

// The line of JSON that a site signs.
std::string receipt_of(const GenerationRecord& record);
// The page to print: the same facts, the SHA-256 of the line, and space for signatures.
std::string receipt_page(const GenerationRecord& record);

// Of generation `number`, or of the current one for 0; throws Missing when there is none.
GenerationRecord record_for_receipt(const Prefix& prefix, unsigned number);

// PREFIX/receipts/NNNN-NAME-VERSION.json and .txt.
SmallFiles receipt_files(const GenerationRecord& record, const Prefix& prefix);

}  // namespace sealift::installer
