// SPDX-License-Identifier: Apache-2.0
// Whether the signatures of a document meet a role of a root: enough keys of it, of the kinds that it asks for. What
// falls short is refused with the reason an operator can act on: withdrawn, not checkable here, or simply missing.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "sealift/bundle/trust/root.hpp"

namespace sealift::bundle {

// "fips=yes" when the root asks for it and this process has such a provider.
const char* crypto_properties(const Root& root);

// The keys of the role `name` whose signatures of an envelope count; `verdicts` are those of its signatures. Throws
// when they do not meet the role: CannotCheck when kinds that we do not know would have, Revoked when withdrawn keys
// are among the signers, else Signature.
std::vector<Digest> require_role(const Root& root, const std::string& name, const std::map<Digest, Verdict>& verdicts,
                                 const std::string& where);

// Checks the signatures of `envelope` by keys of the role `name` and no others, and requires the role. It stops at the
// first that does not hold: a document that holders of the role did not sign costs one check, however many signatures
// it carries.
std::vector<Digest> check_role(const Root& root, const std::string& name, const Envelope& envelope,
                               const std::string& where);
// Checks the signatures by keys without one of the roles `names`, once those are met: they do not count, but one that
// is broken shows that something was changed.
void check_other_signatures(const Root& root, const std::vector<std::string>& names, const Envelope& envelope,
                            const std::string& where);

}  // namespace sealift::bundle
