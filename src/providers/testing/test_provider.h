#pragma once
#include <memory>
#include <string>

#include "providers/options.h"
#include "providers/provider.h"
#include "providers/testing/test_device.h"

namespace epona::testing {

/// A provider for tests: portable kernels on a pretend device, which fail where the options say.
class TestProvider final : public Provider {
 public:
  TestProvider(const char* name, const char* device_type, unsigned char first_key, const OptionValues& options);

  const char* name() const override { return name_; }
  Claim claim(const Graph& graph) override;
  KernelPtr build(const NodeInfo& info) override;
  const OpDef* traits(const Node& node) const override;
  Device* device() override { return device_.get(); }
  bool can_change(const std::string& key) const override { return key == "gpu_mem_limit"; }
  void change(const std::string& key, const std::string& value) const override;

 private:
  bool fails(const char* stage, const Node& node) const;

  const char* name_;
  OptionValues options_;
  std::shared_ptr<TestDevice> device_;
};

}  // namespace epona::testing
