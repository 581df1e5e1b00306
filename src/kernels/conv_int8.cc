#include "kernels/conv_int8.h"

#include <algorithm>
#include <vector>

#include "kernels/conv_int8_tile.h"
#include "kernels/gemm_grid.h"
#include "kernels/gemm_int8_tile.h"
#include "kernels/parallel.h"
#include "kernels/transpose2d.h"

namespace epona {
namespace {

using namespace int8_detail;
using gemm_detail::ceil_div;
using gemm_detail::Panels;
using gemm_detail::round_up;

int32_t byte_at(const void* values, int64_t i, bool is_signed) {
  return is_signed ? static_cast<const int8_t*>(values)[i] : static_cast<const uint8_t*>(values)[i];
}

}  // namespace

/// Packed weights of one group: panels, then for each column the sum of its weights less its zero point, times one and
/// the zero point itself. The zero points are those of the packed values (128 lower when unsigned).
struct ConvInt8::Layout {
  Panels panels;
  int64_t padded_depth, lda, terms, zeros, any_zero, bytes;

  explicit Layout(const ConvInt8& conv)
      : panels(kernels().lanes, conv.out_group_),
        padded_depth(round_up(conv.depth_, kernels().group)),
        lda(padded_depth * kernels().a_bytes),
        terms(round_up(padded_depth * panels.columns(), 64)),
        zeros(terms + round_up(panels.columns() * 4, 64)),
        any_zero(zeros + round_up(panels.columns() * 4, 64)),
        bytes(any_zero + 64) {}

  /// Rows that are gathered at a time.
  int64_t rows() const { return gemm_detail::rows_per_sweep(lda, kernels().rows); }
  int64_t slot_bytes(int64_t m) const {
    const int64_t rows = std::min(this->rows(), m);
    return round_up(rows * lda + 64, 64) + round_up(rows * 4, 64);
  }
};

ConvInt8::ConvInt8(const ConvParams& params, Int8ConvTypes types)
    : p_(params),
      types_(types),
      depth_(params.in_channels / params.groups * params.kernel_h * params.kernel_w),
      in_group_(params.in_channels / params.groups),
      out_group_(params.out_channels / params.groups) {}

size_t ConvInt8::packed_bytes() const { return static_cast<size_t>(Layout(*this).bytes * p_.groups); }

void ConvInt8::pack(const void* weights, const void* zeros, int64_t zero_stride, void* packed) const {
  const Layout at(*this);
  const int64_t taps = static_cast<int64_t>(p_.kernel_h) * p_.kernel_w;
  std::vector<uint8_t> permuted(taps > 1 ? static_cast<size_t>(at.panels.width * depth_) : 0);
  for (int64_t group = 0; group < p_.groups; ++group) {
    uint8_t* const to = static_cast<uint8_t*>(packed) + group * at.bytes;
    int32_t* const terms = reinterpret_cast<int32_t*>(to + at.terms);
    int32_t* const zero_points = reinterpret_cast<int32_t*>(to + at.zeros);
    const uint8_t* const from = static_cast<const uint8_t*>(weights) + group * out_group_ * depth_;
    for (int64_t panel = 0; panel < at.panels.count(); ++panel) {
      const bool tail = panel == at.panels.whole;
      const int64_t column = panel * at.panels.width, columns = tail ? at.panels.tail_columns : at.panels.width;
      const uint8_t* b = from + column * depth_;
      if (taps > 1) {  // [channel][tap] -> [tap][channel]
        for (int64_t c = 0; c < columns; ++c)
          transpose2d(1, taps, in_group_, reinterpret_cast<const char*>(b + c * depth_), taps,
                      reinterpret_cast<char*>(permuted.data() + c * depth_), in_group_);
        b = permuted.data();
      }
      kernels().pack_b(depth_, columns, tail ? at.panels.tail_width : at.panels.width, b, depth_, true, types_.w_signed,
                       reinterpret_cast<int8_t*>(to + column * at.padded_depth), terms + column);
    }
    int32_t any = 0;
    for (int64_t c = 0; c < at.panels.columns(); ++c) {
      int32_t zero = 0;
      if (c < out_group_) {
        if (zeros) zero = byte_at(zeros, (group * out_group_ + c) * zero_stride, types_.w_signed);
        zero -= types_.w_signed ? 0 : 128;
      }
      any |= zero;
      zero_points[c] = zero;
      terms[c] = static_cast<int32_t>(static_cast<uint32_t>(terms[c]) -
                                      static_cast<uint32_t>(depth_) * static_cast<uint32_t>(zero));
    }
    *reinterpret_cast<int32_t*>(to + at.any_zero) = any;
  }
}

size_t ConvInt8::workspace_bytes(const ConvImage& image, int threads) const {
  const Layout at(*this);
  const int64_t m = image.batch * image.out_h * image.out_w;
  return static_cast<size_t>(round_up(at.panels.columns() * 4, 64) + at.slot_bytes(m) * threads);
}

/// One group of one call.
struct ConvInt8::Group {
  const Int8ConvCall* call;
  const Layout* at;
  const uint8_t* packed;
  const int32_t *add, *zeros;  // zeros: null when all are 0
  int64_t first_channel, channels, ld;
};

namespace {

/// All rows gathered times one panel.
template <class Group>
void run_panel(const Group& g, const uint8_t* a, int64_t lda, const int32_t* row_sums, int64_t row, int64_t rows,
               int64_t panel, int64_t groups) {
  const Kernels& table = kernels();
  const Panels& panels = g.at->panels;
  const bool tail = panel == panels.whole;
  const int64_t column = panel * panels.width, width = tail ? panels.tail_width : panels.width;
  const Int8ConvCall& call = *g.call;
  const int64_t channel = g.first_channel + column;
  const int64_t element = call.output == Int8Output::f32 ? 4 : 1;
  PanelRows p;
  p.groups = groups;
  p.a = a;
  p.lda = lda;
  p.rows = rows;
  p.b = reinterpret_cast<const int8_t*>(g.packed) + panel * g.at->padded_depth * panels.width;
  p.cols = tail ? panels.tail_columns : width;
  p.add = g.add + column;
  p.b_zero = g.zeros ? g.zeros + column : nullptr;
  p.row_sums = row_sums;
  p.output = static_cast<int>(call.output);
  p.c = static_cast<uint8_t*>(call.y) + (row * g.ld + channel) * element;
  p.ldc = g.ld;
  p.scale = call.scale + channel;
  p.a_scale = call.x_scale;
  p.bias = call.shift ? call.shift + channel : nullptr;
  p.c_zero = call.y_zero;
  p.low = call.low;
  p.high = call.high;
  table.panel[width / table.lanes - 1](p);
  if (call.output == Int8Output::f32 && call.activation)
    activate_tile(call.activation, static_cast<float*>(p.c), rows, p.cols, p.ldc);
}

template <class Group>
void run_tile(const Group& g, const uint8_t* a, int64_t lda, const int32_t* row_sums, int64_t row, int rows,
              int64_t panel, int64_t groups) {
  const Kernels& table = kernels();
  const Panels& panels = g.at->panels;
  const bool tail = panel == panels.whole;
  const int64_t column = panel * panels.width, width = tail ? panels.tail_width : panels.width;
  const int64_t panel_bytes = g.at->padded_depth * panels.width;
  alignas(64) int32_t sums[kMaxRows * kMaxWidth];
  Tile t{groups, a, lda, reinterpret_cast<const int8_t*>(g.packed) + panel * panel_bytes, panel_bytes, sums, width};
  table.tile[rows][width / table.lanes - 1][0](t);

  Finish f{};
  f.sums = sums;
  f.ld = t.ld;
  f.rows = rows;
  f.cols = tail ? panels.tail_columns : width;
  f.add = g.add + column;
  f.row_sums = row_sums;
  f.b_zero = g.zeros ? g.zeros + column : nullptr;
  f.output = static_cast<int>(Int8Output::s32);
  f.c = static_cast<int32_t*>(g.call->y) + row * g.ld + g.first_channel + column;
  f.ldc = g.ld;
  table.finish(f);
}

}  // namespace

void ConvInt8::run_group(const ConvImage& image, const Int8ConvCall& call, int64_t group, ThreadPool& pool) const {
  const Kernels& table = kernels();
  const Layout at(*this);
  const uint8_t* const packed = static_cast<const uint8_t*>(call.packed) + group * at.bytes;
  const int64_t m = image.batch * image.out_h * image.out_w, columns = at.panels.columns();
  const bool any_zero = *reinterpret_cast<const int32_t*>(packed + at.any_zero) != 0;
  const int32_t* const terms = reinterpret_cast<const int32_t*>(packed + at.terms);
  int32_t* const add = static_cast<int32_t*>(call.workspace);
  const int32_t x_zero = call.x_zero + (types_.x_signed ? table.a_offset : 0);
  const int32_t* const bias = call.bias ? call.bias + group * out_group_ : nullptr;
  for (int64_t c = 0; c < columns; ++c) {
    const uint32_t b = bias && c < out_group_ ? static_cast<uint32_t>(bias[c]) : 0u;
    add[c] = static_cast<int32_t>(b - static_cast<uint32_t>(x_zero) * static_cast<uint32_t>(terms[c]));
  }
  const Group g{&call,
                &at,
                packed,
                add,
                any_zero ? reinterpret_cast<const int32_t*>(packed + at.zeros) : nullptr,
                group * out_group_,
                out_group_,
                p_.out_channels};
  Gather gather{};
  gather.x = static_cast<const uint8_t*>(call.x) + group * in_group_;
  gather.x_end = static_cast<const uint8_t*>(call.x) + image.batch * image.in_h * image.in_w * p_.in_channels;
  gather.pixel_stride = p_.in_channels;
  gather.channels = in_group_;
  gather.kernel_h = p_.kernel_h, gather.kernel_w = p_.kernel_w;
  gather.stride_h = p_.stride_h, gather.stride_w = p_.stride_w;
  gather.dilation_h = p_.dilation_h, gather.dilation_w = p_.dilation_w;
  gather.image = image;
  gather.x_signed = types_.x_signed;
  gather.zero = x_zero;
  gather.out_ld = at.lda;

  // Bytes that the tiles can read where they are.
  const bool pointwise = p_.kernel_h == 1 && p_.kernel_w == 1 && p_.stride_h == 1 && p_.stride_w == 1 &&
                         image.pad_top == 0 && image.pad_left == 0 && image.in_h == image.out_h &&
                         image.in_w == image.out_w;
  const bool in_place =
      pointwise && table.a_bytes == 1 && !types_.x_signed && !any_zero && in_group_ % table.group == 0;
  const double weights = static_cast<double>(depth_) * static_cast<double>(out_group_);
  const double ns =
      2 * weights * static_cast<double>(m) / table.ops_per_ns + static_cast<double>(m * out_group_) * 0.2 + 50;
  const int64_t tiles = ceil_div(m, table.rows);
  const gemm_detail::Grid grid = gemm_detail::split_grid(tiles, at.panels.count(), m, out_group_, ns, pool.threads());
  const int64_t items = grid.rows * grid.columns, k_groups = at.padded_depth / table.group;
  uint8_t* const slots = static_cast<uint8_t*>(call.workspace) + round_up(columns * 4, 64);
  parallel_items(pool, items, items > 1 ? 1e6 : 0, [&](int slot, int64_t item) {
    uint8_t* const rows_a = slots + slot * at.slot_bytes(m);
    const int64_t block = std::min(at.rows(), m);
    int32_t* const row_sums = reinterpret_cast<int32_t*>(rows_a + round_up(block * at.lda + 64, 64));
    Gather mine = gather;
    mine.out = rows_a;
    mine.row_sums = any_zero ? row_sums : nullptr;
    const int64_t r = item / grid.columns, c = item % grid.columns;
    const auto row_at = [&](int64_t i) { return std::min(m, tiles * i / grid.rows * table.rows); };
    const int64_t row0 = row_at(r), row1 = row_at(r + 1);
    const int64_t panel0 = at.panels.count() * c / grid.columns, panel1 = at.panels.count() * (c + 1) / grid.columns;
    const int64_t sweeps = ceil_div(row1 - row0, block);
    for (int64_t sweep = 0; sweep < sweeps; ++sweep) {
      const int64_t begin = row0 + (row1 - row0) * sweep / sweeps, end = row0 + (row1 - row0) * (sweep + 1) / sweeps;
      const uint8_t* a = rows_a;
      int64_t lda = at.lda;
      if (in_place) {
        lda = gather.pixel_stride;
        a = gather.x + begin * lda;
      } else {
        conv_int8_kernels().gather(mine, begin, end - begin);
      }
      const int64_t row_tiles = ceil_div(end - begin, table.rows);
      for (int64_t panel = panel0; panel < panel1; ++panel) {
        if (call.output != Int8Output::s32) {
          run_panel(g, a, lda, row_sums, begin, end - begin, panel, k_groups);
          continue;
        }
        int64_t row = begin;
        for (int64_t i = 0; i < row_tiles; ++i) {
          const int64_t row_end = begin + (end - begin) * (i + 1) / row_tiles;
          run_tile(g, a + (row - begin) * lda, lda, row_sums + (row - begin), row, static_cast<int>(row_end - row),
                   panel, k_groups);
          row = row_end;
        }
      }
    }
  });
}

void ConvInt8::run(const ConvImage& image, const Int8ConvCall& call, ThreadPool& pool) const {
  if (image.batch * image.out_h * image.out_w <= 0) return;
  for (int64_t group = 0; group < p_.groups; ++group) run_group(image, call, group, pool);
}

}  // namespace epona
