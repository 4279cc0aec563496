// SPDX-License-Identifier: Apache-2.0
// No session is resumed and none is renegotiated: a certificate that was replaced, or an authority that was taken out,
// counts for each connection that begins afterwards. The host's openssl.cnf is not read.
#include "offline_repo/server/tls.hpp"

#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <new>

#include "bundle/core/openssl.hpp"
#include "bundle/host/require_trusted.hpp"
#include "sealift/bundle/core/file.hpp"

namespace sealift::offline_repo {

namespace {

using bundle::Error;
using bundle::ErrorCode;

constexpr std::size_t kMaxPem = std::size_t{4} << 20;
constexpr std::size_t kMaxCommonName = 100;

[[noreturn]] void refuse_tls(const char* what, const std::filesystem::path& file, const char* next) {
  throw Error(ErrorCode::Format, {.what = what, .where = file.string(), .got = bundle::openssl_reason(), .next = next});
}

void check_key_file(const std::filesystem::path& file) {
  struct stat found {};
  if (::stat(file.c_str(), &found) != 0) bundle::throw_errno("the key for TLS cannot be read", file);
  const bool others = (found.st_mode & (S_IROTH | S_IWOTH | S_IWGRP)) != 0;
  if (!others && (found.st_uid == 0 || found.st_uid == ::geteuid())) return;
  throw Error(ErrorCode::Usage,
              {.what = others ? "others may read or change the key for TLS" : "the key for TLS is another user's",
               .where = file.string(),
               .expected = "written by its owner, who is root or this user; read by owner and group alone",
               .next = (others ? "chmod 640 '" : "chown root '") + file.string() + "'"});
}

// Certificate, key and authorities alike: who may change one of them decides who this server is, and whom it lets in.
bundle::BioHandle pem_of(const std::filesystem::path& file) {
  bundle::require_trusted_path(file, bundle::Above::Site, "another user may change what TLS goes by");
  const std::string text = bundle::read_text(std::filesystem::canonical(file), kMaxPem);
  bundle::BioHandle bio(BIO_new(BIO_s_mem()));
  if (!bio || BIO_write(bio.get(), text.data(), static_cast<int>(text.size())) != static_cast<int>(text.size()))
    throw std::bad_alloc();
  return bio;
}

using Certificate = std::unique_ptr<X509, bundle::Freer<X509_free>>;

Certificate next_certificate(BIO* bio) {
  return Certificate(PEM_read_bio_X509(bio, nullptr, nullptr, nullptr));
}

// What follows the last one of them is no certificate, and nothing but the file's end.
void check_end(const std::filesystem::path& file) {
  if (ERR_GET_REASON(ERR_peek_last_error()) != PEM_R_NO_START_LINE)
    refuse_tls("this is no certificate", file, "give PEM, one certificate after the other");
  ERR_clear_error();
}

std::int64_t seconds_of(const ASN1_TIME* time) {
  std::tm parts{};
  return ASN1_TIME_to_tm(time, &parts) == 1 ? ::timegm(&parts) : 0;
}

// The first is the server's, those behind it lead to a root. Returns when the server's ends.
std::int64_t use_certificates(SSL_CTX* context, const std::filesystem::path& file) {
  const auto bio = pem_of(file);
  const Certificate first = next_certificate(bio.get());
  if (!first || SSL_CTX_use_certificate(context, first.get()) != 1)
    refuse_tls("this is no certificate for TLS", file,
               "give PEM: the server's certificate, then its signers' certificates");
  while (Certificate one = next_certificate(bio.get()))
    if (SSL_CTX_add1_chain_cert(context, one.get()) != 1) throw std::bad_alloc();
  check_end(file);
  return seconds_of(X509_get0_notAfter(first.get()));
}

void use_key(SSL_CTX* context, const TlsFiles& files) {
  check_key_file(files.key);
  const auto bio = pem_of(files.key);
  const auto no_passphrase = [](char*, int, int, void*) { return -1; };
  const bundle::KeyHandle key(PEM_read_bio_PrivateKey(bio.get(), nullptr, no_passphrase, nullptr));
  if (!key) refuse_tls("this is no private key for TLS", files.key, "give PEM, without a passphrase");
  if (SSL_CTX_use_PrivateKey(context, key.get()) != 1 || SSL_CTX_check_private_key(context) != 1)
    refuse_tls("this key is not the certificate's", files.key, "give the key that the certificate was made for");
}

void use_authorities(SSL_CTX* context, const TlsFiles& files) {
  const auto bio = pem_of(files.clients);
  std::size_t count = 0;
  for (; Certificate one = next_certificate(bio.get()); ++count)
    if (X509_STORE_add_cert(SSL_CTX_get_cert_store(context), one.get()) != 1 ||
        SSL_CTX_add_client_CA(context, one.get()) != 1)
      refuse_tls("this authority cannot be used", files.clients, "give PEM, one certificate after the other");
  if (count == 0) refuse_tls("this is no authority of clients' certificates", files.clients, "give it in PEM");
  check_end(files.clients);
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER | (files.needs_client ? SSL_VERIFY_FAIL_IF_NO_PEER_CERT : 0), nullptr);
}

bool is_plain_name(std::string_view name) {
  return !name.empty() && name.size() <= kMaxCommonName &&
         std::all_of(name.begin(), name.end(), [](char c) { return c > 0x20 && c < 0x7f && c != '"' && c != '\\'; });
}

}  // namespace

TlsContext::TlsContext(const TlsFiles& files) {
  bundle::start_openssl();
  OPENSSL_init_ssl(OPENSSL_INIT_NO_LOAD_CONFIG, nullptr);
  ERR_clear_error();
  using Context = std::unique_ptr<SSL_CTX, bundle::Freer<SSL_CTX_free>>;
  Context context(SSL_CTX_new(TLS_server_method()));
  if (!context) throw Error(ErrorCode::CannotCheck, {.what = "TLS does not start", .got = bundle::openssl_reason()});
  SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  SSL_CTX_set_cipher_list(context.get(), "ECDHE+AESGCM:ECDHE+CHACHA20");  // of TLS 1.2; those of 1.3 are all good
  SSL_CTX_set_options(context.get(), SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_NO_TICKET);
  SSL_CTX_set_session_cache_mode(context.get(), SSL_SESS_CACHE_OFF);
  SSL_CTX_set_num_tickets(context.get(), 0);
  SSL_CTX_set_mode(context.get(), SSL_MODE_RELEASE_BUFFERS);  // an idle connection costs little
  ends_ = use_certificates(context.get(), files.certificate);
  use_key(context.get(), files);
  if (!files.clients.empty()) use_authorities(context.get(), files);
  context_ = context.release();
}

TlsContext::~TlsContext() {
  SSL_CTX_free(context_);
}

TlsSession::TlsSession(std::shared_ptr<const TlsContext> context)
    : context_(std::move(context)),
      session_(SSL_new(context_->context_)),
      in_(BIO_new(BIO_s_mem())),
      made_(BIO_new(BIO_s_mem())) {
  if (session_ == nullptr || in_ == nullptr || made_ == nullptr) {
    SSL_free(session_);
    BIO_free(in_);
    BIO_free(made_);
    throw std::bad_alloc();
  }
  BIO_set_mem_eof_return(in_, -1);  // more comes
  SSL_set_bio(session_, in_, made_);
  SSL_set_accept_state(session_);
}

TlsSession::~TlsSession() {
  SSL_free(session_);
}

void TlsSession::feed(std::string_view bytes) {
  if (BIO_write(in_, bytes.data(), static_cast<int>(bytes.size())) != static_cast<int>(bytes.size()))
    throw std::bad_alloc();
}

std::optional<std::size_t> TlsSession::read(char* into, std::size_t size) {
  ERR_clear_error();
  std::size_t count = 0;
  const int result = SSL_read_ex(session_, into, size, &count);
  const int fault = result == 1 ? SSL_ERROR_NONE : SSL_get_error(session_, result);
  collect();
  if (fault == SSL_ERROR_NONE) return count;
  if (fault == SSL_ERROR_WANT_READ) return 0;
  return std::nullopt;
}

bool TlsSession::write(std::string_view text) {
  ERR_clear_error();
  std::size_t count = 0;
  const bool good = SSL_write_ex(session_, text.data(), text.size(), &count) == 1 && count == text.size();
  collect();
  return good;
}

void TlsSession::say_end() {
  ERR_clear_error();
  if (SSL_is_init_finished(session_) == 1) SSL_shutdown(session_);
  collect();
}

void TlsSession::take(std::size_t count) {
  taken_ += count;
  if (taken_ < out_.size()) return;
  out_.clear();
  taken_ = 0;
}

void TlsSession::collect() {
  const std::size_t more = BIO_ctrl_pending(made_);
  if (more == 0) return;
  const std::size_t before = out_.size();
  out_.resize(before + more);
  BIO_read(made_, out_.data() + before, static_cast<int>(more));
}

std::string TlsSession::client_name() const {
  const X509* certificate = SSL_get0_peer_certificate(session_);
  if (certificate == nullptr || SSL_get_verify_result(session_) != X509_V_OK) return {};
  const X509_NAME* subject = X509_get_subject_name(certificate);
  const int at = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);
  if (at < 0 || X509_NAME_get_index_by_NID(subject, NID_commonName, at) >= 0) return {};  // two names count as no name
  unsigned char* text = nullptr;
  const int size = ASN1_STRING_to_UTF8(&text, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at)));
  if (size < 0) return {};
  std::string name(reinterpret_cast<const char*>(text), static_cast<std::size_t>(size));
  OPENSSL_free(text);
  return is_plain_name(name) ? name : std::string();
}

}  // namespace sealift::offline_repo
