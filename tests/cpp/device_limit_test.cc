// A device whose memory is used up, where no provider of the session works on it.
#include <gtest/gtest.h>

#include <cstdlib>

#include "model_text.h"
#include "providers/testing/test_device.h"
#include "session/session.h"

namespace epona {
namespace {

const bool kEnabled = [] { return setenv("EPONA_TEST_PROVIDERS", "1", 1) == 0; }();

TEST(DeviceLimit, FailureOfAnotherProviderIsNotRetried) {
  std::string bytes = test::model_bytes(R"(<ir_version: 8, opset_import: ["" : 17]> g (float[N] x) => (float[N] y)
    { y = Neg(x) })");
  SessionOptions options;
  options.providers = {{"OtherTestExecutionProvider", {}}};
  Session session(test::as_bytes(bytes), options);
  ASSERT_EQ(session.providers().size(), 2u);
  auto device = std::make_shared<testing::TestDevice>("TestExecutionProvider", "test", 0, 0x5a, 16);
  std::vector<RuntimeValue> in{Tensor::of<float>({4}, std::vector<float>{1, 2, 3, 4})}, out(1);
  out[0] = Tensor::wanted_on(*device);
  session.run_positional(in, out);
  EXPECT_EQ(out[0].tensor.device, device.get());
  EXPECT_EQ(device->used(), 16);
  std::vector<RuntimeValue> more{Tensor::wanted_on(*device)};
  EXPECT_THROW(session.run_positional(in, more), ProviderFailure);
  EXPECT_EQ(session.providers().size(), 2u);
  Tensor host = out[0].tensor.in_memory_of(nullptr);
  EXPECT_EQ(host.as<float>()[3], -4);
  out.clear();
  EXPECT_EQ(device->used(), 0);
  session.run_positional(in, more);
}

TEST(DeviceLimit, CopiesReachOtherDevicesOfTheSameMemory) {
  auto one = std::make_shared<testing::TestDevice>("TestExecutionProvider", "test", 0, 0x5a, 1 << 20);
  auto same = std::make_shared<testing::TestDevice>("TestExecutionProvider", "test", 0, 0x5a, 1 << 20);
  auto other = std::make_shared<testing::TestDevice>("TestExecutionProvider", "test", 1, 0x5a, 1 << 20);
  Tensor host = Tensor::of<int64_t>({3}, std::vector<int64_t>{1, -2, 3});
  Tensor a = host.in_memory_of(one.get());
  EXPECT_EQ(a.in_memory_of(same.get()).data, a.data);
  Tensor b = Tensor::allocate(DataType::int64, {3}, same.get());
  b.assign(a);
  Tensor c = b.in_memory_of(other.get());
  EXPECT_NE(c.data, b.data);
  EXPECT_EQ(c.clone().device, other.get());
  EXPECT_EQ(c.clone().in_memory_of(nullptr).ints(), host.ints());
  // A tensor keeps its device.
  std::weak_ptr<Device> watched = other;
  other.reset();
  EXPECT_FALSE(watched.expired());
  EXPECT_EQ(c.in_memory_of(nullptr).ints(), host.ints());
  c = Tensor();
  EXPECT_TRUE(watched.expired());
}

}  // namespace
}  // namespace epona
