# cmake -DFILES=a;b -DOUT=bundle.cc -P embed.cmake: files as arrays of bytes (dashboard/bundle.h).
set(types_html "text/html; charset=utf-8")
set(types_js "text/javascript; charset=utf-8")
set(types_css "text/css; charset=utf-8")
set(types_svg "image/svg+xml")
set(arrays "")
set(entries "")
set(count 0)
foreach(file IN LISTS FILES)
  get_filename_component(name ${file} NAME)
  string(REGEX MATCH "[a-z]+$" suffix ${name})
  set(path "/${name}")
  if(name STREQUAL "index.html")
    set(path "/")
  endif()
  file(READ ${file} hex HEX)
  file(SIZE ${file} size)
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
  string(REGEX REPLACE "(................................................................................)" "\\1\n" bytes "${bytes}")
  string(APPEND arrays "constexpr unsigned char kFile${count}[] = {\n${bytes}};\n")
  string(APPEND entries "      {\"${path}\", \"${types_${suffix}}\", text(kFile${count})},\n")
  math(EXPR count "${count} + 1")
endforeach()
file(WRITE ${OUT} "#include \"dashboard/bundle.h\"

#include <array>

namespace dashboard {
namespace {

${arrays}
template <std::size_t N>
std::string_view text(const unsigned char (&bytes)[N]) {
  return {reinterpret_cast<const char*>(bytes), N};
}

}  // namespace

std::span<const BundleFile> bundle_files() {
  static const std::array<BundleFile, ${count}> kFiles = {{
${entries}  }};
  return kFiles;
}

}  // namespace dashboard
")
