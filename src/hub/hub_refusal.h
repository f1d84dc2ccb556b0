#pragma once
// What a status of the Hub means, and what to do about it.

#include <chrono>
#include <optional>
#include <string>

#include "base/http.h"
#include "base/result.h"
#include "hub/hub_connection.h"

namespace mk {

struct HubRefusal {
  Error error;
  bool transient = false;                          // worth another attempt
  std::optional<std::chrono::milliseconds> after;  // not before that
};

// `foreign`: the answer came from a host that the Hub had led to.
HubRefusal refusal_of(const HttpResponse& response, const HubSubject& subject, const HubSettings& settings,
                      bool foreign);

}  // namespace mk
