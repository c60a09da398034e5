// Owning pointers to OpenSSL's objects.
#pragma once

#include <memory>

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/x509.h>

namespace devcluster {

template <auto Free>
struct OpensslDeleter {
  template <typename T>
  void operator()(T* pointer) const {
    Free(pointer);
  }
};
using Bio = std::unique_ptr<BIO, OpensslDeleter<BIO_free_all>>;
using Certificate = std::unique_ptr<X509, OpensslDeleter<X509_free>>;
using Key = std::unique_ptr<EVP_PKEY, OpensslDeleter<EVP_PKEY_free>>;

}  // namespace devcluster
