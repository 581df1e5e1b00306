#include <functional>
#include <string>

#include "base/error.h"
#include "kernels/convert.h"
#include "kernels/elementwise.h"
#include "vec_test_util.h"

namespace epona {
namespace {

using A = ActivationKind;

struct Function {
  const char* name;
  EwStep step;
  std::function<double(double)> exact;
  double max_ulp;
  double max_absolute = 0;  // for functions that cancel or flush: either bound will do
};

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

EwStep act(A kind, float a = 0, float b = 0) { return {EwOp::activation, {0, 0, 0}, {kind, a, b}}; }

std::vector<Function> functions() {
  const double tiny = 1.2e-38;  // results below the smallest normal number may become 0
  return {
      {"neg", {EwOp::neg}, [](double x) { return -x; }, 0},
      {"abs", {EwOp::abs}, [](double x) { return std::fabs(x); }, 0},
      {"sign", {EwOp::sign}, [](double x) { return std::isnan(x) ? x : (x > 0) - (x < 0); }, 0},
      {"floor", {EwOp::floor}, [](double x) { return std::floor(x); }, 0},
      {"ceil", {EwOp::ceil}, [](double x) { return std::ceil(x); }, 0},
      {"round", {EwOp::round}, [](double x) { return std::nearbyint(x); }, 0},
      {"sqrt", {EwOp::sqrt}, [](double x) { return std::sqrt(x); }, 0.51},
      {"pow_half", {EwOp::pow_half}, [](double x) { return std::pow(x, 0.5); }, 0.51},
      {"rsqrt", {EwOp::rsqrt}, [](double x) { return 1 / std::sqrt(x); }, 1.5},
      {"reciprocal", {EwOp::reciprocal}, [](double x) { return 1 / x; }, 0.51},
      {"square", {EwOp::square}, [](double x) { return x * x; }, 0.51},
      {"exp", {EwOp::exp}, [](double x) { return std::exp(x); }, 2},
      {"log", {EwOp::log}, [](double x) { return std::log(x); }, 2},
      {"erf", {EwOp::erf}, [](double x) { return std::erf(x); }, 2.5},
      {"sin", {EwOp::sin}, [](double x) { return std::sin(x); }, 1.5},
      {"cos", {EwOp::cos}, [](double x) { return std::cos(x); }, 1.5},
      {"is_nan", {EwOp::is_nan}, [](double x) { return std::isnan(x); }, 0},
      {"not", {EwOp::logical_not}, [](double x) { return x == 0; }, 0},
      {"relu", act(A::relu), [](double x) { return x < 0 ? 0 : x; }, 0},
      {"clip", act(A::clip, -1, 6), [](double x) { return x < -1  ? -1
                                                          : x > 6 ? 6
                                                                  : x; }, 0},
      {"clip_crossed", act(A::clip, 2, 1), [](double x) { return std::isnan(x) ? x : 1; }, 0},
      {"leaky_relu", act(A::leaky_relu, 0.125f), [](double x) { return x < 0 ? 0.125 * x : x; }, 0.51},
      {"thresholded", act(A::thresholded_relu, 2), [](double x) { return x <= 2 ? 0 : x; }, 0},
      {"elu", act(A::elu, 1), [](double x) { return x < 0 ? std::expm1(x) : x; }, 2},
      {"celu", act(A::celu, 2), [](double x) { return x < 0 ? 2 * std::expm1(x / 2) : x; }, 2, tiny},
      {"selu", act(A::selu, 1.5f, 1.25f), [](double x) { return 1.25 * (x < 0 ? 1.5 * std::expm1(x) : x); }, 2, tiny},
      {"sigmoid", act(A::sigmoid), sigmoid, 2.5, tiny},
      {"tanh", act(A::tanh), [](double x) { return std::tanh(x); }, 3},
      {"silu", act(A::silu, 1), [](double x) { return x * sigmoid(x); }, 3, 2e-36},
      {"gelu", act(A::gelu), [](double x) { return x * 0.5 * std::erfc(-x / std::sqrt(2.0)); }, 10, 3e-8},
      {"gelu_tanh", act(A::gelu_tanh),
       [](double x) { return x * sigmoid(2 * std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)); }, 6, 2e-8},
      {"hard_sigmoid", act(A::hard_sigmoid, 0.25f, 0.5f),
       [](double x) { return std::isnan(x) ? x : std::max(0.0, std::min(1.0, 0.25 * x + 0.5)); }, 1, 1e-7},
      {"hard_swish", act(A::hard_swish, 0.125f, 0.5f),
       [](double x) { return std::isnan(x) ? x : x * std::max(0.0, std::min(1.0, 0.125 * x + 0.5)); }, 2, 1e-6},
      {"softplus", act(A::softplus),
       [](double x) { return std::isnan(x) ? x : std::fmax(x, 0) + std::log1p(std::exp(-std::fabs(x))); }, 3, tiny},
      {"softsign", act(A::softsign), [](double x) { return x / (1 + std::fabs(x)); }, 2, tiny},
      {"mish", act(A::mish), [](double x) { return x > 60 ? x : x * std::tanh(std::log1p(std::exp(x))); }, 4, 2e-36},
  };
}

BroadcastPlan plan_of(Dims out, std::vector<Dims> operands) {
  BroadcastPlan plan;
  EXPECT_TRUE(plan_broadcast(out, operands, plan));
  return plan;
}

void run(const std::vector<EwStep>& steps, std::vector<const void*> inputs, std::vector<DataType> types,
         const BroadcastPlan& plan, void* out, DataType out_type = DataType::float32, int threads = 2) {
  EwProgram program(static_cast<int>(inputs.size()), steps);
  program.run(plan, inputs.data(), types.data(), out, out_type, test_pool(threads));
}

TEST(Elementwise, functions_are_within_their_bounds) {
  std::vector<float> x = floats_by_bits(65521);
  const std::vector<float> near = random_floats(60000, -12, 12), special = special_floats();
  x.insert(x.end(), near.begin(), near.end());
  x.insert(x.end(), special.begin(), special.end());
  const int64_t size = static_cast<int64_t>(x.size());
  const int64_t dims[] = {size};
  for_each_isa([&] {
    for (const Function& f : functions()) {
      std::vector<float> y(x.size());
      run({f.step}, {x.data()}, {DataType::float32}, plan_of(dims, {dims}), y.data());
      double worst = 0;
      float where = 0;
      for (size_t i = 0; i < x.size(); ++i) {
        const double exact = f.exact(x[i]);
        if (std::isinf(x[i]) && std::isnan(exact)) continue;  // inf * 0 inside the definition: any answer
        if (std::fabs(y[i] - exact) <= f.max_absolute) continue;
        const double error = ulp_error(exact, y[i]);
        if (error > worst) worst = error, where = x[i];
      }
      EXPECT_LE(worst, f.max_ulp) << f.name << " at " << where;
    }
  });
}

TEST(Elementwise, any_length_and_in_place) {
  for_each_isa([&] {
    for (int64_t n : {0, 1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 33, 63, 511, 512, 513, 1025}) {
      std::vector<float> x = random_floats(static_cast<size_t>(n) + 1, -3, 3);
      const std::vector<float> before = x;
      const int64_t dims[] = {n};
      run({act(A::tanh)}, {x.data()}, {DataType::float32}, plan_of(dims, {dims}), x.data());
      for (int64_t i = 0; i < n; ++i) EXPECT_LE(ulp_error(std::tanh(double(before[i])), x[i]), 3) << n << ":" << i;
      EXPECT_EQ(x[n], before[n]) << "wrote past the end of " << n;
    }
  });
}

double binary_exact(EwOp op, double a, double b) {
  switch (op) {
    case EwOp::add:
      return a + b;
    case EwOp::sub:
      return a - b;
    case EwOp::mul:
      return a * b;
    case EwOp::div:
      return a / b;
    case EwOp::max:
      return std::isnan(a) ? a : std::isnan(b) ? b : std::max(a, b);
    case EwOp::min:
      return std::isnan(a) ? a : std::isnan(b) ? b : std::min(a, b);
    case EwOp::pow:
      return std::pow(a, b);
    case EwOp::equal:
      return a == b;
    case EwOp::less:
      return a < b;
    case EwOp::less_equal:
      return a <= b;
    case EwOp::greater:
      return a > b;
    case EwOp::greater_equal:
      return a >= b;
    case EwOp::logical_and:
      return a != 0 && b != 0;
    case EwOp::logical_or:
      return a != 0 || b != 0;
    case EwOp::logical_xor:
      return (a != 0) != (b != 0);
    default:
      return a < 0 ? a * b : a;
  }
}

TEST(Elementwise, binary_functions_on_all_pairs_of_special_values) {
  std::vector<float> a = special_floats();
  for (float v : random_floats(40, -4, 4)) a.push_back(v);
  for (float v : random_floats(20, 0, 100)) a.push_back(v);
  const int64_t n = static_cast<int64_t>(a.size()), rows[] = {n, 1}, cols[] = {n}, out[] = {n, n};
  for_each_isa([&] {
    for (int op = static_cast<int>(EwOp::add); op <= static_cast<int>(EwOp::prelu); ++op) {
      std::vector<float> y(static_cast<size_t>(n * n));
      run({{static_cast<EwOp>(op), {0, 1, 0}}}, {a.data(), a.data()}, {DataType::float32, DataType::float32},
          plan_of(out, {rows, cols}), y.data());
      for (int64_t i = 0; i < n * n; ++i) {
        const float p = a[i / n], q = a[i % n];
        EXPECT_LE(ulp_error(binary_exact(static_cast<EwOp>(op), p, q), y[i]), 0.51)
            << "op " << op << ": " << p << ", " << q;
      }
    }
  });
}

TEST(Elementwise, broadcasting_agrees_with_plain_indexing) {
  const std::vector<std::vector<std::vector<int64_t>>> cases = {
      {{2, 3, 4}, {2, 3, 4}, {4}},
      {{2, 3, 4}, {3, 1}, {2, 1, 4}},
      {{5, 1000}, {5, 1}, {1000}},
      {{3, 2, 257}, {2, 1}, {3, 1, 257}},
      {{1, 7, 1, 3}, {7, 1, 1}, {1, 3}},
      {{4, 3, 5, 7}, {4, 1, 5, 1}, {3, 1, 7}},
      {{600, 3}, {600, 3}, {3}},
      {{3, 0, 2}, {3, 0, 1}, {2}},
      {{1, 1}, {1}, {1, 1}},
      {{2, 300, 200}, {1}, {300, 1}},
      {{2, 2, 2, 2, 2, 2}, {2, 1, 2, 1, 2, 1}, {1, 2, 1, 2, 1, 2}}};
  for_each_isa([&] {
    for (const auto& c : cases) {
      const auto size = [](const std::vector<int64_t>& dims) {
        int64_t n = 1;
        for (int64_t d : dims) n *= d;
        return n;
      };
      const int64_t n = size(c[0]);
      const std::vector<float> a = random_floats(size(c[1]) + 1, -1, 1, 3), b = random_floats(size(c[2]) + 1, -1, 1, 4);
      std::vector<float> y(n + 1, 77.0f);
      run({{EwOp::sub, {0, 1, 0}}}, {a.data(), b.data()}, {DataType::float32, DataType::float32},
          plan_of(c[0], {c[1], c[2]}), y.data());
      EXPECT_EQ(y[n], 77.0f);
      for (int64_t i = 0; i < n; ++i) {
        const auto at = [&](const std::vector<int64_t>& dims) {
          int64_t rest = i, offset = 0, stride = 1;
          for (int d = static_cast<int>(c[0].size()) - 1, own = static_cast<int>(dims.size()) - 1; own >= 0;
               --d, --own) {
            if (dims[own] != 1) offset += rest % c[0][d] * stride;
            stride *= dims[own];
            rest /= c[0][d];
          }
          return offset;
        };
        ASSERT_EQ(y[i], a[at(c[1])] - b[at(c[2])]) << i;
      }
    }
  });
}

TEST(Elementwise, program_of_many_steps) {
  // where(a < b, (a + c) * sigmoid(b), half(a) / 3) with a scalar c and a 16-bit a, stored as 16 bits
  const int64_t rows = 37, cols = 45, out[] = {rows, cols}, b_dims[] = {cols}, one[] = {1};
  std::vector<float> a = random_floats(rows * cols, -2, 2, 5), b = random_floats(cols, -2, 2, 6);
  const float c = 0.75f, three = 3;
  std::vector<uint16_t> half(a.size());
  for (size_t i = 0; i < a.size(); ++i) half[i] = Float16(a[i]).bits, a[i] = Float16(a[i]);
  const std::vector<EwStep> steps = {{EwOp::less, {0, 1, 0}},  // 4
                                     {EwOp::add, {0, 2, 0}},   // 5
                                     {EwOp::activation, {1, 0, 0}, {A::sigmoid}},
                                     {EwOp::mul, {5, 6, 0}},
                                     {EwOp::div, {0, 3, 0}},
                                     {EwOp::where, {4, 7, 8}}};
  const BroadcastPlan plan = plan_of(out, {out, b_dims, one, one});
  for_each_isa([&] {
    std::vector<uint16_t> y(a.size());
    run(steps, {half.data(), b.data(), &c, &three},
        {DataType::float16, DataType::float32, DataType::float32, DataType::float32}, plan, y.data(),
        DataType::float16);
    for (size_t i = 0; i < a.size(); ++i) {
      const float bv = b[i % cols];
      const double exact = a[i] < bv ? (a[i] + c) * sigmoid(bv) : a[i] / 3;
      EXPECT_NEAR(Float16::from_bits(y[i]), exact, 1e-3 * std::max(1.0, std::fabs(exact)));
    }
    std::vector<uint8_t> mask(a.size());
    run({{EwOp::less, {0, 1, 0}}}, {a.data(), b.data()}, {DataType::float32, DataType::float32},
        plan_of(out, {out, b_dims}), mask.data(), DataType::boolean);
    for (size_t i = 0; i < a.size(); ++i) EXPECT_EQ(mask[i], a[i] < b[i % cols]);
  });
  EXPECT_FALSE(EwProgram::fits(9, steps));
  const std::vector<EwStep> reads_ahead = {{EwOp::add, {0, 1, 0}}};
  EXPECT_THROW(EwProgram(1, reads_ahead), Error);
}

TEST(Convert, matches_scalar_conversion) {
  std::vector<float> x = floats_by_bits(32749);
  for (float v : special_floats()) x.push_back(v);
  for (float v : random_floats(1000, -300, 300)) x.push_back(v);
  const int64_t n = static_cast<int64_t>(x.size());
  std::vector<uint16_t> all(65536);
  for (int i = 0; i < 65536; ++i) all[i] = static_cast<uint16_t>(i);
  for_each_isa([&] {
    std::vector<uint16_t> half(x.size());
    from_float(DataType::float16, x.data(), half.data(), n);
    for (int64_t i = 0; i < n; ++i) ASSERT_EQ(half[i], Float16(x[i]).bits) << x[i];
    from_float(DataType::bfloat16, x.data(), half.data(), n);
    for (int64_t i = 0; i < n; ++i) ASSERT_EQ(half[i], BFloat16(x[i]).bits) << x[i];
    std::vector<int32_t> whole(x.size());
    from_float(DataType::int32, x.data(), whole.data(), n);
    std::vector<uint8_t> bytes(x.size()), truth(x.size());
    from_float(DataType::uint8, x.data(), bytes.data(), n);
    from_float(DataType::boolean, x.data(), truth.data(), n);
    for (int64_t i = 0; i < n; ++i) {
      const int32_t expected = std::fabs(x[i]) < 2147483648.0f ? static_cast<int32_t>(x[i]) : INT32_MIN;
      ASSERT_EQ(whole[i], expected) << x[i];
      ASSERT_EQ(bytes[i], static_cast<uint8_t>(expected)) << x[i];
      ASSERT_EQ(truth[i], x[i] != 0) << x[i];
    }
    std::vector<float> back(65536);
    to_float(DataType::float16, all.data(), back.data(), 65536);
    for (int i = 0; i < 65536; ++i) {
      const float expected = Float16::from_bits(all[i]);
      ASSERT_TRUE(back[i] == expected || (std::isnan(back[i]) && std::isnan(expected))) << i;
    }
    std::vector<int8_t> small = {-128, -1, 0, 1, 127, 5, 6, 7, 8, 9, 10};
    to_float(DataType::int8, small.data(), back.data(), 11);
    for (int i = 0; i < 11; ++i) ASSERT_EQ(back[i], small[i]);
    to_float(DataType::uint8, small.data(), back.data(), 11);
    for (int i = 0; i < 11; ++i) ASSERT_EQ(back[i], static_cast<uint8_t>(small[i]));
  });
}

}  // namespace
}  // namespace epona
