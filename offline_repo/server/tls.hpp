// SPDX-License-Identifier: Apache-2.0
// TLS 1.2 and 1.3 for the server: certificate and key as one value that is replaced at a reload, and a connection's
// session, which knows no socket: bytes of the client go in, bytes for it come out. OpenSSL stays behind this header.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

struct ssl_ctx_st;
struct ssl_st;
struct bio_st;

namespace sealift::offline_repo {

// PEM, all of them.
struct TlsFiles {
  std::filesystem::path certificate;   // with those between it and the root
  std::filesystem::path key;           // without a passphrase
  std::filesystem::path clients = {};  // authorities of clients' certificates; empty: nobody is asked for one
  bool needs_client = true;            // false: a client without a certificate gets in, too, and has a token
};

// Never changes, so that a connection ends with what it began with.
class TlsContext {
 public:
  // Throws Usage when others than owner and group may read the key, Format for any other file or when the key is
  // not the certificate's.
  explicit TlsContext(const TlsFiles& files);
  ~TlsContext();
  TlsContext(const TlsContext&) = delete;
  TlsContext& operator=(const TlsContext&) = delete;

  std::int64_t ends() const { return ends_; }  // when the certificate does; seconds since 1970

 private:
  friend class TlsSession;
  ssl_ctx_st* context_;
  std::int64_t ends_ = 0;
};

class TlsSession {
 public:
  explicit TlsSession(std::shared_ptr<const TlsContext> context);
  ~TlsSession();
  TlsSession(const TlsSession&) = delete;
  TlsSession& operator=(const TlsSession&) = delete;

  // What came from the client.
  void feed(std::string_view bytes);
  // At most `size` bytes of what it said; 0: none yet; nothing: it has ended, or what came is no TLS, or no certificate
  // that is accepted. Either way there may be bytes for the client.
  std::optional<std::size_t> read(char* into, std::size_t size);
  // Makes bytes for the client that say `text`. False once the session has failed.
  bool write(std::string_view text);
  void say_end();  // so that the client knows that nobody cut the connection
  std::string_view pending() const { return std::string_view(out_).substr(taken_); }  // for the client
  void take(std::size_t count);  // that many of them are on their way

  // The common name of the client's certificate, where it sent one that was accepted and has a plain name.
  std::string client_name() const;

 private:
  void collect();

  std::shared_ptr<const TlsContext> context_;
  ssl_st* session_;
  bio_st *in_, *made_;  // the session's
  std::string out_;
  std::size_t taken_ = 0;  // of out_
};

}  // namespace sealift::offline_repo
