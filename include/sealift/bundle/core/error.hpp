// SPDX-License-Identifier: Apache-2.0
// Every way in which Sealift can fail, on one screen: the code doubles as the exit code of the tools.
// Lower layers throw `Error`, only `main` catches; "not found" is std::optional, a check result is a report value.
#pragma once

#include <exception>
#include <string>
#include <string_view>

namespace sealift::bundle {

enum class ErrorCode : int {
  Usage = 2,          // the arguments or the job file make no sense
  Io = 3,             // the operating system refused to read or write
  Format = 4,         // bytes do not follow the format they claim
  Digest = 5,         // bytes differ from what was signed or locked
  Signature = 6,      // no signature that this site trusts
  Missing = 7,        // a volume, file or entry that must be there is not
  Platform = 8,       // the target is too old, or of another architecture
  Space = 9,          // not enough room; known before a byte is written
  Conflict = 10,      // two things claim one path, or somebody else holds the lock
  CannotCheck = 11,   // neither good nor bad: an algorithm or version this program does not know
  Network = 12,       // a download failed
  SelfTest = 13,      // everything was verified, but what was built does not work
  Rollback = 14,      // rightly signed, but older than what this site has accepted, or than a floor
  Equivocation = 15,  // rightly signed, but another document has the same name and version
  Revoked = 16,       // signed, but the bundle or its keys were withdrawn, or a strict root has expired
};

// The code as people read it, for example "cannot-check".
std::string_view name_of(ErrorCode code);

// What an operator needs to act: empty fields are left out of the message.
struct Facts {
  std::string what;   // one sentence
  std::string where;  // file, volume or key, with an offset where there is one
  std::string expected;
  std::string got;
  std::string next;  // what to do about it
};

class Error : public std::exception {
 public:
  Error(ErrorCode code, Facts facts);

  ErrorCode code() const { return code_; }
  int exit_code() const { return static_cast<int>(code_); }
  const Facts& facts() const { return facts_; }
  const char* what() const noexcept override { return message_.c_str(); }

  // The same failure seen from one layer up: `context` is put before the sentence.
  Error within(std::string_view context) const;

 private:
  ErrorCode code_;
  Facts facts_;
  std::string message_;
};

}  // namespace sealift::bundle
