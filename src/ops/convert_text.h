#pragma once
#include <cstdint>
#include <string>

#include "ops/convert.h"

namespace epona {

/// The text parts of convert_elements. Numbers are written in the shortest form that reads back the same ("1", "0.1",
/// "1e+10"), infinities as "INF" and "-INF", NaN as "NaN", bools as "1" and "0". Read: anything that strtod reads, with
/// spaces around it; integers exactly.
void format_text(DataType from_type, const void* from, std::string* to, int64_t begin, int64_t end);
void parse_text(const std::string* from, DataType to_type, void* to, int64_t begin, int64_t end,
                const ConvertOptions& options);

}  // namespace epona
