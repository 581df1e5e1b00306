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

std::shared_ptr<Requests::Loan> Requests::lend(std::unique_ptr<Request> request) {
  auto loan = std::make_shared<Loan>(weak_from_this(), request.get());
  std::lock_guard lock(mutex_);
  lent_.push_back(std::move(request));
  return loan;
}

void Requests::end_loan(const Request* request) {
  // Each keeps memory for two sets of outputs; a caller may have held many.
  constexpr size_t kMostIdle = 4;
  std::unique_ptr<Request> ended;  // freed after the lock is
  std::lock_guard lock(mutex_);
  auto found = std::find_if(lent_.begin(), lent_.end(), [&](const auto& lent) { return lent.get() == request; });
  if (found == lent_.end()) return;
  ended = std::move(*found);
  lent_.erase(found);
  if (idle_.size() < kMostIdle) idle_.push_back(std::move(ended));
}

}  // namespace epona::openvino
