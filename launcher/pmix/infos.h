// A list of keys and values, as PMIx takes it.
#pragma once

#include <pmix_server.h>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

namespace launcher {

class Infos {
 public:
  Infos() = default;
  ~Infos() {
    for (pmix_info_t& info : infos_) PMIx_Value_destruct(&info.value);
  }
  Infos(const Infos&) = delete;
  Infos& operator=(const Infos&) = delete;

  void add(const char* key, const std::string& text) { load(key, text.c_str(), PMIX_STRING); }
  void add(const char* key, std::uint32_t number) { load(key, &number, PMIX_UINT32); }
  void add(const char* key, std::uint16_t number) { load(key, &number, PMIX_UINT16); }
  void add_rank(const char* key, pmix_rank_t rank) { load(key, &rank, PMIX_PROC_RANK); }
  void add(const char* key, const Infos& of) {
    pmix_data_array_t array{};
    array.type = PMIX_INFO;
    array.size = of.infos_.size();
    array.array = const_cast<pmix_info_t*>(of.infos_.data());
    load(key, &array, PMIX_DATA_ARRAY);
  }

  // PMIx takes them as variable.
  pmix_info_t* data() { return infos_.data(); }
  std::size_t size() const { return infos_.size(); }

 private:
  // Copies the value.
  void load(const char* key, const void* value, pmix_data_type_t type) {
    PMIx_Info_load(&infos_.emplace_back(), key, value, type);
  }

  std::vector<pmix_info_t> infos_;
};

// Returns a list in the form that PMIx gives it: PMIx_generate_regex, PMIx_generate_ppn.
template <typename Generate>
std::string pattern_of(Generate generate, const std::string& list) {
  char* pattern = nullptr;
  if (generate(list.c_str(), &pattern) != PMIX_SUCCESS || pattern == nullptr) return "raw:" + list;
  std::string text{pattern};
  std::free(pattern);
  return text;
}

}  // namespace launcher
