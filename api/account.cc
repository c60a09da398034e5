#include "api/account.h"

#include "api/account_codec.h"

namespace kube {

template <>
base::Result<Account> decode<Account>(const JsonView& object) {
  return codec::decode_object<Account>(object);
}
template <>
const KnownFields& known_fields<Account>() {
  return codec::fields_of<Account>();
}
nlohmann::json encode(const Account& account) {
  return codec::encode_object(account);
}

}  // namespace kube
