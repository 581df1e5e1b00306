#pragma once
#include "plan/plan.h"

namespace epona {

/// Cuts the steps into segments: a segment ends where a step needs the dims of a dynamic value, or the elements of a
/// value for a shape, that the same segment produces. Sets SlotPlan::segment and everything in SegmentPlan but
/// bound_roots.
void cut_segments(Plan& plan);

}  // namespace epona
