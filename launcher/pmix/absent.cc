// Functions that the libraries in this program need of two others, of which Debian has no archives:
// udev, for the names of disks, and munge, for one of several ways to know a client. Both say that
// they are not there, which the libraries take for a machine without them.
extern "C" {

void* udev_new() {
  return nullptr;
}
void* udev_unref(void*) {
  return nullptr;
}
void* udev_device_new_from_subsystem_sysname(void*, const char*, const char*) {
  return nullptr;
}
const char* udev_device_get_property_value(void*, const char*) {
  return nullptr;
}
void* udev_device_unref(void*) {
  return nullptr;
}

// SOURCE: munge.h: EMUNGE_SNAFU.
constexpr int kMungeFailed = 1;
int munge_encode(char**, void*, const void*, int) {
  return kMungeFailed;
}
int munge_decode(const char*, void*, void**, int*, unsigned*, unsigned*) {
  return kMungeFailed;
}
const char* munge_strerror(int) {
  return "munge is not there";
}

}  // extern "C"
