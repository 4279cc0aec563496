// SPDX-License-Identifier: Apache-2.0
// How results are printed: one text for people and one JSON object for machines, side by side for each result.
// The keys are an interface; README.md lists them.
#pragma once

#include "installer/verbs/apply.hpp"
#include "installer/generations/status.hpp"
#include "installer/prefix/trust_store.hpp"
#include "installer/verbs/verify.hpp"

namespace sealift::installer {

// What an audit and a self-test found, in a line or some; receipts say it too.
std::string facts_of(const Audit& audit);
std::string facts_of(const SelfTest& test);

// As an operator compares it with a sheet of paper: sha256: and the digest, whole.
std::string fingerprint(const bundle::Digest& digest);

bundle::Json json_of(const bundle::Error& error);
bundle::Json json_of(const Machine& machine);
bundle::Json json_of(const bundle::TrustState& state);
bundle::Json json_of(const TrustChange& change);
bundle::Json json_of(const Verification& verification);
bundle::Json json_of(const Applied& applied, const ApplyOptions& options);
bundle::Json json_of(const Status& status);

// TOML, to be carried out and used as a job file's target profile.
std::string text_of(const Machine& machine);
std::string text_of(const bundle::TrustState& state);
std::string text_of(const Verification& verification);
std::string text_of(const Applied& applied, const ApplyOptions& options);
std::string text_of(const Status& status);

}  // namespace sealift::installer
