// The columns of a table of records, and a field as a number in one. Internal to records, as
// record_codec.h is.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "records/record_codec.h"

namespace records {

// The key of a record: these, and the task.
inline constexpr std::size_t kKeyColumns = 4;  // the first ones

struct Column {
  std::string name;
  bool is_text = false;  // else a number, which may be NULL
};

// For visitors that visit() takes through the fields of a record: in a table all kinds of fields
// are alike. `Self` has field().
template <typename Self>
class EachAlike {
 public:
  void always(std::string_view name, auto& value) { self().field(name, value); }
  void nonzero(std::string_view name, auto& value) { self().field(name, value); }
  void micro_time(std::string_view name, auto& value) { self().field(name, value); }

 private:
  Self& self() { return static_cast<Self&>(*this); }
};

class ColumnLister : public EachAlike<ColumnLister> {
 public:
  std::vector<Column> columns{};

  template <typename T>
  void field(std::string_view name, T&) {
    constexpr bool kIsText = std::is_same_v<T, std::string> || std::is_same_v<T, RecordState>;
    columns.push_back({std::string{name}, kIsText});
  }
};

inline const std::vector<Column>& columns() {
  static const std::vector<Column> kColumns = [] {
    ColumnLister lister;
    Record record;
    visit(lister, record);
    return lister.columns;
  }();
  return kColumns;
}

inline std::int64_t number_of(std::int64_t value) {
  return value;
}
inline std::int64_t number_of(std::int32_t value) {
  return value;
}
inline std::int64_t number_of(bool value) {
  return value ? 1 : 0;
}
inline std::int64_t number_of(kube::Bytes value) {
  return value.value();
}
inline std::int64_t number_of(base::Duration value) {
  return value.count();
}
inline std::int64_t number_of(base::Instant value) {
  return base::micros_since_epoch(value);
}

}  // namespace records
