#include <pwd.h>
#include <unistd.h>

#include "base/path.h"
#include "base/system.h"

namespace mk {

Path home_folder() {
  if (const auto home = environment("HOME")) return *home;
  if (const passwd* user = ::getpwuid(::getuid()); user != nullptr && user->pw_dir != nullptr) return user->pw_dir;
  return "/";
}

}  // namespace mk
