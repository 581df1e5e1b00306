#pragma once
#include <atomic>

#include "base/error.h"

namespace epona {

/// Looked at between the steps of loading a model; null: cannot be cancelled.
using CancelFlag = const std::atomic<bool>*;

inline void stop_if_cancelled(CancelFlag flag) {
  if (flag && flag->load(std::memory_order_relaxed))
    fail(Code::model_load_canceled, "Graph loading canceled due to user request.");
}

}  // namespace epona
