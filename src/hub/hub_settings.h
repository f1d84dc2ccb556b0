#pragma once
// Where the Hub is, who asks, and where its cache lies: what huggingface_hub takes from the same variables.

#include <chrono>
#include <string>
#include <vector>

#include "base/path.h"

namespace mk {

struct HubSettings {
  std::string endpoint = "https://huggingface.co";  // HF_ENDPOINT; no "/" at the end
  std::string token;                                // secret: sent to the endpoint and to nobody else, never shown
  std::vector<Path> roots;                          // the first is written to
  std::string offline;   // what forbids the network ("--offline", "HF_HUB_OFFLINE"); empty where it is allowed
  bool progress = true;  // a line per file
  std::string user_agent = "winml";

  int attempts = 5;                            // at one request that makes no headway
  std::chrono::milliseconds first_pause{500};  // doubled after each attempt, up to longest_pause
  std::chrono::milliseconds longest_pause{8'000};
  std::chrono::milliseconds longest_wait{120'000};  // that a server may ask for with Retry-After
  std::chrono::milliseconds connect_timeout{10'000};
  std::chrono::milliseconds stall_timeout{30'000};  // HF_HUB_DOWNLOAD_TIMEOUT, in seconds

  // HF_ENDPOINT; HF_TOKEN, else HUGGING_FACE_HUB_TOKEN, else the file HF_TOKEN_PATH or HF_HOME/token, unless
  // HF_HUB_DISABLE_IMPLICIT_TOKEN; HF_HUB_OFFLINE or TRANSFORMERS_OFFLINE; HF_HUB_DISABLE_PROGRESS_BARS; the roots as
  // HubCache::from_environment() has them.
  static HubSettings from_environment();
};

// HF_HOME, else XDG_CACHE_HOME/huggingface, else ~/.cache/huggingface.
Path hub_home();

}  // namespace mk
