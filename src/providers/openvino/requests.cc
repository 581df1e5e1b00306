#include <algorithm>
#include <utility>

#include "providers/openvino/kernel.h"

namespace epona::openvino {

Requests::Loan::~Loan() {
  if (auto from = from_.lock()) from->end_loan(request_);
}

std::unique_ptr<Request> Requests::take() {
  std::lock_guard lock(mutex_);
  if (idle_.empty()) return nullptr;
  auto request = std::move(idle_.back());
  idle_.pop_back();
  return request;
}

void Requests::give(std::unique_ptr<Request> request) {
  std::lock_guard lock(mutex_);
  idle_.push_back(std::move(request));
}

std::shared_ptr<Requests::Loan> Requests::lend(std::unique_ptr<Request>& request) {
  // A loop that feeds outputs back holds those of two runs.
  constexpr size_t kMostLent = 2;
  std::lock_guard lock(mutex_);
  if (lent_.size() >= kMostLent) return nullptr;
  auto loan = std::make_shared<Loan>(weak_from_this(), request.get());
  lent_.push_back(std::move(request));
  return loan;
}

void Requests::end_loan(const Request* request) {
  std::lock_guard lock(mutex_);
  auto found = std::find_if(lent_.begin(), lent_.end(), [&](const auto& lent) { return lent.get() == request; });
  if (found == lent_.end()) return;
  idle_.push_back(std::move(*found));
  lent_.erase(found);
}

}  // namespace epona::openvino
