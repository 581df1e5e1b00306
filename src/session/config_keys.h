#pragma once
#include <string>
#include <vector>

#include "session/session_options.h"

namespace epona {

/// Sets a configuration entry. Keys that name a plain option (session.intra_op_num_threads, ...) set that too. Throws
/// for an empty or overlong key or value and for a value that the plain option cannot have.
void set_config(SessionOptions& options, const std::string& key, const std::string& value);

/// A sentence for each key that means nothing to Epona or to onnxruntime, with the nearest that does.
std::vector<std::string> unknown_config_keys(const SessionOptions& options);

/// Whether a key of RunOptions is known; `hint` is set to a sentence when it is not.
bool known_run_config_key(const std::string& key, std::string& hint);

}  // namespace epona
