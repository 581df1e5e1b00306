#include "model/mapping.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

#include "model_text.h"
#include "session/session.h"

namespace epona {
namespace {

namespace fs = std::filesystem;

constexpr size_t kBytes = 1 << 20;

fs::path file_of_sevens(const char* name) {
  fs::path path = fs::temp_directory_path() / (std::to_string(getpid()) + name);
  std::ofstream(path, std::ios::binary) << std::string(kBytes, '\7');
  return path;
}

TEST(Mapping, WhatAFileHasNoMoreReadsAsZeros) {
  fs::path path = file_of_sevens("cut");
  struct sigaction before{}, after{};
  sigaction(SIGBUS, nullptr, &before);
  {
    MappingGuard outer;
    auto mapping = FileMapping::open(path);
    const std::byte* bytes = mapping->bytes().data();
    EXPECT_EQ(bytes[kBytes - 1], std::byte{7});
    fs::resize_file(path, kBytes / 2);
    MappingGuard inner;
    EXPECT_EQ(bytes[0], std::byte{7});
    EXPECT_EQ(bytes[kBytes / 2 - 1], std::byte{7});
    EXPECT_EQ(bytes[kBytes - 1], std::byte{0});
    EXPECT_EQ(bytes[kBytes / 2 + 5000], std::byte{0});
    fs::remove(path);
    EXPECT_TRUE(mapping->written_since());
    mapping->release_pages(bytes, kBytes);
    EXPECT_EQ(bytes[kBytes - 1], std::byte{0});
  }
  sigaction(SIGBUS, nullptr, &after);
  EXPECT_EQ(before.sa_handler, after.sa_handler);
}

/// Sessions are made of a model whose weights another thread cuts and writes again all the time: each is made or refused.
TEST(Mapping, AFileCutShortWhileItIsReadIsAnError) {
  onnx::ModelProto proto;
  ASSERT_TRUE(
      proto.ParseFromString(test::model_bytes("<ir_version: 8, opset_import: [\"\" : 17]> g (float[N,512] x, "
                                              "float[512,512] w) => (float[N,512] y) { y = MatMul(x, w) }")));
  proto.mutable_graph()->mutable_input()->RemoveLast();
  auto* weight = proto.mutable_graph()->add_initializer();
  weight->set_name("w");
  weight->set_data_type(1);
  weight->add_dims(512);
  weight->add_dims(512);
  weight->set_raw_data(std::string(kBytes, '\7'));
  fs::path path = fs::temp_directory_path() / (std::to_string(getpid()) + "model.onnx");
  const std::string whole = proto.SerializeAsString();
  std::ofstream(path, std::ios::binary) << whole;
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    while (!stop) {
      std::ofstream(path, std::ios::binary | std::ios::trunc) << whole;
      std::this_thread::sleep_for(std::chrono::microseconds(300));
    }
  });
  SessionOptions options;
  options.intra_op_threads = 1;
  options.log_severity = 4;
  int made = 0, refused = 0;
  for (int i = 0; i < 300; ++i) {
    try {
      Session session(path, options);
      ++made;
    } catch (const Error&) {
      ++refused;
    }
  }
  stop = true;
  writer.join();
  fs::remove(path);
  EXPECT_EQ(made + refused, 300);
}

}  // namespace
}  // namespace epona
